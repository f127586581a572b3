//! What the controller waits for, and until when: each wait names its end, and none that has ended is shown.

use cluster_informer::Health;
use federation_controller::check::{Check, InvalidFrs, Outcome, reject};
use fedrs_api::{ClusterStatus, ClusterWait, FieldError, RejectionKind, WaitReason};
use jiff::Timestamp;
use serde_json::json;

use crate::world::{World, at, condition, condition_reason, even, frs, frs_with, hold};

fn unreachable(since: i64) -> Health {
    Health::Unreachable {
        since: at(since),
        message: "timed out".to_owned(),
    }
}

fn cluster<'a>(decided: &'a Check, name: &str) -> &'a ClusterStatus {
    let mut clusters = decided.status.clusters.iter();
    clusters.find(|cluster| cluster.name == name).unwrap()
}

fn wait(decided: &Check, name: &str, reason: WaitReason) -> Option<ClusterWait> {
    let mut waits = cluster(decided, name).waits.iter();
    waits.find(|wait| wait.reason == reason).cloned()
}

/// When the wait for `reason` in `name` ends.
fn until(decided: &Check, name: &str, reason: WaitReason) -> Option<Timestamp> {
    Some(wait(decided, name, reason)?.until?.0)
}

#[test]
fn f6_nothing_is_waited_for_in_a_settled_set() {
    let decided = World::settled(9).check();
    assert!(decided.status.clusters.iter().all(|c| c.waits.is_empty()));
}

#[test]
fn f33_a_settled_set_is_checked_when_a_cluster_is_stable() {
    let mut world = World::settled(9);
    assert_eq!(world.check().next_check, None);
    world.members[0].stabilizes_at = Some(at(world.now + 60));
    let decided = world.check();
    let stable = until(&decided, "a", WaitReason::StabilizationWindow);
    assert_eq!(stable, Some(at(world.now + 60)));
    assert_eq!(decided.next_check, stable, "nothing else may happen then");
    // The clock was corrected: it is ahead of the one that outages are measured by.
    world.now += 70;
    let again = at(world.now) + world.settings.recheck_interval;
    assert_eq!(world.check().next_check, Some(again));
}

#[test]
fn f33_a_member_that_dies_while_it_drains_says_so_and_until_when_it_counts() {
    let mut world = World::settled(30);
    world.members[0].draining = true;
    world.step();
    world.now = 20;
    world.members[0].health = unreachable(10);
    let decided = world.check();
    let a = cluster(&decided, "a");
    assert_eq!(
        a.message,
        "draining, on hold: the API server is unreachable; replicas as last seen"
    );
    let until = until(&decided, "a", WaitReason::GracePeriod);
    assert_eq!(until, Some(at(70)));
}

#[test]
fn f33_a_removed_member_without_replicas_has_none_to_reschedule() {
    let mut world = World::settled(9);
    hold(&mut world.members[0], 0, 0);
    world.members[0].draining = true;
    world.settle(1);
    world.members[0].removed = Some(at(world.now));
    let decided = world.check();
    assert_eq!(cluster(&decided, "a").waits, []);
    assert_eq!(condition(&decided, "Reconciling"), "");
}

#[test]
fn f4_an_invalid_spec_waits_for_nothing() {
    let mut world = World::settled(9);
    world.now = 20;
    world.members[0].health = unreachable(10);
    world.step();
    assert!(!world.previous.clusters[0].waits.is_empty());
    let errors = [FieldError {
        field: "spec.selector".to_owned(),
        message: "is wrong".to_owned(),
    }];
    world.now = 200;
    let refresh = reject(
        &InvalidFrs {
            errors: &errors,
            generation: Some(2),
            preferences_hash: &None,
            previous: &world.previous,
            members: &world.members,
            settings: &world.settings,
        },
        at(world.now),
    );
    assert!(refresh.status.clusters.iter().all(|c| c.waits.is_empty()));
}

#[test]
fn f34_pods_that_stay_to_detect_capacity_are_not_said_to_go() {
    let mut world = World::settled(9);
    world.set_capacity("b", 1);
    let decided = world.check();
    let until = until(&decided, "b", WaitReason::UnscheduledTimeout);
    assert_eq!(until, Some(at(world.now + 60)));
    world.now += 100;
    world.settle(1);
    let decided = world.check();
    assert_eq!(wait(&decided, "b", WaitReason::UnscheduledTimeout), None);
    let waits = &cluster(&decided, "b").waits;
    let reasons: Vec<_> = waits.iter().map(|wait| wait.reason).collect();
    assert_eq!(reasons, [WaitReason::CapacityProbe; 2]);
    assert_eq!(waits[0].until, None);
    let next = waits[1].until.as_ref().unwrap().0;
    assert!(next > at(world.now));
    assert_eq!(
        decided.next_check,
        Some(next),
        "the end of the wait is seen"
    );
    world.now = next.as_second() - at(0).as_second();
    let decided = world.check();
    assert_eq!(cluster(&decided, "b").waits.len(), 1);
}

#[test]
fn f20_a_move_says_what_the_surge_holds_back() {
    let mut world = World::settled(40);
    world.members[0].draining = true;
    let decided = world.check();
    assert!(wait(&decided, "a", WaitReason::Replacements).is_some());
    let waits = |name| wait(&decided, name, WaitReason::Surge).is_some();
    assert!(waits("b") || waits("c"));
}

#[test]
fn a_paused_set_waits_for_nothing() {
    let mut world = World::settled(9);
    world.frs = frs_with(json!({ "replicas": 12, "paused": true, "placement": even(true) }));
    let decided = world.check();
    assert!(decided.status.clusters.iter().all(|c| c.waits.is_empty()));
}

fn rejected() -> Outcome {
    Outcome::Rejected {
        kind: RejectionKind::Rejected,
        message: "admission webhook \"policy\" denied the request".to_owned(),
    }
}

#[test]
fn f28_a_set_that_every_member_rejects_is_not_accepted() {
    let mut world = World::new(frs(2, even(true)), &["a", "b", "c"]);
    world.step_unless(|_| Some(rejected()));
    let decided = world.check();
    assert_eq!(
        condition(&decided, "Accepted"),
        "True",
        "others may take it"
    );
    assert_eq!(condition(&decided, "Stalled"), "");
    let creation = decided.status.clusters.iter().find_map(|cluster| {
        let mut waits = cluster.waits.iter();
        waits.find(|wait| wait.reason == WaitReason::Backoff)
    });
    assert_eq!(creation.unwrap().until.as_ref().unwrap().0, at(60));
    for _ in 0..300 {
        world.now += 1;
        world.step_unless(|_| Some(rejected()));
    }
    let decided = world.check();
    for type_ in ["Accepted", "Stalled"] {
        assert_eq!(condition_reason(&decided, type_), "WorkloadRejected");
    }
    assert_eq!(condition(&decided, "Accepted"), "False");
    assert_eq!(condition(&decided, "Stalled"), "True");
    assert_eq!(condition(&decided, "Reconciling"), "");
    assert!(decided.next_check.is_some(), "it is tried again");
    world.now += 600;
    world.settle(60);
    let decided = world.check();
    assert_eq!(condition(&decided, "Accepted"), "True");
    assert_eq!(condition(&decided, "Ready"), "True");
}
