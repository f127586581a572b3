//! Whether the view is current, and the member healthy.

use super::*;

#[tokio::test(start_paused = true)]
async fn f39_a_quiet_member_without_bookmarks_is_current_and_a_stalled_one_is_listed_again() {
    let world = World::new([(SET_PATH, replica_set(3, 0))]);
    world.synced().await;
    let mut unconfirmed = 0;
    for _ in 0..600 {
        sleep(Duration::from_secs(1)).await;
        match world.informer.store.sync_state() {
            SyncState::Synced => {}
            SyncState::Unconfirmed => unconfirmed += 1,
            state => panic!("{state:?}"),
        }
    }
    // Every 95 s for 5 s, both watches at once.
    assert!((25..=40).contains(&unconfirmed), "{unconfirmed} s");
    assert_eq!(world.member.lock().lists(), 2, "nothing is listed again");
    world.member.lock().stalled = true;
    world
        .until("unconfirmed", || {
            world.informer.store.sync_state() == SyncState::Unconfirmed
        })
        .await;
    world.member.lock().remove(SET_PATH, "set");
    sleep(Duration::from_secs(2)).await;
    assert!(world.view().workload.is_some());
    sleep(Duration::from_secs(20)).await;
    assert_eq!(world.informer.store.sync_state(), SyncState::Synced);
    assert_eq!(world.view().workload, None, "a list has shown it");
    world.member.lock().stalled = false;
    world.synced().await;
}

#[tokio::test(start_paused = true)]
async fn f39_too_old_a_version_makes_the_view_stale_until_a_list_is_complete() {
    let world = World::new([
        (SET_PATH, replica_set(3, 1)),
        (POD_PATH, pod("p1", Some("n"))),
    ]);
    world.synced().await;
    {
        let mut member = world.member.lock();
        member.cut_watches();
        member.compacted = true;
        member.remove(POD_PATH, "p1");
    }
    world
        .until("stale", || {
            matches!(world.informer.store.sync_state(), SyncState::Stale { .. })
        })
        .await;
    assert_eq!(world.changes(), ["a"]);
    world
        .until("synced", || {
            world.informer.store.sync_state() == SyncState::Synced
        })
        .await;
    world
        .until("a change", || world.changes.0.lock().len() >= 2)
        .await;
    assert_eq!(world.changes(), ["a default/web Pods", "a"]);
    assert_eq!(world.view().pods.active, 0);
}

#[tokio::test(start_paused = true)]
async fn f33_watches_that_fail_make_the_view_stale_but_the_probe_decides_on_health() {
    let world = World::new([(SET_PATH, replica_set(3, 1))]);
    world.synced().await;
    {
        let mut member = world.member.lock();
        member.watches_down = true;
        member.cut_watches();
    }
    sleep(Duration::from_secs(29)).await;
    assert_eq!(world.informer.store.sync_state(), SyncState::Synced);
    assert!(
        world.changes().is_empty(),
        "a broken watch alone is not a change"
    );
    sleep(Duration::from_secs(9)).await;
    assert!(matches!(
        world.informer.store.sync_state(),
        SyncState::Stale { .. }
    ));
    assert_eq!(world.changes(), ["a"]);
    assert_eq!(world.informer.store.health(), Health::Healthy);
    world.member.lock().watches_down = false;
    world
        .until("synced", || {
            world.informer.store.sync_state() == SyncState::Synced
        })
        .await;
    assert_eq!(world.changes(), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn f33_a_lost_member_is_unreachable_since_its_first_failed_probe_and_comes_back() {
    let world = World::new([(SET_PATH, replica_set(3, 1))]);
    world.synced().await;
    world.lost().await;
    assert_eq!(world.changes(), ["a", "a"], "failing, then unreachable");
    assert_eq!(
        world.view().workload.map(|workload| workload.replicas),
        Some(3),
        "the view is kept"
    );
    let lists = {
        let mut member = world.member.lock();
        member.down = false;
        member.lists()
    };
    world
        .until("healthy", || {
            let store = &world.informer.store;
            let healthy = store.health() == Health::Healthy;
            assert!(
                !healthy
                    || store.sync_state() != SyncState::Synced
                    || world.member.lock().lists() > lists,
                "the view dates from before the outage"
            );
            healthy && store.sync_state() == SyncState::Synced
        })
        .await;
    assert_eq!(
        world.changes(),
        ["a", "a", "a"],
        "healthy, its view stale, listed again"
    );
}

fn lease(time: &str) -> serde_json::Value {
    let renewed = format!("2026-01-01T00:00:{time}.000000Z");
    json!({ "metadata": { "name": "n", "uid": "n" }, "spec": { "renewTime": renewed } })
}

/// A pod that is ready, on a node that has renewed its Lease.
async fn world_with_a_node() -> World {
    let mut pod = pod("p1", Some("n"));
    pod["status"]["conditions"] = json!([{ "type": "Ready", "status": "True" }]);
    let node = json!({
        "metadata": { "name": "n", "uid": "n" },
        "status": { "conditions": [{ "type": "Ready", "status": "True" }] },
    });
    let world = World::new([(SET_PATH, replica_set(1, 1)), (POD_PATH, pod)]);
    {
        let mut member = world.member.lock();
        member.may_list_nodes = true;
        member.put(NODE_PATH, node);
        member.put(LEASE_PATH, lease("00"));
    }
    world.synced().await;
    world
        .until("the pod counts", || world.view().pods.ready == 1)
        .await;
    world
}

/// The pod counts once its node has renewed its Lease, and not before.
async fn waits_for_the_lease(world: &World) {
    world.synced().await;
    sleep(Duration::from_secs(30)).await;
    assert_eq!(world.view().pods.doubtful, 1, "the node may be dead");
    world.member.lock().put(LEASE_PATH, lease("10"));
    world
        .until("the pod counts", || world.view().pods.ready == 1)
        .await;
}

/// An API server that starts has not read the roles yet: it rejects what it allows a moment later.
#[tokio::test(start_paused = true)]
async fn f39_nodes_that_a_starting_api_server_does_not_show_are_confirmed_all_the_same() {
    let world = world_with_a_node().await;
    world.lost().await;
    {
        let mut member = world.member.lock();
        (member.down, member.starting) = (false, true);
        member.cut_watches();
    }
    sleep(Duration::from_secs(60)).await;
    world.member.lock().starting = false;
    waits_for_the_lease(&world).await;
}

#[tokio::test(start_paused = true)]
async fn f39_a_restart_between_two_probes_does_not_make_nodes_forbidden() {
    let world = world_with_a_node().await;
    {
        let mut member = world.member.lock();
        member.starting = true;
        member.cut_watches();
    }
    sleep(Duration::from_secs(5)).await;
    assert_eq!(world.informer.store.health(), Health::Healthy);
    world.member.lock().starting = false;
    // It loses power before the nodes are listed again.
    world.lost().await;
    world.member.lock().down = false;
    waits_for_the_lease(&world).await;
}

#[tokio::test(start_paused = true)]
async fn f39_after_a_return_nodes_are_forbidden_only_if_they_still_are() {
    let world = world_with_a_node().await;
    {
        let mut member = world.member.lock();
        member.may_list_nodes = false;
        member.cut_watches();
    }
    world
        .until("the nodes are forbidden", || {
            let info = world.informer.store.cluster_info();
            matches!(info.nodes, crate::NodeInfo::Forbidden)
        })
        .await;
    world.lost().await;
    {
        let mut member = world.member.lock();
        (member.down, member.may_list_nodes) = (false, true);
    }
    waits_for_the_lease(&world).await;
}

#[tokio::test(start_paused = true)]
async fn f39_with_another_cluster_the_view_is_stale_until_it_is_listed() {
    let world = World::new([(SET_PATH, replica_set(3, 3))]);
    world.synced().await;
    let other = Arc::new(Mutex::new(Member::default()));
    other.lock().put(SET_PATH, replica_set(5, 5));
    other.lock().down = true;
    world.informer.client.replace(client(&other));
    world.settle().await;
    let store = &world.informer.store;
    assert!(
        matches!(store.sync_state(), SyncState::Stale { .. }),
        "{:?}",
        store.sync_state()
    );
    assert_eq!(
        world.view().workload.map(|workload| workload.replicas),
        Some(3)
    );
    assert!(matches!(store.health(), Health::Failing { .. }));
    other.lock().down = false;
    world.synced().await;
    assert_eq!(
        world.view().workload.map(|workload| workload.replicas),
        Some(5)
    );
    let requests = world.member.lock().requests.len();
    sleep(Duration::from_secs(300)).await;
    assert_eq!(
        world.member.lock().requests.len(),
        requests,
        "the first client is no longer used"
    );
}

#[tokio::test(start_paused = true)]
async fn f33_another_cluster_does_not_reset_the_failure_streak() {
    let world = World::new([(SET_PATH, replica_set(3, 3))]);
    world.synced().await;
    world.lost().await;
    let before = world.informer.store.health();
    world.informer.client.replace(client(&world.member));
    world.settle().await;
    assert_eq!(world.informer.store.health(), before);
}
