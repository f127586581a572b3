//! The live table: one set and its clusters, as lines of a terminal. Pure.

use ratatui::{
    style::Color,
    text::{Line, Span},
};

use super::{
    messages::{DIMMED, HEADING, HINT},
    observer::Snapshot,
    snapshot::{ClusterSnapshot, SetSnapshot, State},
    story::{Goal, STEPS, WEB},
};

/// The number of lines of the table, with the empty one above it.
pub(crate) const HEIGHT: u16 = 8;
/// The number of cells of a full bar.
const BAR: usize = 21;
/// The width of the column with the clusters' names.
const NAME: usize = 10;

/// The set of the current step, or [`WEB`] after that set was deleted.
pub(crate) fn current_set(snapshot: &Snapshot) -> (&'static str, SetSnapshot) {
    let set = |name| snapshot.sets.get(name).cloned().unwrap_or_default();
    if let Some(step) = snapshot
        .step
        .checked_sub(1)
        .and_then(|index| STEPS.get(index))
    {
        let current = set(step.goal.set());
        let deleted = matches!(step.goal, Goal::Deleted(_)) && current.desired.is_none();
        if !deleted {
            return (step.goal.set(), current);
        }
    }
    (WEB, set(WEB))
}

/// The table of `snapshot`, [`HEIGHT`] lines.
pub(crate) fn lines(snapshot: &Snapshot) -> Vec<Line<'static>> {
    let (name, set) = current_set(snapshot);
    let mut lines = vec![Line::default(), title(snapshot, name, &set)];
    let header = format!(
        " {:<NAME$} {:>7}  {:>5}  {:>7}  {:<BAR$} {:>7}  {}",
        "CLUSTER", "DESIRED", "READY", "UPDATED", "", "PENDING", "STATUS",
    );
    lines.push(Line::styled(header, HEADING));
    let clusters = set.clusters.iter();
    let largest = clusters.map(|cluster| cluster.pods.max(cluster.desired.unwrap_or(0)));
    let largest = largest
        .max()
        .and_then(|largest| usize::try_from(largest).ok());
    let largest = largest.unwrap_or(0).max(1);
    lines.extend(set.clusters.iter().map(|cluster| row(cluster, largest)));
    lines.push(total(&set));
    lines.push(Line::styled(HINT, DIMMED));
    lines
}

fn title(snapshot: &Snapshot, name: &str, set: &SetSnapshot) -> Line<'static> {
    let desired = set.desired.map_or("not created".to_owned(), |desired| {
        format!("{desired} replicas")
    });
    // A new set begins with 0 ready replicas.
    let lowest = match set.ready_tracker.lowest {
        None | Some(0) => String::new(),
        Some(lowest) => format!(", never fewer than {lowest} in this step"),
    };
    let seconds = snapshot.at.as_secs();
    let rest = format!(
        ": {desired}, {} ready{lowest}  [{}:{:02}]",
        set.ready(),
        seconds / 60,
        seconds % 60
    );
    Line::from(vec![
        Span::styled(format!(" {name}"), HEADING),
        Span::raw(rest),
    ])
}

/// One cluster; a full bar is the `largest` number of replicas.
fn row(cluster: &ClusterSnapshot, largest: usize) -> Line<'static> {
    let cells = |count: u64| (usize::try_from(count).unwrap_or(0) * BAR).div_ceil(largest);
    let ready = cells(cluster.ready);
    let starting = cells(cluster.pods.max(cluster.ready)) - ready;
    let empty = BAR.saturating_sub(ready + starting);
    let color = match cluster.state {
        State::Joining => Color::DarkGray,
        State::Ready => Color::Green,
        State::Full(_) => Color::Yellow,
        State::Unreachable | State::Lost => Color::Red,
    };
    let desired = cluster
        .desired
        .map_or("-".to_owned(), |desired| desired.to_string());
    Line::from(vec![
        Span::raw(format!(
            " {:<NAME$} {desired:>7}  {:>5}  {:>7}  ",
            cluster.name, cluster.ready, cluster.updated
        )),
        Span::styled("█".repeat(ready), color),
        Span::styled("░".repeat(starting), color),
        Span::raw(" ".repeat(empty)),
        Span::raw(format!(" {:>7}  ", cluster.pending)),
        Span::styled(cluster.state.to_string(), color),
    ])
}

fn total(set: &SetSnapshot) -> Line<'static> {
    let desired: u64 = set
        .clusters
        .iter()
        .filter_map(|cluster| cluster.desired)
        .sum();
    let sum = |of: fn(&ClusterSnapshot) -> u64| set.clusters.iter().map(of).sum::<u64>();
    let (updated, pending) = (
        sum(|cluster| cluster.updated),
        sum(|cluster| cluster.pending),
    );
    let unplaced = match set.unplaced {
        0 => String::new(),
        unplaced => format!("  {unplaced} unplaced"),
    };
    Line::raw(format!(
        " {:<NAME$} {desired:>7}  {:>5}  {updated:>7}  {:BAR$} {pending:>7}{unplaced}",
        "total",
        set.ready(),
        "",
    ))
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, time::Duration};

    use super::*;
    use crate::demo::snapshot::ReadyTracker;

    fn cluster(name: &str, desired: u64, pods: u64, ready: u64, state: State) -> ClusterSnapshot {
        let pending = if matches!(state, State::Full(_)) {
            pods - ready
        } else {
            0
        };
        ClusterSnapshot {
            name: name.to_owned(),
            desired: Some(desired),
            spec_replicas: pods,
            updated: pods,
            pods,
            ready,
            pending,
            state,
            ..ClusterSnapshot::default()
        }
    }

    fn snapshot(step: usize, desired: u64, clusters: Vec<ClusterSnapshot>) -> Snapshot {
        let mut ready_tracker = ReadyTracker::default();
        ready_tracker.record(
            desired,
            clusters.iter().map(|cluster| cluster.ready).sum(),
            Duration::ZERO,
        );
        let set = SetSnapshot {
            desired: Some(desired),
            clusters,
            ready_tracker,
            ..SetSnapshot::default()
        };
        let mut snapshot = Snapshot {
            at: Duration::from_secs(75),
            step,
            ..Snapshot::default()
        };
        snapshot.sets = BTreeMap::from([(current_set(&snapshot).0, set)]);
        snapshot
    }

    fn text(snapshot: &Snapshot) -> String {
        let lines = lines(snapshot);
        assert_eq!(lines.len(), usize::from(HEIGHT));
        assert!(
            lines.iter().all(|line| line.width() <= 80),
            "the table fits on a terminal of 80 columns"
        );
        let lines: Vec<_> = lines.iter().map(ToString::to_string).collect();
        lines.join("\n")
    }

    #[test]
    fn shows_a_full_cluster_and_its_pending_pods() {
        insta::assert_snapshot!(text(&snapshot(
            2,
            50,
            vec![
                cluster("eu-west", 22, 22, 18, State::Ready),
                cluster("us-east", 22, 22, 22, State::Ready),
                cluster("ap-south", 6, 8, 6, State::Full(6)),
            ],
        )));
    }

    #[test]
    fn shows_a_lost_cluster_and_a_surplus() {
        insta::assert_snapshot!(text(&snapshot(
            4,
            50,
            vec![
                cluster("eu-west", 25, 25, 25, State::Ready),
                cluster("us-east", 0, 17, 17, State::Lost),
                cluster("ap-south", 25, 25, 25, State::Ready),
            ],
        )));
    }

    #[test]
    fn shows_no_numbers_before_the_first_status() {
        let names = ["eu-west", "us-east", "ap-south"];
        let clusters = names.map(|name| ClusterSnapshot {
            name: name.to_owned(),
            ..ClusterSnapshot::default()
        });
        let mut snapshot = snapshot(0, 50, clusters.to_vec());
        snapshot.sets.get_mut(WEB).unwrap().desired = None;
        insta::assert_snapshot!(text(&snapshot));
    }
}
