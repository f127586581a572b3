//! What is committed in several clusters, as it happens.

use std::time::Duration;

use futures::future::select_all;
use sim_cluster::{ChangeEvent, Changes, SimCluster};
use tokio::time::{Instant, sleep, timeout_at};

/// Waits for a change in any cluster; answers all that there are by then, each with its cluster's place, those of one
/// cluster in order.
pub(crate) async fn next_changes(clusters: &mut [Changes]) -> Vec<(usize, ChangeEvent)> {
    let next = clusters.iter_mut().map(|it| Box::pin(it.next()));
    let (event, place, _) = select_all(next).await;
    let mut all = vec![(place, event)];
    for (place, cluster) in clusters.iter_mut().enumerate() {
        while let Some(event) = cluster.try_next() {
            all.push((place, event));
        }
    }
    all
}

/// When a wait looks again at a fleet of embedded clusters: there is mostly nothing new, and looking costs more than all
/// that happens.
pub(crate) struct Looks {
    clusters: Vec<Changes>,
}

impl Looks {
    /// How long after a look the next one is, at least.
    const APART: Duration = Duration::from_millis(20);
    /// How long without a change, at most: some that is waited for is in no cluster.
    const IDLE: Duration = Duration::from_secs(1);

    /// Looks at `clusters` from now on.
    pub(crate) fn at<'a>(clusters: impl IntoIterator<Item = &'a SimCluster>) -> Self {
        let clusters = clusters.into_iter();
        Self {
            clusters: clusters.map(|cluster| cluster.api().changes()).collect(),
        }
    }

    /// Waits until it is time for the next one; the last one is at the deadline.
    pub(crate) async fn next(&mut self, deadline: Instant) {
        sleep(Self::APART).await;
        let idle = deadline.min(Instant::now() + Self::IDLE);
        // Whether there was a change or not.
        let _ = timeout_at(idle, next_changes(&mut self.clusters)).await;
    }
}
