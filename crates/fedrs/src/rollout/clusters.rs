//! How a FederatedDeployment's rollout is shown: a line for each cluster.

use std::ops::Range;

use fedrs_api::FederatedDeployment;
use membership::rollout::ClusterProgress;

use super::view::View;

/// The number of cells of a full bar.
const BAR: usize = 20;

impl View for FederatedDeployment {
    const USERS: &'static str = "CLUSTERS";
    const COLUMNS: &'static [&'static str] =
        &["CLUSTER", "PROGRESS", "UPDATED", "AVAILABLE", "WAITING"];
    const NUMBERS: Range<usize> = 2..4;

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

    fn is_complete(cluster: &ClusterProgress) -> bool {
        cluster.waiting.is_empty()
    }
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
    use super::*;

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
