//! What a cluster holds on to: the objects that are there, and a short past of them.

use std::time::Duration;

use peak_alloc::PeakAlloc;
use serde_json::{Value, json};
use sim_cluster::api::WriteOptions;
use sim_cluster::{Settings, SimCluster, kinds};

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

const PODS: usize = 40;
const ROUNDS: usize = 10;

/// Scales the set and waits for longer than the past is kept.
async fn scale(cluster: &SimCluster, replicas: usize) {
    let api = cluster.api();
    let set = |set: &mut Value| set["spec"]["replicas"] = json!(replicas);
    api.modify(&kinds::REPLICA_SETS, None, "default", "web", set)
        .expect("it exists");
    tokio::time::sleep(Duration::from_mins(2)).await;
    assert_eq!(api.list(&kinds::PODS, Some("default")).len(), replicas);
}

/// Ten times as many changes take no more memory than the first ones. (When each was kept whole, they took ten times
/// as much.)
#[tokio::test(start_paused = true)]
async fn the_past_takes_little() {
    let settings = Settings {
        event_time: Duration::from_mins(5),
        ..Settings::default()
    };
    let cluster = SimCluster::builder("one")
        .nodes(3)
        .settings(settings)
        .start();
    let set = json!({"metadata": {"name": "web"}, "spec": {
        "replicas": 0, "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}});
    let options = WriteOptions::default();
    let created = cluster
        .api()
        .create(&kinds::REPLICA_SETS, "default", set, &options);
    created.expect("valid");
    let empty = HEAP.current_usage();
    scale(&cluster, PODS).await;
    let (first, first_changes) = (HEAP.current_usage() - empty, cluster.api().revision());
    for _ in 0..ROUNDS {
        scale(&cluster, 0).await;
        scale(&cluster, PODS).await;
    }
    let (all, all_changes) = (HEAP.current_usage() - empty, cluster.api().revision());
    assert!(
        all_changes > 10 * first_changes,
        "{all_changes} changes, {first_changes} at first"
    );
    assert!(
        all < 3 * first / 2,
        "{all} bytes after {all_changes} changes, {first} after {first_changes}"
    );
    cluster.stop().await;
}
