//! The memory of a cluster: its objects, and their latest changes.

use std::time::Duration;

use peak_alloc::PeakAlloc;
use serde_json::{Value, json};
use sim_cluster::WriteOptions;
use sim_cluster::{Settings, SimCluster, kinds};
use tokio::sync::Mutex;

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;
/// The heap is shared: only one test measures at a time.
static ALONE: Mutex<()> = Mutex::const_new(());

const PODS: usize = 40;
const ROUNDS: usize = 10;

/// After this time the history of the nodes, whose status is reported every five minutes, is as long as it gets.
const NODES_REPORTED: Duration = Duration::from_hours(4);

/// A cluster of three nodes that forgets events after a while, with a set `web` without replicas.
fn with_a_set() -> SimCluster {
    let settings = Settings {
        event_time: Duration::from_mins(5),
        ..Settings::default()
    };
    let cluster = SimCluster::builder("one")
        .nodes(3)
        .node_resources("8", "32Gi", 50)
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
    cluster
}

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
async fn old_changes_take_little_memory() {
    let _alone = ALONE.lock().await;
    let cluster = with_a_set();
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

/// Deleted pods leave nothing. (Their recorded events took some 450 bytes each.)
#[tokio::test(start_paused = true)]
async fn terminated_pods_use_no_resources() {
    let _alone = ALONE.lock().await;
    let cluster = with_a_set();
    tokio::time::sleep(NODES_REPORTED).await;
    let mut after = Vec::new();
    for _ in 0..3 {
        for _ in 0..ROUNDS {
            scale(&cluster, PODS).await;
            scale(&cluster, 0).await;
        }
        after.push(HEAP.current_usage());
    }
    let (first, last) = (after[0], after[2]);
    assert!(
        last < first + first / 100,
        "bytes after each {} pods: {after:?}",
        ROUNDS * PODS
    );
    cluster.stop().await;
}

/// A cluster in which nothing happens but heartbeats, with pods that run and one that waits, takes no more with time.
#[tokio::test(start_paused = true)]
async fn memory_does_not_grow_with_time() {
    let _alone = ALONE.lock().await;
    let cluster = with_a_set();
    scale(&cluster, PODS).await;
    let waits = json!({"metadata": {"name": "waits"}, "spec": {
        "nodeSelector": {"nowhere": "true"}, "containers": [{"name": "c", "image": "i"}]}});
    let created = cluster
        .api()
        .create(&kinds::PODS, "default", waits, &WriteOptions::default());
    created.expect("valid");
    tokio::time::sleep(NODES_REPORTED).await;
    let mut after = Vec::new();
    for _ in 0..6 {
        tokio::time::sleep(Duration::from_hours(1)).await;
        after.push(HEAP.current_usage());
    }
    let most = after.iter().max().copied().unwrap_or_default();
    assert!(
        most < after[0] + after[0] / 50,
        "bytes after each hour: {after:?}"
    );
    cluster.stop().await;
}
