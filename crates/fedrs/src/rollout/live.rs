//! The progress of a rollout as a table that is redrawn in place.

use std::io::{self, Write};

use federation_controller::printable_lines;
use membership::rollout::RolloutProgress;

use super::view::View;
use crate::{output, terminal};

/// Lines besides those of the parts: title, header, the parts that have no room, state, and the cursor's.
const OTHER_LINES: usize = 5;

/// A table on the terminal.
#[derive(Debug, Default)]
pub(super) struct Live {
    /// The lines that were drawn, above the cursor.
    drawn: usize,
}

impl Live {
    /// Draws over what was drawn before.
    pub(super) fn draw<K: View>(&mut self, progress: &RolloutProgress<K::Part>) {
        let size = terminal::size();
        let text = printable_lines(&frame::<K>(progress, size));
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
fn frame<K: View>(progress: &RolloutProgress<K::Part>, (columns, rows): (usize, usize)) -> String {
    let RolloutProgress {
        object,
        revision,
        parts,
        state,
    } = progress;
    let revision = revision.as_ref();
    let revision = revision.map_or(String::new(), |name| format!(", revision {name}"));
    let mut lines = vec![format!("{object}{revision}")];
    let room = rows.saturating_sub(OTHER_LINES).max(1);
    let (shown, hidden) = most_important::<K>(parts, room);
    if !shown.is_empty() {
        let table = output::wide_table(
            K::COLUMNS,
            K::NUMBERS,
            shown.into_iter().map(K::row).collect(),
        );
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

/// The parts that are shown, in their order, and how many are not: complete ones first.
fn most_important<K: View>(parts: &[K::Part], room: usize) -> (Vec<&K::Part>, usize) {
    let mut hidden = parts.len().saturating_sub(room);
    let mut complete = hidden;
    let mut shown: Vec<_> = parts
        .iter()
        .filter(|part| {
            let hides = complete > 0 && K::is_complete(part);
            complete -= usize::from(hides);
            !hides
        })
        .collect();
    shown.truncate(room);
    hidden = hidden.max(parts.len() - shown.len());
    (shown, hidden)
}

#[cfg(test)]
mod tests {
    use fedrs_api::FederatedDeployment;
    use membership::rollout::{ClusterProgress, RolloutState};

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

    fn progress(parts: Vec<ClusterProgress>) -> RolloutProgress<ClusterProgress> {
        RolloutProgress {
            object: "federateddeployment shop/web".to_owned(),
            revision: Some("web-0a1b2c3d".to_owned()),
            state: RolloutState::Updating {
                updated: 5,
                desired: 12,
            },
            parts,
        }
    }

    #[test]
    fn a_frame_has_a_bar_for_each_cluster() {
        let progress = progress(vec![
            cluster("asia", 0, "for step all to be approved"),
            cluster("eu", 4, ""),
            cluster("us", 1, "for updated pods: 1 of 4 are available"),
        ]);
        insta::assert_snapshot!(frame::<FederatedDeployment>(&progress, (120, 24)));
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
            let text = frame::<FederatedDeployment>(&progress, (columns, rows));
            assert!(text.lines().all(|line| line.chars().count() <= columns));
            assert!(text.lines().count() <= rows.max(5), "{text}");
        }
        let shown = frame::<FederatedDeployment>(&progress, (120, 24));
        assert!(shown.contains("... and 11 more"), "{shown}");
        let waiting = shown.lines().filter(|line| line.contains("for the budget"));
        assert_eq!(waiting.count(), 15, "{shown}");
    }
}
