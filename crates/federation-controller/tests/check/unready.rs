//! Replacements that have a node and never get ready: the replicas that they were to replace stay, and a condition shows it
//! (F20).

use cluster_informer::Health;
use federation_controller::check::{Check, check};
use serde_json::json;

use crate::world::{World, at, condition, condition_message, even, frs, frs_with, hold};

/// A move of 4 replicas from a to b, where 2 have been started and `ready` of them are ready.
fn moving(ready: u32) -> World {
    let mut world = World::new(frs(8, even(true)), &["a", "b"]);
    world.settle(1);
    world.now = 0;
    hold(&mut world.members[0], 8, 8);
    hold(&mut world.members[1], 2, ready);
    world
}

/// A check whose status is kept, and whose actions are not carried out.
fn look(world: &mut World) -> Check {
    let decided = world.check();
    world.previous = decided.status.clone();
    decided
}

fn recorded(decided: &Check) -> usize {
    let events = decided.events.iter();
    events
        .filter(|event| event.reason == "NotBecomingReady")
        .count()
}

#[test]
fn f20_replacements_that_never_get_ready_are_named_after_ten_minutes() {
    let mut world = moving(0);
    for (now, holds, events) in [(0, "", 0), (599, "", 0), (600, "True", 1), (660, "True", 0)] {
        world.now = now;
        let decided = look(&mut world);
        assert_eq!(condition(&decided, "NotBecomingReady"), holds, "at {now}");
        assert_eq!(condition(&decided, "MoveBlocked"), holds, "at {now}");
        assert_eq!(recorded(&decided), events, "at {now}");
    }
    let decided = world.check();
    let message = condition_message(&decided, "NotBecomingReady");
    assert!(message.contains("2 pods in b"), "{message}");
    hold(&mut world.members[1], 2, 2);
    let decided = look(&mut world);
    assert_eq!(condition(&decided, "NotBecomingReady"), "");
    assert_eq!(decided.status.clusters[1].internal.unready_since, None);
}

#[test]
fn f20_each_replica_that_becomes_ready_is_progress() {
    let mut world = moving(0);
    look(&mut world);
    world.now = 500;
    hold(&mut world.members[1], 2, 1);
    look(&mut world);
    for (now, holds) in [(1099, ""), (1100, "True")] {
        world.now = now;
        assert_eq!(
            condition(&look(&mut world), "NotBecomingReady"),
            holds,
            "at {now}"
        );
    }
}

#[test]
fn f20_only_scheduled_pods_of_a_current_view_count() {
    let mut world = moving(0);
    look(&mut world);
    world.now = 600;
    let pods = &mut world.members[1].view.pods;
    (pods.unscheduled, pods.unscheduled_since) = (2, vec![(at(590), 2)]);
    assert_eq!(condition(&world.check(), "NotBecomingReady"), "");
    let mut world = moving(0);
    look(&mut world);
    world.now = 600;
    let message = "401".to_owned();
    world.members[1].health = Health::Unauthorized { message };
    assert_eq!(condition(&world.check(), "NotBecomingReady"), "");
}

#[test]
fn f20_min_ready_seconds_are_added_to_the_deadline() {
    let spec = json!({ "replicas": 8, "minReadySeconds": 60, "placement": even(true) });
    let mut world = moving(0);
    world.frs = frs_with(spec);
    look(&mut world);
    for (now, holds) in [(659, ""), (660, "True")] {
        let decided = check(&world.snapshot(), at(now));
        assert_eq!(condition(&decided, "NotBecomingReady"), holds, "at {now}");
    }
}
