//! The example of document 000, second by second (L14, L15).

use std::time::Duration;

use federated_rollout::Speed;

use crate::model::{World, cluster::ModelPod};

/// `maxUnavailable` 3, `updatePortion` 2, `minDelay` 30 s, pods that start in 60 s.
fn example(replicas: usize) -> World {
    let speed = Speed {
        portion: 2,
        min_delay: Duration::from_secs(30),
    };
    World::settled(replicas, 3, Some(speed))
}

/// Steps each second until nothing is left to do, and returns when updates began.
fn starts(world: &mut World, restart: impl Fn(i64) -> bool) -> Vec<i64> {
    for second in 0..600 {
        if restart(second) {
            world.restart();
        }
        for _ in 0..8 {
            world.round();
        }
        assert!(
            world.cluster.available() + 3 >= world.replicas,
            "at {second} s"
        );
        world.wait(1);
    }
    world.cluster.starts.clone()
}

/// Two at once, and one more after 30 s, since three may be unavailable. Each time pods become available, as many more begin.
#[test]
fn l15_the_example_of_the_document_in_place() {
    let mut world = example(9);
    world.target = 4;
    let starts = starts(&mut world, |_| false);
    assert_eq!(starts, [0, 0, 30, 60, 60, 90, 120, 120, 150]);
}

/// A pod that is recreated takes longer by the time in which the old one shuts down.
#[test]
fn l15_the_example_of_the_document_recreated() {
    let mut world = example(9);
    world.target = 1;
    let starts = starts(&mut world, |_| false);
    assert_eq!(starts, [0, 0, 30, 65, 65, 95, 130, 130, 160]);
}

/// While clients leave a pod, it is unavailable, and its update has begun: the speed counts from then.
#[test]
fn l15_an_update_begins_when_clients_begin_to_leave_its_pod() {
    for (target, expected) in [
        (4, [0, 0, 30, 101, 101, 131, 202, 202, 232]),
        (1, [0, 0, 30, 106, 106, 136, 212, 212, 242]),
    ] {
        let mut world = example(9);
        (world.target, world.drain) = (target, 40);
        assert_eq!(starts(&mut world, |_| false), expected);
    }
}

#[test]
fn l15_restarts_of_the_controller_do_not_hasten_it() {
    for target in [1, 4] {
        let (mut restarted, mut other) = (example(9), example(9));
        (restarted.target, other.target) = (target, target);
        let each_second = starts(&mut restarted, |_| true);
        assert_eq!(each_second, starts(&mut other, |_| false));
    }
}

/// The speed limits the budget: without it, three begin at once.
#[test]
fn l14_without_a_speed_the_budget_alone_limits() {
    let mut world = World::settled(6, 3, None);
    world.target = 4;
    let starts = starts(&mut world, |_| false);
    assert_eq!(starts, [0, 0, 0, 60, 60, 60]);
}

/// The controller records two updates, and is away for 29 s. When it is back, no more than two begin in any 30 s.
#[test]
fn l15_what_was_recorded_counts_from_when_it_is_seen_to_begin() {
    let mut world = example(9);
    world.target = 4;
    while world.record.updates.is_empty() {
        world.round();
    }
    assert_eq!(world.record.updates.len(), 2);
    assert_eq!(world.cluster.starts, [0; 0], "it is recorded first");
    world.wait(29);
    world.restart();
    let starts = starts(&mut world, |_| false);
    assert_eq!(starts[..3], [29, 29, 59]);
}

/// A revision that never becomes ready uses the budget up; the next one replaces it at the full speed (L22).
#[test]
fn l22_a_bad_revision_does_not_lock_the_set() {
    for bad in [2, 5] {
        let mut world = example(9);
        world.target = bad;
        assert_eq!(starts(&mut world, |_| false).len(), 3);
        world.target = bad + 1;
        assert!(starts(&mut world, |_| false).len() > 9);
        world.converge();
        assert_eq!(world.cluster.available(), 9);
        let is_current = |pod: &ModelPod| pod.revision == Some(bad + 1);
        assert!(world.cluster.pods.iter().all(is_current));
    }
}
