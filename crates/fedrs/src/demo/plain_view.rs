//! The demo in a pipe: the lines of the story, and one for each change of the layout, of a cluster's state, or of the cluster
//! that a rollout has reached. No escape codes.

use std::io::{self, Write};

use tokio::sync::{mpsc, watch};

use super::{
    messages::OutputLine,
    observer::Snapshot,
    snapshot::{SetSnapshot, State},
    table::current_set,
};

/// Writes lines to `out` until their sender is dropped.
pub(crate) async fn show(
    mut out: impl Write,
    mut lines: mpsc::Receiver<OutputLine>,
    mut snapshots: watch::Receiver<Snapshot>,
) -> io::Result<()> {
    let mut last = None;
    loop {
        tokio::select! {
            biased;
            line = lines.recv() => match line {
                Some(line) => writeln!(out, "{line}")?,
                None => return out.flush(),
            },
            Ok(()) = snapshots.changed() => {
                let line = change(&mut last, &snapshots.borrow_and_update());
                if let Some(line) = line {
                    writeln!(out, "{line}")?;
                }
            }
        }
        out.flush()?;
    }
}

/// What gets a line when it changes: the set, its replicas, and those and the state of each cluster, and whether all of its pods
/// are updated.
type Layout = (&'static str, Option<u64>, Vec<(Option<u64>, State, bool)>);

/// The line for `snapshot` if its layout is not the `last` one.
fn change(last: &mut Option<Layout>, snapshot: &Snapshot) -> Option<String> {
    let (name, set) = current_set(snapshot);
    let clusters = set.clusters.iter();
    let clusters = clusters.map(|cluster| {
        let is_updated = Some(cluster.updated) >= cluster.desired;
        (cluster.desired, cluster.state.clone(), is_updated)
    });
    let layout = Some((name, set.desired, clusters.collect()));
    let has_status = set.clusters.iter().any(|cluster| cluster.desired.is_some());
    if !has_status || *last == layout {
        return None;
    }
    *last = layout;
    Some(line(snapshot, name, &set))
}

fn line(snapshot: &Snapshot, name: &str, set: &SetSnapshot) -> String {
    let clusters: Vec<_> = set
        .clusters
        .iter()
        .map(|cluster| {
            let desired = cluster.desired.unwrap_or(0);
            let state = match &cluster.state {
                State::Ready => String::new(),
                state => format!(" ({state})"),
            };
            format!("{} {}/{desired}{state}", cluster.name, cluster.ready)
        })
        .collect();
    let desired = set.desired.unwrap_or(0);
    let updated: u64 = set.clusters.iter().map(|cluster| cluster.updated).sum();
    let updated = if set.ready() < desired || updated >= desired {
        String::new()
    } else {
        format!(", {updated} updated")
    };
    format!(
        "  {:6.1} s  {name} {}/{desired} ready{updated}: {}",
        snapshot.at.as_secs_f64(),
        set.ready(),
        clusters.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, time::Duration};

    use super::*;
    use crate::demo::{messages, snapshot::ClusterSnapshot, story::WEB};

    fn snapshot(seconds: u64, desired: Option<u64>, ready: u64, state: State) -> Snapshot {
        let cluster = ClusterSnapshot {
            name: "eu-west".to_owned(),
            desired,
            updated: desired.unwrap_or(0),
            ready,
            state,
            ..ClusterSnapshot::default()
        };
        let set = SetSnapshot {
            desired: Some(50),
            clusters: vec![cluster],
            ..SetSnapshot::default()
        };
        Snapshot {
            at: Duration::from_secs(seconds),
            sets: BTreeMap::from([(WEB, set)]),
            ..Snapshot::default()
        }
    }

    #[test]
    fn changes_of_the_layout_and_of_cluster_states_get_a_line_and_ready_pods_do_not() {
        let mut last = None;
        let lines: Vec<_> = [
            snapshot(1, None, 0, State::Joining),
            snapshot(2, Some(50), 0, State::Ready),
            snapshot(3, Some(50), 30, State::Ready),
            snapshot(4, Some(50), 50, State::Unreachable),
        ]
        .iter()
        .filter_map(|snapshot| change(&mut last, snapshot))
        .collect();
        assert_eq!(
            lines,
            [
                "     2.0 s  web 0/50 ready: eu-west 0/50",
                "     4.0 s  web 50/50 ready: eu-west 50/50 (Unreachable)",
            ]
        );
    }

    #[tokio::test]
    async fn a_pipe_gets_no_escape_codes() {
        let (sender, lines) = mpsc::channel(2);
        let (snapshots, receiver) = watch::channel(Snapshot::default());
        let heading = OutputLine::styled("Step 1", messages::HEADING);
        let failure = messages::not_reached(&[], Duration::ZERO).swap_remove(0);
        for line in [heading, failure] {
            sender.send(line).await.unwrap();
        }
        drop(sender);
        let mut out = Vec::new();
        show(&mut out, lines, receiver).await.unwrap();
        drop(snapshots);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "Step 1\n  FAILED: timed out after 0 s\n"
        );
    }
}
