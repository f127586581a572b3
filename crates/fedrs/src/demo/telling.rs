//! The story's words: what is said of each step, for a terminal and for a pipe alike.

use std::time::Duration;

use tokio::sync::mpsc;

use super::{
    expect,
    scene::{Dip, MemberScene, SetScene},
    story::{Goal, LaidOut, STEPS, Step},
};

/// Lines that may wait to be shown: more than any step has, so that the story isn't held up.
const LINES: usize = 64;

/// How a line is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    /// A step begins.
    Heading,
    /// Told as it is.
    Plain,
    /// It came out as it should.
    Good,
    /// It did not.
    Bad,
    /// Beside the story.
    Aside,
}

/// One line of the story.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    /// How it is meant.
    pub(crate) tone: Tone,
    /// The words; indented by two spaces below a heading.
    pub(crate) text: String,
}

/// Where lines are told.
#[derive(Clone, Debug)]
pub(crate) struct Teller(mpsc::Sender<Told>);

impl Teller {
    /// A teller, and where its lines come out.
    pub(crate) fn new() -> (Self, mpsc::Receiver<Told>) {
        let (sender, receiver) = mpsc::channel(LINES);
        (Self(sender), receiver)
    }

    /// Tells a line. If nobody listens any more the demo is about to end.
    pub(crate) async fn tell(&self, tone: Tone, text: impl Into<String>) {
        let _ = self
            .0
            .send(Told {
                tone,
                text: text.into(),
            })
            .await;
    }

    /// Tells several lines.
    pub(crate) async fn tell_all(&self, lines: impl IntoIterator<Item = Told>) {
        for line in lines {
            let _ = self.0.send(line).await;
        }
    }
}

/// `Step 2 of 7: ...`
pub(crate) fn heading(number: usize, step: &Step) -> Told {
    line(
        Tone::Heading,
        format!("Step {number} of {}: {}", STEPS.len(), step.told),
    )
}

/// That a step came out as it should, and why each cluster has its number.
pub(crate) fn reached(step: &Step, scene: &SetScene, took: Duration) -> Vec<Told> {
    let seconds = took.as_secs_f64();
    let layout = match &step.goal {
        Goal::Gone(set) => {
            let text = format!("  Nothing is left of {set} in any cluster, after {seconds:.1} s.");
            return vec![line(Tone::Good, text)];
        }
        Goal::Layout(layout) => layout,
    };
    let text = format!(
        "  {} after {seconds:.1} s, {}; {}.",
        numbers(scene),
        agreement(layout),
        never_below(scene)
    );
    let mut lines = vec![line(Tone::Good, text)];
    lines.extend(
        whys(&scene.members)
            .into_iter()
            .map(|why| line(Tone::Plain, format!("  {why}"))),
    );
    lines
}

/// `eu-west 16, us-east 17, ap-south 17`
fn numbers(scene: &SetScene) -> String {
    let shares: Vec<_> = scene
        .members
        .iter()
        .map(|it| format!("{} {}", it.name, it.desired.unwrap_or(0)))
        .collect();
    shares.join(", ")
}

fn agreement(layout: &LaidOut) -> &'static str {
    match layout.document {
        Some(_) => "as the planner and the design document have it",
        None => "as the planner has it",
    }
}

/// How low ready replicas got on the way.
fn never_below(scene: &SetScene) -> String {
    if let Some(dip) = scene.watch.dip() {
        return format!("ready replicas fell to {}", dip.ready);
    }
    match scene.watch.lowest() {
        None | Some(0) => "no replica was taken back on the way".to_owned(),
        Some(lowest) => format!("ready replicas never fell below {lowest}"),
    }
}

/// Why each member has its number, members with the same reason together.
fn whys(members: &[MemberScene]) -> Vec<String> {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for member in members {
        let why = shortened(&member.reason);
        let number = format!("{} {}", member.name, member.desired.unwrap_or(0));
        match groups.iter_mut().find(|(reason, _)| *reason == why) {
            Some((_, numbers)) => numbers.push(number),
            None => groups.push((why, vec![number])),
        }
    }
    groups
        .into_iter()
        .map(|(why, numbers)| format!("{}: {why}", numbers.join(", ")))
        .collect()
}

/// What most people want to know of a reason: the status has the rest.
fn shortened(reason: &str) -> String {
    let sentences: Vec<_> = reason.split("; ").map(shortened_sentence).collect();
    sentences.join("; ")
}

fn shortened_sentence(sentence: &str) -> String {
    if let Some((share, _)) = sentence.split_once(": of equal claims") {
        return share.to_owned();
    }
    // A scheduler's message goes on for long after its first sentence.
    match sentence.split_once(". ") {
        Some((first, _)) if first.contains('(') => format!("{first})"),
        _ => sentence.to_owned(),
    }
}

/// That a step did not reach its goal, and what is missing.
pub(crate) fn not_reached(step: &Step, scene: &SetScene, deadline: Duration) -> Vec<Told> {
    let mut lines = vec![line(
        Tone::Bad,
        format!("  FAILED: not reached within {} s.", deadline.as_secs()),
    )];
    let missing = expect::missing(&step.goal, scene);
    lines.extend(
        missing
            .into_iter()
            .map(|it| line(Tone::Bad, format!("  {it}"))),
    );
    lines
}

/// That ready replicas dropped below what they must not drop below.
pub(crate) fn dipped(set: &str, dip: Dip) -> Told {
    let text = format!(
        "  FAILED: {set} had {} ready replicas at {:.1} s, below {}.",
        dip.ready,
        dip.at.as_secs_f64(),
        dip.floor
    );
    line(Tone::Bad, text)
}

fn line(tone: Tone, text: String) -> Told {
    Told { tone, text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f19_reasons_are_grouped_and_shortened() {
        let member = |name: &str, desired, reason: &str| MemberScene {
            name: name.to_owned(),
            desired: Some(desired),
            reason: reason.to_owned(),
            ..MemberScene::default()
        };
        let up = "its share by weight is 16.67 of 50 (weight 1 of 3), rounded up";
        let members = [
            member(
                "a",
                17,
                &format!("{up}: of equal claims to the last replica, this one's comes first"),
            ),
            member(
                "b",
                16,
                "its share by weight is 16.67 of 50 (weight 1 of 3), rounded down: of equal claims so and so; 2 wait for a node (0/2 nodes are available: 2 Too many pods. no new claims, preemption: none.)",
            ),
            member("c", 17, up),
        ];
        assert_eq!(
            whys(&members),
            [
                "a 17, c 17: its share by weight is 16.67 of 50 (weight 1 of 3), rounded up",
                "b 16: its share by weight is 16.67 of 50 (weight 1 of 3), rounded down; 2 wait for a node (0/2 nodes are available: 2 Too many pods)",
            ]
        );
    }
}
