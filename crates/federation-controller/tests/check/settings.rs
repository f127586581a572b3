//! Settings of one FederatedReplicaSet: the surge of moves and the time that a pod may be unschedulable (F20, F34).

use serde_json::{Value, json};

use crate::world::{World, even, frs_with};

fn world(rescheduling: Value) -> World {
    let spec = json!({ "replicas": 30, "placement": even(true), "rescheduling": rescheduling });
    let mut world = World::new(frs_with(spec), &["a", "b", "c"]);
    world.settle(1);
    world
}

#[test]
fn f20_a_set_has_a_surge_of_its_own() {
    for (surge, most) in [
        (json!("25%"), 37),
        (json!("100%"), 60),
        (json!("1%"), 31),
        (json!(2), 32),
    ] {
        let mut world = world(json!({ "maxMoveSurge": surge }));
        world.members[2].draining = true;
        let mut seen = 0;
        while !world.step().actions.is_empty() {
            seen = seen.max(world.placed().iter().sum());
            assert!(world.ready() >= 30);
        }
        assert_eq!(world.placed(), [15, 15, 0], "{surge}");
        assert!(seen <= most, "{surge}: {seen}");
    }
}

/// The seconds after which replicas that a full cluster can't run are elsewhere.
fn rescheduled_after(rescheduling: Value) -> Option<i64> {
    let mut world = world(rescheduling);
    let full_at = world.now;
    world.set_capacity("c", 4);
    for _ in 0..600 {
        world.step();
        if world.ready() == 30 {
            return Some(world.now - full_at);
        }
        world.now += 1;
    }
    None
}

#[test]
fn f34_a_set_says_how_long_its_pods_may_be_unschedulable() {
    assert_eq!(rescheduled_after(json!({})), Some(60));
    for (seconds, expected) in [
        // The scheduler gets a moment to look at a pod.
        (json!(0), Some(1)),
        (json!(5), Some(5)),
        (json!(300), Some(300)),
        (json!("Never"), None),
    ] {
        let after = rescheduled_after(json!({ "unscheduledTimeoutSeconds": seconds }));
        assert_eq!(after, expected, "{seconds}");
    }
}

#[test]
fn f34_a_change_of_the_unscheduled_time_takes_effect_at_once() {
    let mut world = world(json!({ "unscheduledTimeoutSeconds": "Never" }));
    world.set_capacity("c", 4);
    world.now += 1000;
    assert!(world.step().actions.is_empty());
    let spec = json!({ "replicas": 30, "placement": even(true), "rescheduling": { "unscheduledTimeoutSeconds": 900 } });
    world.frs = frs_with(spec);
    assert!(!world.step().actions.is_empty());
}
