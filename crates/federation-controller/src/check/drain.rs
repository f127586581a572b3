//! A cluster that is drained: all its replicas leave, made before they are broken like any other move.
//!
//! For the scheduler it has minimum and maximum 0. Where no other cluster may take a replica that runs there it stays,
//! so that draining never leaves fewer running.

use federated_scheduler::Preference;

use super::target::{Target, Usable};

/// What the scheduler is told in place of the user's preference for a drained cluster.
pub(super) const NOTHING: Preference = Preference {
    min: 0,
    max: Some(0),
    weight: 0,
};

/// Why a drained cluster with so many replicas has its number (F19).
pub(super) fn reason(placed: u64) -> &'static str {
    if placed > 0 {
        "drained: its replicas go to other clusters"
    } else {
        "drained: it gets no replicas"
    }
}

/// Of the `unplaced` replicas those that have not been given a cluster to wait in stay where they run (F20).
pub(super) fn keep_what_nobody_takes(
    unplaced: u64,
    clusters: &[Usable<'_>],
    targets: &mut [Target],
) {
    let waiting: u64 = targets.iter().map(|target| target.pending).sum();
    let mut left = unplaced.saturating_sub(waiting);
    for (target, cluster) in targets.iter_mut().zip(clusters) {
        if cluster.draining {
            let running = cluster.placed.saturating_sub(cluster.waiting);
            target.pending = running.min(left);
            left -= target.pending;
        }
    }
}
