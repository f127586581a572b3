//! What is committed in several clusters, as it happens.

use futures::future::select_all;
use sim_cluster::{ChangeEvent, Changes};

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
