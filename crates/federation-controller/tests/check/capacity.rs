//! Full clusters: learning their capacity, replicas that stay pending, and replicas that return (F18, F32, F34).

use cluster_informer::ReplicaFailure;
use serde_json::json;

use crate::world::{World, at, condition, desired, even, frs};

#[test]
fn f10_f34_a_full_cluster_keeps_two_capacity_probes_and_others_get_the_rest() {
    let mut world = World::new(frs(50, even(true)), &["a", "b", "c"]);
    world.set_capacity("c", 6);
    world.step();
    assert_eq!(world.check().actions, [], "waiting is normal for X");
    assert_eq!(
        world.check().next_check,
        Some(at(60)),
        "looked at when X is over"
    );
    world.now = 60;
    world.settle(1);
    assert_eq!(world.placed(), [22, 22, 8], "6 and two that wait");
    assert_eq!(world.ready(), 50);
    assert_eq!(desired(&world.check()), [22, 22, 6]);
}

/// 50 replicas over three clusters, of which *c* has been found to have capacity for 6, ten minutes ago.
fn full_at_6() -> World {
    let mut world = World::new(frs(50, even(true)), &["a", "b", "c"]);
    world.set_capacity("c", 6);
    world.step();
    world.now = 60;
    world.settle(1);
    world.now += 600;
    world
}

#[test]
fn f34_capacity_grows_by_doubling_steps_without_a_dip() {
    let mut world = full_at_6();
    world.set_capacity("c", 40);
    let mut grown = vec![];
    for _ in 0..20 {
        world.step();
        assert!(world.ready() >= 50, "{:?}", world.placed());
        world.set_capacity("c", 40);
        grown.push(world.placed()[2]);
        world.now += 1;
    }
    let mut layout = world.placed();
    layout.sort_unstable();
    assert_eq!(layout, [16, 17, 17], "{grown:?}");
    assert!(grown.len() <= 20, "{grown:?}");
    assert_eq!(world.check().actions, []);
}

#[test]
fn f35_no_replica_moves_to_a_cluster_with_unscheduled_pods() {
    let mut world = full_at_6();
    let before = world.placed()[2];
    world.frs = frs(80, even(true));
    world.settle(1);
    assert_eq!(world.placed(), [37, 37, before]);
    assert_eq!(desired(&world.check()), [37, 37, 6]);
}

#[test]
fn f34_a_failed_attempt_backs_off_and_replicas_do_not_swing() {
    let mut world = full_at_6();
    world.set_capacity("c", 8);
    let mut history = vec![world.placed()];
    for _ in 0..600 {
        world.step();
        world.set_capacity("c", 8);
        if history.last() != Some(&world.placed()) {
            history.push(world.placed());
        }
        world.now += 10;
        assert!(world.ready() >= 50);
    }
    assert!(history.len() < 12, "a bounded number of moves: {history:?}");
    assert_eq!(world.placed(), [21, 21, 10]);
}

#[test]
fn f34_where_all_are_full_nothing_swings_and_new_capacity_is_noticed() {
    for rebalance in [true, false] {
        let names = ["a", "b", "c"];
        let mut world = World::new(frs(20, even(rebalance)), &names);
        for name in names {
            world.set_capacity(name, 6);
        }
        let mut history = vec![world.placed()];
        for _ in 0..600 {
            world.step();
            for name in names {
                world.set_capacity(name, 6);
            }
            if history.last() != Some(&world.placed()) {
                history.push(world.placed());
            }
            world.now += 10;
        }
        assert!(history.len() < 6, "a bounded number of moves: {history:?}");
        let status = world.check().status;
        assert_eq!(status.unplaced_replicas, 2);
        for name in names {
            let mut world = world.clone();
            for _ in 0..20 {
                world.set_capacity(name, 40);
                world.step();
                world.now += 10;
            }
            assert_eq!(world.ready(), 20, "{name}: {:?}", world.placed());
        }
    }
}

#[test]
fn f34_without_rebalance_nothing_moves_back_when_capacity_appears() {
    let mut world = World::new(frs(50, even(false)), &["a", "b", "c"]);
    world.set_capacity("c", 6);
    world.step();
    world.now = 60;
    world.settle(1);
    assert_eq!(world.placed(), [22, 22, 8]);
    world.set_capacity("c", 40);
    world.now += 60;
    world.settle(1);
    assert_eq!(
        world.placed(),
        [22, 22, 6],
        "what runs stays, and nothing waits any more"
    );
}

#[test]
fn f18_replicas_without_capacity_anywhere_stay_pending_and_are_reported() {
    let mut world = World::new(frs(50, even(true)), &["a", "b", "c"]);
    for name in ["a", "b", "c"] {
        world.set_capacity(name, 10);
    }
    world.step();
    let first = world.placed();
    world.now = 60;
    world.settle(1);
    assert_eq!(
        world.placed(),
        first,
        "nobody can take them: they stay where they wait"
    );
    let decided = world.check();
    assert_eq!(decided.status.unplaced_replicas, 20);
    assert_eq!(condition(&decided, "Placed"), "False");
}

#[test]
fn f32_pods_that_could_not_be_created_count_as_failed_once_the_status_is_current() {
    let mut world = World::new(frs(50, even(true)), &["a", "b", "c"]);
    world.settle(1);
    world.members[2].view.pods.active = 6;
    let set = world.members[2].view.workload.as_mut().unwrap();
    (
        set.status_replicas,
        set.ready_replicas,
        set.available_replicas,
    ) = (6, 6, 6);
    set.replica_failure = Some(Box::new(ReplicaFailure {
        since: Some(at(0)),
        message: "quota".into(),
    }));
    world.now = 61;
    set.observed_generation = 2;
    assert_eq!(
        world.check().actions,
        [],
        "the status answers an older spec"
    );
    world.members[2]
        .view
        .workload
        .as_mut()
        .unwrap()
        .observed_generation = 3;
    assert_eq!(desired(&world.check()), [22, 22, 6]);
}

/// Found by the simulation: with a watch of pods that was behind, three pods counted as pods without a node and as missing.
#[test]
fn f32_a_pod_that_has_ended_or_lacks_our_labels_does_not_lower_the_capacity_twice() {
    let only_a = json!({ "rebalance": false, "clusters": { "a": { "weight": 1 } } });
    let mut world = World::new(frs(26, only_a), &["a"]);
    world.set_capacity("a", 4);
    world.settle(1);
    world.now = 61;
    let capacity = |world: &World| world.check().status.clusters[0].capacity;
    let view = &mut world.members[0].view;
    let set = view.workload.as_mut().unwrap();
    set.observed_generation = set.generation;
    set.status_replicas = 19;
    set.replica_failure = Some(Box::new(ReplicaFailure {
        since: Some(at(0)),
        message: "quota".into(),
    }));
    (view.pods.active, view.pods.unscheduled) = (22, 18);
    view.pods.unscheduled_since = vec![(at(0), 18)];
    assert_eq!(capacity(&world), Some(4));

    // One of the pods with a node lacks our labels, and one is beyond the replicas, as in a rollout.
    let view = &mut world.members[0].view;
    let set = view.workload.as_mut().unwrap();
    set.replica_failure = None;
    (set.status_replicas, set.fully_labeled_replicas) = (27, 26);
    (view.pods.active, view.pods.unscheduled) = (26, 23);
    view.pods.unscheduled_since = vec![(at(0), 23)];
    assert_eq!(capacity(&world), Some(4));
}

#[test]
fn f34_a_full_cluster_gives_up_all_that_wait_at_once_although_the_newest_are_removed_first() {
    let only_a = json!({ "rebalance": false, "clusters": { "a": { "weight": 1 } } });
    let mut world = World::new(frs(32, only_a), &["a", "b", "c"]);
    world.set_capacity("a", 2);
    world.settle(1);
    world.frs = frs(32, even(false));
    world.now = 60;
    let mut placed = vec![];
    for _ in 0..3 {
        let pods = &mut world.members[0].view.pods;
        let failed = pods.unscheduled.min(2);
        pods.unscheduled_since = vec![(at(0), failed), (at(30), pods.unscheduled - failed)];
        world.step();
        placed.push(world.placed());
    }
    assert_eq!(placed, [[4, 10, 0], [4, 15, 15], [4, 15, 15]]);
}
