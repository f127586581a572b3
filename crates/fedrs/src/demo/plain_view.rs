//! The demo in a pipe: the lines of the story, and one for each change of the layout or of a cluster's state. No escape
//! codes.

use std::io::{self, Write};

use tokio::sync::{mpsc, watch};

use super::{
    observer::Snapshot,
    output::OutputLine,
    snapshot::{SetSnapshot, State},
    table::current_set,
};

/// Writes lines to `out` until their sender is dropped.
pub(crate) async fn show(
    mut out: impl Write,
    mut lines: mpsc::Receiver<OutputLine>,
    mut snapshots: watch::Receiver<Snapshot>,
) -> io::Result<()> {
    let mut changes = Changes::default();
    loop {
        tokio::select! {
            biased;
            line = lines.recv() => match line {
                Some(line) => writeln!(out, "{}", line.text)?,
                None => return out.flush(),
            },
            Ok(()) = snapshots.changed() => {
                let change = changes.next(&snapshots.borrow_and_update());
                if let Some(line) = change {
                    writeln!(out, "{line}")?;
                }
            }
        }
        out.flush()?;
    }
}

/// Detects changes of the layout and of cluster states.
#[derive(Debug, Default)]
struct Changes {
    last: Option<Layout>,
}

/// What gets a line when it changes.
#[derive(Debug, PartialEq, Eq)]
struct Layout {
    set: &'static str,
    desired: Option<u64>,
    clusters: Vec<(Option<u64>, State)>,
}

impl Changes {
    fn next(&mut self, snapshot: &Snapshot) -> Option<String> {
        let (name, set) = current_set(snapshot);
        let clusters = set
            .clusters
            .iter()
            .map(|cluster| (cluster.desired, cluster.state.clone()))
            .collect();
        let layout = Layout {
            set: name,
            desired: set.desired,
            clusters,
        };
        let has_status = set.clusters.iter().any(|cluster| cluster.desired.is_some());
        if !has_status || self.last.as_ref() == Some(&layout) {
            return None;
        }
        self.last = Some(layout);
        Some(line(snapshot, name, &set))
    }
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
    format!(
        "  {:6.1} s  {name} {}/{desired} ready: {}",
        snapshot.at.as_secs_f64(),
        set.ready(),
        clusters.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, time::Duration};

    use super::*;
    use crate::demo::{
        output::{LineStyle, Reporter},
        snapshot::ClusterSnapshot,
        story::WEB,
    };

    fn snapshot(seconds: u64, desired: Option<u64>, ready: u64, state: State) -> Snapshot {
        let cluster = ClusterSnapshot {
            name: "eu-west".to_owned(),
            desired,
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
        let mut changes = Changes::default();
        let lines: Vec<_> = [
            snapshot(1, None, 0, State::Joining),
            snapshot(2, Some(50), 0, State::Ready),
            snapshot(3, Some(50), 30, State::Ready),
            snapshot(4, Some(50), 50, State::Unreachable),
        ]
        .iter()
        .filter_map(|snapshot| changes.next(snapshot))
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
        let (reporter, lines) = Reporter::new();
        let (snapshots, receiver) = watch::channel(Snapshot::default());
        let story = [
            OutputLine::new(LineStyle::Heading, "Step 1"),
            OutputLine::new(LineStyle::Failure, "  FAILED"),
        ];
        reporter.report(story).await;
        drop(reporter);
        let mut out = Vec::new();
        show(&mut out, lines, receiver).await.unwrap();
        drop(snapshots);
        assert_eq!(String::from_utf8(out).unwrap(), "Step 1\n  FAILED\n");
    }
}
