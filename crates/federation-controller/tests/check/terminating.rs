//! A local ReplicaSet that hangs in its deletion: after `unscheduledTimeout` its replicas are rescheduled, and its pods run
//! until it is gone (F28, F31).

use cluster_informer::{Deletion, WorkloadView};
use fedrs_api::ClusterReason;
use serde_json::json;

use crate::world::{World, at, condition, condition_message, even, frs, frs_with, hold};

/// Twelve replicas in a, b and c; the set in c is being deleted since 0 s, and `running` of its replicas still run.
fn terminating(replicas: i32, running: u32) -> World {
    let mut world = World::new(frs(replicas, even(true)), &["a", "b", "c"]);
    world.settle(1);
    world.now = 0;
    terminate(&mut world, running);
    world
}

fn terminate(world: &mut World, running: u32) {
    let replicas = world.members[2].view.workload.as_ref().unwrap().replicas;
    hold(&mut world.members[2], replicas, running);
    let member = &mut world.members[2].view;
    member.pods.active = running;
    let set = member.workload.as_mut().unwrap();
    set.status_replicas = running;
    set.deletion = Some(Box::new(Deletion {
        since: at(0),
        finalizers: vec!["foregroundDeletion".to_owned()],
    }));
}

/// Steps each second until `until`; what a, b and c have.
fn placed_at(world: &mut World, until: i64) -> Vec<u32> {
    while world.now < until {
        world.now += 1;
        world.step();
    }
    world.placed()
}

#[test]
fn f28_what_cannot_be_created_again_goes_elsewhere_after_x_and_returns_when_the_set_is_gone() {
    let mut world = terminating(12, 1);
    assert_eq!(placed_at(&mut world, 59)[..2], [4, 4]);
    let waiting = world.check();
    let message = condition_message(&waiting, "Reconciling");
    assert!(
        message.contains(
            "for the deletion of the ReplicaSet, which waits for finalizer foregroundDeletion"
        ),
        "{message}"
    );
    let placed = placed_at(&mut world, 80);
    assert_eq!(placed[0] + placed[1], 12, "one still runs, and will go");
    let decided = world.check();
    let cluster = &decided.status.clusters[2];
    assert_eq!(cluster.reason, Some(ClusterReason::ReplicaSetTerminating));
    assert_eq!(
        (cluster.desired_replicas, cluster.available_replicas),
        (0, 1)
    );
    assert!(
        cluster.message.contains("finalizer foregroundDeletion"),
        "{}",
        cluster.message
    );
    assert_eq!(decided.next_check, None, "nothing is left to do but wait");
    terminate(&mut world, 0);
    let placed = placed_at(&mut world, 100);
    assert_eq!(placed[0] + placed[1], 12, "{placed:?}");
    // It is gone at last.
    world.members[2].view = WorkloadView::default();
    world.settle(1);
    assert_eq!(world.placed(), [4, 4, 4]);
}

#[test]
fn f20_replicas_of_a_set_that_is_being_deleted_stay_until_others_replace_them() {
    let mut world = terminating(12, 4);
    assert_eq!(placed_at(&mut world, 30), [4, 4, 4]);
    // Those that run will go at once when it is gone.
    assert_eq!(placed_at(&mut world, 90), [6, 6, 4]);
    let decided = world.check();
    assert_eq!(condition(&decided, "Ready"), "True");
    assert_eq!(condition(&decided, "Reconciling"), "");
    assert_eq!(decided.next_check, None, "nothing is left to do but wait");
    world.frs = frs(6, even(true));
    assert_eq!(placed_at(&mut world, 3700), [3, 3, 4]);
}

#[test]
fn f18_what_only_runs_in_a_set_that_is_being_deleted_has_no_place() {
    let mut world = terminating(12, 4);
    world.set_capacity("a", 4);
    world.set_capacity("b", 5);
    let placed = placed_at(&mut world, 400);
    let decided = world.check();
    assert_eq!((world.ready(), placed[2]), (13, 4));
    assert_eq!(decided.status.unplaced_replicas, 3);
    assert_eq!(condition(&decided, "Ready"), "False");
}

#[test]
fn f20_a_drain_goes_on_while_a_set_elsewhere_hangs_in_its_deletion() {
    let mut world = World::new(frs(12, even(false)), &["a", "b", "c", "d"]);
    world.settle(1);
    world.now = 0;
    terminate(&mut world, 3);
    world.members[1].draining = true;
    while world.now < 200 {
        world.now += 1;
        let before: u32 = world.ready();
        world.step();
        let reliable = world.ready() - 3;
        assert!(reliable >= before.min(12) - 3, "{:?}", world.placed());
    }
    assert_eq!(world.placed(), [6, 0, 3, 6]);
}

#[test]
fn f38_a_deletion_that_hangs_is_reported_once() {
    let mut world = terminating(12, 4);
    let mut reported = Vec::new();
    while world.now < 300 {
        world.now += 1;
        let events = world.step().events.into_iter();
        let events = events.filter(|event| event.reason == "ReplicaSetTerminating");
        reported.extend(events.map(|event| (world.now, event.message)));
    }
    let message = "c: the ReplicaSet has been terminating since 2027-01-15T08:00:00Z \
                   and waits for finalizer foregroundDeletion (until its pods are gone)";
    assert_eq!(reported, [(60, message.to_owned())]);
}

#[test]
fn f18_without_another_cluster_the_replicas_have_no_place() {
    let only_c = json!({ "clusters": { "c": { "weight": 1 } } });
    let mut world = World::new(
        frs_with(json!({ "replicas": 4, "placement": only_c })),
        &["a", "b", "c"],
    );
    world.settle(1);
    world.now = 0;
    terminate(&mut world, 0);
    placed_at(&mut world, 90);
    let decided = world.check();
    assert_eq!(decided.status.unplaced_replicas, 4);
    world.members[2].view = WorkloadView::default();
    world.settle(1);
    assert_eq!(world.placed(), [0, 0, 4]);
}

#[test]
fn f20_nothing_elsewhere_is_removed_for_replicas_of_a_set_that_is_being_deleted() {
    let mut world = terminating(12, 4);
    world.members[1].draining = true;
    assert_eq!(
        placed_at(&mut world, 50)[1],
        4,
        "those of c may go at any time"
    );
    hold(&mut world.members[2], 4, 4);
    assert_eq!(placed_at(&mut world, 60), [6, 0, 6]);
}
