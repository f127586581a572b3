//! The texts of the demo, apart from the titles of the steps.

use std::{path::Path, time::Duration};

use federation_controller::config::Config;
use ratatui::{
    style::{Color, Modifier, Style},
    text::Line,
};

use super::{
    endpoints::Serving,
    observer::{PERIOD, Snapshot},
    snapshot::{ClusterSnapshot, Dip, SetSnapshot},
    story::{Goal, MEMBERS, NAMESPACE, STEPS, Step, WEB},
};

/// The longest part of a reason that is shown.
const REASON_LENGTH: usize = 120;
/// What can be done at any time.
pub(crate) const HINT: &str = " Press Ctrl-C to stop the demo";

/// The style of the title of a step. A terminal shows an empty line above it.
pub(crate) const HEADING: Style = Style::new().add_modifier(Modifier::BOLD);
/// The style of less important lines.
pub(crate) const DIMMED: Style = Style::new().fg(Color::DarkGray);
const SUCCESS: Style = Style::new().fg(Color::Green);
const FAILURE: Style = Style::new().fg(Color::Red);

/// A line of the story.
pub(crate) type OutputLine = Line<'static>;

/// The lines before the first step. A temporary directory is deleted when the demo ends.
pub(crate) fn opening(directory: &Path, is_temporary: bool, settings: &Config) -> Vec<OutputLine> {
    let members = MEMBERS.map(|member| {
        let (name, nodes, pods) = (member.name, member.nodes, member.pods_per_node);
        format!("{name} ({nodes} nodes, {pods} pods each)")
    });
    let deleted = if is_temporary {
        " (deleted at the end)"
    } else {
        ""
    };
    let directory = directory.display();
    let texts = [
        format!(
            "A host cluster and three member clusters run in this process: {}.",
            members.join(", ")
        ),
        format!(
            "The controller connects to them with the kubeconfigs in {directory}{deleted}, and logs to controller.log there."
        ),
        shortened_timeouts(settings),
    ];
    texts.map(|text| Line::styled(text, DIMMED)).to_vec()
}

fn shortened_timeouts(demo: &Config) -> String {
    let default = Config::default();
    let seconds = |limit: Option<Duration>| limit.map_or(0, |limit| limit.as_secs());
    format!(
        "Timeouts are shorter than by default: a pod may be unschedulable for {} s (default {} s), a cluster may be \
         unreachable for {} s (default {} s), a returned cluster must be healthy for {} s before replicas move back \
         (default {} s), and liveness probes run every {} ms (default {} s).",
        seconds(demo.unscheduled_timeout),
        seconds(default.unscheduled_timeout),
        seconds(demo.lost_grace_period),
        seconds(default.lost_grace_period),
        demo.stabilization_window.as_secs(),
        default.stabilization_window.as_secs(),
        demo.probe.period.as_millis(),
        default.probe.period.as_secs(),
    )
}

/// `Step 2 of 7: ...`
pub(crate) fn heading(number: usize, step: &Step) -> OutputLine {
    let text = format!("Step {number} of {}: {}", STEPS.len(), step.title);
    Line::styled(text, HEADING)
}

/// A step reached its goal; with the reason for the number of replicas in each cluster.
pub(crate) fn reached(goal: &Goal, set: &SetSnapshot, took: Duration) -> Vec<OutputLine> {
    let seconds = took.as_secs_f64();
    if let Goal::Deleted(name) = goal {
        let text = format!("  Done in {seconds:.1} s: no cluster has pods of {name}.");
        return vec![Line::styled(text, SUCCESS)];
    }
    if let Goal::Stopped(_) = goal {
        let text = format!(
            "  Done in {seconds:.1} s: the rollout has stopped. {}",
            lowest_ready(set)
        );
        return vec![Line::styled(text, SUCCESS)];
    }
    let shares: Vec<_> = set.clusters.iter().map(desired_in_cluster).collect();
    let text = format!(
        "  Done in {seconds:.1} s: {}, as the scheduler computes. {}",
        shares.join(", "),
        lowest_ready(set)
    );
    let mut lines = vec![Line::styled(text, SUCCESS)];
    let reasons = reasons(&set.clusters).into_iter();
    lines.extend(reasons.map(|reason| Line::raw(format!("  {reason}"))));
    lines
}

/// `eu-west 16`
fn desired_in_cluster(cluster: &ClusterSnapshot) -> String {
    format!("{} {}", cluster.name, cluster.desired.unwrap_or(0))
}

fn lowest_ready(set: &SetSnapshot) -> String {
    if let Some(dip) = set.ready_tracker.dip {
        return format!("Ready replicas fell to {}.", dip.ready);
    }
    match set.ready_tracker.lowest {
        None | Some(0) => "The number of ready replicas only grew.".to_owned(),
        Some(lowest) => format!("Ready replicas never fell below {lowest}."),
    }
}

/// The reason for each cluster's number; clusters with the same reason share a line.
fn reasons(clusters: &[ClusterSnapshot]) -> Vec<String> {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for cluster in clusters {
        let reason = shorten(&cluster.reason);
        let number = desired_in_cluster(cluster);
        match groups.iter_mut().find(|(other, _)| *other == reason) {
            Some((_, numbers)) => numbers.push(number),
            None => groups.push((reason, vec![number])),
        }
    }
    let lines = groups.into_iter();
    lines
        .map(|(reason, numbers)| format!("{}: {reason}", numbers.join(", ")))
        .collect()
}

/// The beginning of a reason, so that it fits two lines; the status has all of it.
fn shorten(reason: &str) -> String {
    if reason.chars().count() <= REASON_LENGTH {
        return reason.to_owned();
    }
    let beginning: String = reason.chars().take(REASON_LENGTH).collect();
    format!("{beginning}...")
}

/// The endpoints that a client finds which resolves the EndpointSet of the story; those that it found at last, if they are others.
pub(crate) fn endpoints(found: &Result<Serving, Serving>) -> OutputLine {
    let text = |serving: &Serving| {
        let clusters = serving
            .iter()
            .map(|(cluster, count)| format!("{cluster} {count}"));
        let clusters: Vec<_> = clusters.collect();
        let count: u64 = serving.values().sum();
        format!("{count} endpoints: {}", clusters.join(", "))
    };
    match found.as_ref().map(text) {
        Ok(found) => Line::raw(format!("  Clients of EndpointSet {WEB} find {found}")),
        Err(found) => {
            let found = text(found);
            let text = format!("  FAILED: clients of EndpointSet {WEB} find {found}");
            Line::styled(text, FAILURE)
        }
    }
}

/// A step missed its goal; with what is missing.
pub(crate) fn not_reached(missing: &[String], timeout: Duration) -> Vec<OutputLine> {
    let first = format!("FAILED: timed out after {} s", timeout.as_secs());
    let lines = std::iter::once(&first).chain(missing);
    lines
        .map(|text| Line::styled(format!("  {text}"), FAILURE))
        .collect()
}

/// Ready replicas fell below the number that a move must preserve.
pub(crate) fn dipped(set: &str, dip: Dip) -> OutputLine {
    let text = format!(
        "  FAILED: {set} had {} ready replicas at {:.1} s, fewer than {}.",
        dip.ready,
        dip.at.as_secs_f64(),
        dip.floor
    );
    Line::styled(text, FAILURE)
}

/// The lines after the last step; `failed` has the numbers of the steps that failed.
pub(crate) fn ending(failed: &[usize], snapshot: &Snapshot) -> Vec<OutputLine> {
    let line = if failed.is_empty() {
        let text = format!(
            "All {} steps passed: replicas run where the scheduler places them, and neither a move nor a rollout reduced the number of \
             ready replicas (checked every {} ms; the longest gap was {} ms).",
            STEPS.len(),
            PERIOD.as_millis(),
            snapshot.longest_gap.as_millis()
        );
        Line::styled(text, SUCCESS)
    } else {
        let numbers: Vec<_> = failed.iter().map(ToString::to_string).collect();
        let text = format!("FAILED: step {}.", numbers.join(", step "));
        Line::styled(text, FAILURE)
    };
    vec![Line::default(), line]
}

/// Commands to try in another terminal.
pub(crate) fn next_commands(directory: &Path, is_temporary: bool) -> Vec<OutputLine> {
    let dir = directory.display();
    let deleted = if is_temporary {
        " and deletes the kubeconfigs"
    } else {
        ""
    };
    let lines = [
        format!(
            "The clusters keep running. Ctrl-C stops them{deleted}. Try these commands in another terminal:"
        ),
        format!("  export KUBECONFIG={dir}/host.yaml"),
        "  kubectl get fdeploy,mc".to_owned(),
        format!("  kubectl describe fdeploy {WEB}"),
        format!("  kubectl scale fdeploy/{WEB} --replicas=80"),
        format!("  fedrs rollout restart {WEB}"),
        format!("  fedrs rollout status {WEB}"),
        format!(
            "  kubectl get deploy --kubeconfig {dir}/members/{}.yaml",
            MEMBERS[0].name
        ),
        format!("  fedrs explain {WEB}"),
        format!("  fedrs discovery --members {dir}/members &"),
        format!("  fedrs resolve {NAMESPACE}/{WEB}"),
    ];
    lines.map(Line::raw).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::{
        settings,
        snapshot::ReadyTracker,
        story::{SHOP, STEP_TIMEOUT},
    };

    fn cluster(name: &str, desired: u64, reason: &str) -> ClusterSnapshot {
        ClusterSnapshot {
            name: name.to_owned(),
            desired: Some(desired),
            reason: reason.to_owned(),
            ..ClusterSnapshot::default()
        }
    }

    /// Ready replicas fall from 50 to 47.
    fn dip() -> ReadyTracker {
        let mut tracker = ReadyTracker::default();
        tracker.record(50, 50, Duration::from_secs(1));
        tracker.record(50, 47, Duration::from_secs(2));
        tracker
    }

    #[test]
    fn all_texts() {
        let dir = Path::new("clusters");
        let web = SetSnapshot {
            clusters: vec![
                cluster("eu-west", 25, "50% by weight"),
                cluster("us-east", 0, "unreachable"),
                cluster("ap-south", 25, "50% by weight"),
            ],
            ..SetSnapshot::default()
        };
        let dipped_web = SetSnapshot {
            ready_tracker: dip(),
            ..web.clone()
        };
        let took = Duration::from_millis(3250);
        let goal = &STEPS[0].goal;
        let missing = ["eu-west: ...".to_owned(), "us-east: ...".to_owned()];
        let steps = (1..)
            .zip(&STEPS)
            .map(|(number, step)| heading(number, step));
        let serving = Serving::from([("ap-south".to_owned(), 25), ("eu-west".to_owned(), 25)]);
        let groups: [Vec<OutputLine>; 13] = [
            opening(dir, false, &settings::controller()),
            opening(dir, true, &settings::controller()),
            steps.collect(),
            reached(goal, &web, took),
            reached(goal, &dipped_web, took),
            reached(&Goal::Deleted(SHOP), &SetSnapshot::default(), took),
            vec![endpoints(&Ok(serving.clone())), endpoints(&Err(serving))],
            not_reached(&missing, STEP_TIMEOUT),
            vec![dipped(WEB, dip().dip.unwrap())],
            ending(&[], &Snapshot::default()),
            ending(&[2, 5], &Snapshot::default()),
            next_commands(dir, false),
            next_commands(dir, true),
        ];
        let lines = groups.iter().map(|lines| {
            let texts: Vec<_> = lines.iter().map(ToString::to_string).collect();
            texts.join("\n")
        });
        insta::assert_snapshot!(lines.collect::<Vec<_>>().join("\n---\n"));
    }

    #[test]
    fn f19_reasons_are_grouped_and_shortened() {
        let up = "16.67 of 50 by weight (1 of 3), rounded up by tie-break";
        let clusters = [
            cluster("a", 17, up),
            cluster("b", 16, &"long reason ".repeat(20)),
            cluster("c", 17, up),
        ];
        let lines = reasons(&clusters);
        assert_eq!(lines[0], format!("a 17, c 17: {up}"));
        let beginning = "long reason ".repeat(10);
        assert_eq!(lines[1], format!("b 16: {beginning}..."));
    }
}
