//! A whole informer over a member in memory, on paused time: the store's state and the reported changes.

#[path = "informer_tests/deployments.rs"]
mod deployments;
#[path = "informer_tests/member.rs"]
mod member;
#[path = "informer_tests/views.rs"]
mod views;

use fedrs_api::WorkloadKey;
use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::timeout;

use self::member::*;
use super::*;
use crate::{Health, MemberView, SyncState, WorkloadState};

#[tokio::test(start_paused = true)]
async fn the_first_lists_report_the_cluster_not_each_object() {
    let world = World::new([
        (SET_PATH, replica_set(3, 1)),
        (POD_PATH, pod("p1", Some("n"))),
        (POD_PATH, pod("p2", None)),
    ]);
    assert_eq!(world.informer.store.sync_state(), SyncState::NotSynced);
    assert_eq!(world.informer.store.health(), Health::Unknown);
    world.settle().await;
    assert_eq!(world.informer.store.sync_state(), SyncState::Synced);
    assert_eq!(world.changes(), ["a", "a"], "synced, and healthy");
    let totals = world.informer.store.totals(1);
    assert_eq!((totals.workloads, totals.replicas), (1, 3));
    assert_eq!(totals.first, [WorkloadKey::new("default", "web")]);
    let view = world.view();
    assert_eq!(
        view.workload
            .map(|workload| (workload.replicas, workload.available_replicas)),
        Some((3, 1))
    );
    assert_eq!((view.pods.active, view.pods.unscheduled), (2, 1));
    // Created seven seconds in the future of our clock: clamped to now.
    assert_eq!(view.pods.unscheduled_since, [(Timestamp::UNIX_EPOCH, 1)]);
}

#[tokio::test(start_paused = true)]
async fn f22_changes_are_reported_by_kind() {
    let world = World::new([(SET_PATH, replica_set(3, 1))]);
    world.synced().await;
    sleep(Duration::from_secs(8)).await;
    world.member.lock().put(POD_PATH, pod("p1", None));
    world.settle().await;
    assert_eq!(
        world.changes(),
        ["a default/web PodUnscheduled { since: 1970-01-01T00:00:08Z }"],
        "since it was first seen, and not by the member's clock"
    );
    world.member.lock().put(POD_PATH, pod("p1", Some("n")));
    world.member.lock().put(SET_PATH, replica_set(3, 2));
    world.settle().await;
    let mut changes = world.changes();
    changes.sort();
    assert_eq!(
        changes,
        ["a default/web MoreAvailable", "a default/web Pods"]
    );
    world.member.lock().put(SET_PATH, replica_set(9, 2));
    world.settle().await;
    assert_eq!(world.changes(), ["a default/web Drift"]);
    world.member.lock().send(
        POD_PATH,
        "BOOKMARK",
        &json!({"metadata": {"resourceVersion": "999"}}),
    );
    world.member.lock().put(SET_PATH, replica_set(9, 2));
    world.settle().await;
    assert!(
        world.changes().is_empty(),
        "a bookmark and a write that changed nothing"
    );
    world.member.lock().remove(POD_PATH, "p1");
    world.member.lock().remove(SET_PATH, "set");
    world.settle().await;
    let mut changes = world.changes();
    changes.sort();
    assert_eq!(changes, ["a default/web Drift", "a default/web Pods"]);
    let gone = world.view();
    assert_eq!((gone.workload, gone.pods), Default::default());
}

#[tokio::test(start_paused = true)]
async fn f29_the_response_to_our_own_write_is_not_drift() {
    let world = World::new([(SET_PATH, replica_set(3, 1))]);
    world.synced().await;
    let mut written = replica_set(5, 1);
    written["metadata"]["resourceVersion"] = json!((world.member.lock().version + 1).to_string());
    world
        .informer
        .store
        .observe_write(serde_json::from_value::<WorkloadState>(written).unwrap());
    assert_eq!(
        world.view().workload.map(|workload| workload.replicas),
        Some(5)
    );
    world.member.lock().put(SET_PATH, replica_set(5, 1));
    world.settle().await;
    assert!(world.changes().is_empty());
    world
        .informer
        .store
        .observe_deletion(&WorkloadKey::new("default", "web"), "set");
    world.member.lock().put(SET_PATH, replica_set(5, 2));
    world.settle().await;
    assert_eq!(world.view().workload, None);
}

#[tokio::test(start_paused = true)]
async fn objects_that_cannot_be_read_are_kept_through_a_relist() {
    let world = World::new([
        (SET_PATH, replica_set(3, 1)),
        (POD_PATH, pod("p1", Some("n"))),
    ]);
    world.synced().await;
    {
        let mut member = world.member.lock();
        let mut unreadable = replica_set(4, 1);
        unreadable["spec"]["replicas"] = json!("four");
        member.put(SET_PATH, unreadable);
        let mut unreadable = pod("p1", None);
        unreadable["status"] = json!([1]);
        member.put(POD_PATH, unreadable);
        member.cut_watches();
        member.compacted = true;
    }
    world
        .until("stale", || {
            matches!(world.informer.store.sync_state(), SyncState::Stale { .. })
        })
        .await;
    world
        .until("synced", || {
            world.informer.store.sync_state() == SyncState::Synced
        })
        .await;
    assert_eq!(
        world.view().workload.map(|workload| workload.replicas),
        Some(3)
    );
    assert_eq!(
        (world.view().pods.active, world.view().pods.unscheduled),
        (1, 0)
    );
}

#[tokio::test(start_paused = true)]
async fn the_task_ends_when_cancelled() {
    let World {
        informer, cancel, ..
    } = World::new([]);
    cancel.cancel();
    timeout(Duration::from_secs(1), informer.task)
        .await
        .expect("it ends in time")
        .expect("without a panic");
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_gives_the_same_requests() {
    let mut runs = Vec::new();
    for _ in 0..2 {
        let world = World::new([(SET_PATH, replica_set(3, 1))]);
        world.synced().await;
        world.member.lock().cut_watches();
        sleep(Duration::from_mins(10)).await;
        runs.push(world.member.lock().requests.clone());
        world.cancel.cancel();
        world.informer.task.await.expect("no panic");
    }
    assert!(runs[0].len() > 60);
    assert_eq!(runs[0], runs[1]);
}

#[tokio::test(start_paused = true)]
async fn renewed_credentials_are_probed_at_once_and_keep_the_view() {
    let world = World::new([(SET_PATH, replica_set(3, 3))]);
    world.synced().await;
    let requests = |world: &World| world.member.lock().requests.clone();
    let before = requests(&world).len();
    world.informer.client.renew(client(&world.member));
    world.settle().await;
    assert_eq!(requests(&world)[before..], ["/readyz"]);
    assert_eq!(world.changes(), [""; 0]);
    world.member.lock().put(SET_PATH, replica_set(4, 3));
    world.settle().await;
    assert_eq!(
        world.view().workload.map(|workload| workload.replicas),
        Some(4),
        "the open watch continues"
    );

    let refused = Arc::new(Mutex::new(Member {
        down: true,
        ..Member::default()
    }));
    world.informer.client.renew(client(&refused));
    sleep(Duration::from_secs(300)).await;
    let store = &world.informer.store;
    assert!(
        matches!(store.health(), Health::Unreachable { .. }),
        "only the latest client is used"
    );
    assert!(
        refused
            .lock()
            .requests
            .iter()
            .any(|uri| uri.contains("watch=true"))
    );
}
