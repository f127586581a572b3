//! Follows the committed changes of several embedded clusters.

use std::time::Duration;

use futures::future::select_all;
use sim_cluster::{ChangeEvent, Changes, SimCluster};
use tokio::time::{Instant, sleep, timeout_at};

/// Waits for a change in any cluster. Returns all changes that are committed by then, each with the index of its cluster;
/// the changes of one cluster are in order.
pub async fn next_changes(clusters: &mut [Changes]) -> Vec<(usize, ChangeEvent)> {
    let next = clusters.iter_mut().map(|cluster| Box::pin(cluster.next()));
    let (event, place, _) = select_all(next).await;
    let mut all = vec![(place, event)];
    for (place, cluster) in clusters.iter_mut().enumerate() {
        while let Some(event) = cluster.try_next() {
            all.push((place, event));
        }
    }
    all
}

/// Decides when a wait evaluates its condition again: after changes, because evaluating costs more than the simulation
/// itself.
pub struct ChangeWaiter {
    clusters: Vec<Changes>,
}

impl ChangeWaiter {
    /// The shortest time between two evaluations.
    const APART: Duration = Duration::from_millis(20);
    /// The longest time without a change: some conditions depend on no cluster.
    const IDLE: Duration = Duration::from_secs(1);

    /// Follows the changes of `clusters` from now on.
    pub(crate) fn new<'a>(clusters: impl IntoIterator<Item = &'a SimCluster>) -> Self {
        let clusters = clusters.into_iter();
        Self {
            clusters: clusters.map(|cluster| cluster.api().changes()).collect(),
        }
    }

    /// Waits until the condition should be evaluated again, at the latest at the deadline.
    pub async fn next(&mut self, deadline: Instant) {
        sleep(Self::APART).await;
        let idle = deadline.min(Instant::now() + Self::IDLE);
        // A timeout is fine, too.
        let _ = timeout_at(idle, next_changes(&mut self.clusters)).await;
    }
}
