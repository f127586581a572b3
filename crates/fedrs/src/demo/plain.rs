//! The demo in a pipe: lines as they are told, and one for each change that is worth it. No escape codes.

use std::io::{self, Write};

use tokio::sync::{mpsc, watch};

use super::{
    observer::Scene,
    scene::{SetScene, State},
    table::set_shown,
    telling::Told,
};

/// Writes lines to `out` until nobody tells any more.
pub(crate) async fn show(
    mut out: impl Write,
    mut told: mpsc::Receiver<Told>,
    mut scenes: watch::Receiver<Scene>,
) -> io::Result<()> {
    let mut changes = Changes::default();
    loop {
        tokio::select! {
            biased;
            line = told.recv() => match line {
                Some(line) => writeln!(out, "{}", line.text)?,
                None => return out.flush(),
            },
            Ok(()) = scenes.changed() => {
                let change = changes.next(&scenes.borrow_and_update());
                if let Some(line) = change {
                    writeln!(out, "{line}")?;
                }
            }
        }
        out.flush()?;
    }
}

/// Tells scenes apart in which the layout, or how a member is, changed.
#[derive(Debug, Default)]
struct Changes {
    last: Option<Worth>,
}

/// What is worth a line when it changes.
#[derive(Debug, PartialEq, Eq)]
struct Worth {
    set: &'static str,
    wanted: Option<u64>,
    members: Vec<(Option<u64>, State)>,
}

impl Changes {
    fn next(&mut self, scene: &Scene) -> Option<String> {
        let (name, set) = set_shown(scene);
        let members = set
            .members
            .iter()
            .map(|it| (it.desired, it.state.clone()))
            .collect();
        let worth = Worth {
            set: name,
            wanted: set.wanted,
            members,
        };
        let said = set.members.iter().any(|it| it.desired.is_some());
        if !said || self.last.as_ref() == Some(&worth) {
            return None;
        }
        self.last = Some(worth);
        Some(line(scene, name, &set))
    }
}

fn line(scene: &Scene, name: &str, set: &SetScene) -> String {
    let members: Vec<_> = set
        .members
        .iter()
        .map(|it| {
            let desired = it.desired.unwrap_or(0);
            let state = match &it.state {
                State::Healthy => String::new(),
                state => format!(" ({state})"),
            };
            format!("{} {}/{desired}{state}", it.name, it.ready)
        })
        .collect();
    let wanted = set.wanted.unwrap_or(0);
    format!(
        "  {:6.1} s  {name} {}/{wanted} ready: {}",
        scene.at.as_secs_f64(),
        set.ready(),
        members.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, time::Duration};

    use super::*;
    use crate::demo::{
        scene::MemberScene,
        story::WEB,
        telling::{Teller, Tone},
    };

    fn scene(seconds: u64, desired: Option<u64>, ready: u64, state: State) -> Scene {
        let member = MemberScene {
            name: "eu-west".to_owned(),
            desired,
            ready,
            state,
            ..MemberScene::default()
        };
        let set = SetScene {
            wanted: Some(50),
            members: vec![member],
            ..SetScene::default()
        };
        Scene {
            at: Duration::from_secs(seconds),
            sets: BTreeMap::from([(WEB, set)]),
            ..Scene::default()
        }
    }

    #[test]
    fn changes_of_the_layout_and_of_members_are_worth_a_line_ready_pods_are_not() {
        let mut changes = Changes::default();
        let lines: Vec<_> = [
            scene(1, None, 0, State::Joining),
            scene(2, Some(50), 0, State::Healthy),
            scene(3, Some(50), 30, State::Healthy),
            scene(4, Some(50), 50, State::Unreachable),
        ]
        .iter()
        .filter_map(|scene| changes.next(scene))
        .collect();
        assert_eq!(
            lines,
            [
                "     2.0 s  web 0/50 ready: eu-west 0/50",
                "     4.0 s  web 50/50 ready: eu-west 50/50 (unreachable)",
            ]
        );
    }

    #[tokio::test]
    async fn there_are_no_escape_codes_in_a_pipe() {
        let (teller, told) = Teller::new();
        let (scenes, receiver) = watch::channel(Scene::default());
        teller.tell(Tone::Heading, "Step 1").await;
        teller.tell(Tone::Bad, "  FAILED").await;
        drop(teller);
        let mut out = Vec::new();
        show(&mut out, told, receiver).await.unwrap();
        drop(scenes);
        assert_eq!(String::from_utf8(out).unwrap(), "Step 1\n  FAILED\n");
    }
}
