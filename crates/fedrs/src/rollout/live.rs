//! The progress of a rollout as a table that is redrawn in place.

use std::io::{self, Write};

use federation_controller::printable_lines;
use membership::rollout::{ClusterProgress, RolloutProgress};

use crate::{output, terminal};

/// The columns of the clusters.
const HEADER: &[&str] = &["CLUSTER", "PROGRESS", "UPDATED", "AVAILABLE", "WAITING"];
/// The number of cells of a full bar.
const BAR: usize = 20;
/// Lines besides those of the clusters: title, header, the clusters that have no room, state, and the cursor's.
const OTHER_LINES: usize = 5;

/// A table on the terminal.
#[derive(Debug, Default)]
pub(super) struct Live {
    /// The lines that were drawn, above the cursor.
    drawn: usize,
}

impl Live {
    /// Draws over what was drawn before.
    pub(super) fn draw(&mut self, progress: &RolloutProgress) {
        let size = terminal::size();
        let text = printable_lines(&frame(progress, size));
        let mut out = io::stdout();
        let up = match self.drawn {
            0 => String::new(),
            lines => format!("\x1b[{lines}A"),
        };
        // To the first column, and all below is cleared. If nobody reads, the wait goes on.
        let drawn = write!(out, "{up}\r\x1b[J{text}").and_then(|()| out.flush());
        self.drawn = if drawn.is_ok() {
            text.lines().count()
        } else {
            0
        };
    }
}

/// The lines to draw on a terminal of so many columns and rows. None is longer than it, and all fit.
fn frame(progress: &RolloutProgress, (columns, rows): (usize, usize)) -> String {
    let RolloutProgress {
        deployment,
        revision,
        clusters,
        state,
    } = progress;
    let revision = revision.as_ref();
    let revision = revision.map_or(String::new(), |name| format!(", revision {name}"));
    let mut lines = vec![format!("federateddeployment {deployment}{revision}")];
    let room = rows.saturating_sub(OTHER_LINES).max(1);
    let (shown, hidden) = most_important(clusters, room);
    if !shown.is_empty() {
        let table = output::wide_table(HEADER, 2..4, shown.into_iter().map(row).collect());
        lines.extend(table.lines().map(str::to_owned));
    }
    if hidden > 0 {
        lines.push(format!("... and {hidden} more"));
    }
    if !progress.has_ended() {
        lines.push(output::in_one_line(state));
    }
    let cut = lines
        .iter()
        .map(|line| line.chars().take(columns).chain(['\n']));
    cut.flatten().collect()
}

/// The clusters that are shown, in their order, and how many are not: complete ones first.
fn most_important(clusters: &[ClusterProgress], room: usize) -> (Vec<&ClusterProgress>, usize) {
    let mut hidden = clusters.len().saturating_sub(room);
    let mut complete = hidden;
    let mut shown: Vec<_> = clusters
        .iter()
        .filter(|cluster| {
            let hides = complete > 0 && cluster.waiting.is_empty();
            complete -= usize::from(hides);
            !hides
        })
        .collect();
    shown.truncate(room);
    hidden = hidden.max(clusters.len() - shown.len());
    (shown, hidden)
}

fn row(cluster: &ClusterProgress) -> Vec<String> {
    let (updated, desired) = (cluster.updated, cluster.desired);
    vec![
        cluster.name.clone(),
        bar(updated, desired),
        format!("{updated}/{desired}"),
        cluster.available.to_string(),
        cluster.waiting.clone(),
    ]
}

/// Full if nothing is left to be updated, and only then.
fn bar(updated: i32, desired: i32) -> String {
    let count = |number: i32| usize::try_from(number).unwrap_or(0);
    let (updated, desired) = (count(updated), count(desired));
    let cells = (updated.min(desired) * BAR).checked_div(desired);
    let cells = cells.unwrap_or(BAR);
    "█".repeat(cells) + &"░".repeat(BAR - cells)
}

#[cfg(test)]
mod tests {
    use membership::rollout::RolloutState;

    use super::*;

    fn cluster(name: &str, updated: i32, waiting: &str) -> ClusterProgress {
        ClusterProgress {
            name: name.to_owned(),
            updated,
            desired: 4,
            available: 3,
            waiting: waiting.to_owned(),
        }
    }

    fn progress(clusters: Vec<ClusterProgress>) -> RolloutProgress {
        RolloutProgress {
            deployment: "shop/web".to_owned(),
            revision: Some("web-0a1b2c3d".to_owned()),
            state: RolloutState::Updating {
                updated: 5,
                desired: 12,
            },
            clusters,
        }
    }

    #[test]
    fn a_frame_has_a_bar_for_each_cluster() {
        let progress = progress(vec![
            cluster("asia", 0, "for step all to be approved"),
            cluster("eu", 4, ""),
            cluster("us", 1, "for updated pods: 1 of 4 are available"),
        ]);
        insta::assert_snapshot!(frame(&progress, (120, 24)));
    }

    #[test]
    fn a_frame_fits_on_its_terminal() {
        let waiting = "for the budget: ".repeat(9);
        let clusters = (0..30).map(|number| {
            let waiting = if number % 2 == 0 { "" } else { &*waiting };
            cluster(&format!("cluster-{number}"), 1, waiting)
        });
        let progress = progress(clusters.collect());
        for (columns, rows) in [(80, 24), (40, 10), (1, 1)] {
            let text = frame(&progress, (columns, rows));
            assert!(text.lines().all(|line| line.chars().count() <= columns));
            assert!(text.lines().count() <= rows.max(5), "{text}");
        }
        let shown = frame(&progress, (120, 24));
        assert!(shown.contains("... and 11 more"), "{shown}");
        let waiting = shown.lines().filter(|line| line.contains("for the budget"));
        assert_eq!(waiting.count(), 15, "{shown}");
    }

    #[test]
    fn a_bar_is_full_when_nothing_is_left() {
        for (updated, desired, full) in [
            (0, 4, 0),
            (1, 4, 5),
            (3999, 4000, 19),
            (4, 4, 20),
            (5, 4, 20),
            (0, 0, 20),
        ] {
            let cells = bar(updated, desired);
            assert_eq!(cells.matches('█').count(), full, "{updated}/{desired}");
            assert_eq!(cells.chars().count(), BAR);
        }
    }
}
