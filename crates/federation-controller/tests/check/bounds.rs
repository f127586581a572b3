//! Preferences that are tightened while replicas run: they bind once replacements run, or at once if they are explicit
//! maximums (F3, F20).

use serde_json::{Value, json};

use crate::world::{World, condition, even, frs, hold};

/// 20 replicas, all of which run in a; b has none yet.
fn all_in_a(placement: Value) -> World {
    let mut world = World::new(frs(20, placement), &["a", "b"]);
    hold(&mut world.members[0], 20, 20);
    world.step();
    hold(&mut world.members[0], 20, 20);
    hold(&mut world.members[1], 0, 0);
    world
}

#[test]
fn f20_a_maximum_binds_once_replacements_run() {
    let placement =
        json!({ "clusters": { "a": { "maxReplicas": 5, "weight": 1 }, "b": { "weight": 1 } } });
    let mut world = all_in_a(placement);
    world.members[1].schedulable = false;
    let decided = world.step();
    assert_eq!(
        world.placed(),
        [20, 0],
        "b may have it, and can't take it now"
    );
    assert_eq!(condition(&decided, "MoveBlocked"), "True");
    assert_eq!(condition(&decided, "Placed"), "False");
    world.members[1].schedulable = true;
    world.settle(1);
    assert_eq!(world.placed(), [5, 15]);
}

#[test]
fn f18_explicit_maximums_remove_replicas_that_no_cluster_can_take() {
    for (placement, expected) in [
        (
            json!({ "clusters": { "*": { "maxReplicas": 5, "weight": 1 } } }),
            [5, 5],
        ),
        (
            json!({ "rebalance": true, "clusters": { "a": { "weight": 0, "minReplicas": 2, "maxReplicas": 2 } } }),
            [2, 0],
        ),
        (
            json!({ "clusters": { "a": { "maxReplicas": 0 }, "b": { "maxReplicas": 5, "weight": 1 } } }),
            [0, 5],
        ),
    ] {
        let mut world = all_in_a(placement.clone());
        world.settle(1);
        assert_eq!(world.placed(), expected, "{placement}");
    }
}

#[test]
fn f20_a_full_cluster_does_not_remove_running_replicas_elsewhere() {
    let mut world = all_in_a(even(true));
    world.set_capacity("b", 3);
    for _ in 0..300 {
        world.step();
        world.now += 1;
        assert!(
            world.ready() >= 20,
            "at {}: {:?}",
            world.now,
            world.placed()
        );
    }
    assert_eq!(world.placed(), [17, 5], "two probe");
}
