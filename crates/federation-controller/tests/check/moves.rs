//! Checks while nothing fails: creation, moves, settled sets (F20, F21, F27).

use federation_controller::check::SetChange;
use fedrs_api::{ClusterReason, WaitReason};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;

use crate::world::{World, at, condition, even, frs, frs_with, hold};

#[test]
fn f20_an_adopted_set_uses_the_surge_with_all_its_replicas_until_they_are_removed() {
    let mut world = World::new(frs(20, even(false)), &["a", "b"]);
    world.set_capacity("b", 8);
    // Twelve of its pods have had no node for long: they are removed by a write after the one that adopts it.
    hold(&mut world.members[1], 20, 8);
    let pods = &mut world.members[1].view.pods;
    (pods.unscheduled, pods.unscheduled_since) = (12, vec![(at(-600), 12)]);
    for _ in 0..6 {
        let before = world.placed();
        world.step();
        // Any write of a step may be the first one.
        let most = before.iter().zip(world.placed());
        let requested: u32 = most.map(|(before, after)| *before.max(&after)).sum();
        // The surge of 5, and two probes in the full cluster.
        assert!(requested <= 27, "{requested}: {before:?}");
    }
    assert_eq!(world.placed(), [12, 10]);
}

#[test]
fn f21_a_new_set_is_created_everywhere_at_once() {
    let world = World::new(frs(50, even(true)), &["a", "b", "c"]);
    let decided = world.check();
    let mut created: Vec<u32> = decided
        .actions
        .iter()
        .map(|action| match action.change {
            SetChange::Create { replicas, .. } => replicas,
            ref other => panic!("{other:?}"),
        })
        .collect();
    created.sort_unstable();
    assert_eq!(created, [16, 17, 17]);
    assert!(
        decided.next_check.is_some(),
        "looked at again until it runs"
    );
}

#[test]
fn f37_a_set_that_is_not_settled_is_checked_every_minute() {
    let world = World::new(frs(50, even(true)), &["a", "b", "c"]);
    let decided = world.check();
    assert_eq!(decided.actions.len(), 3);
    assert_eq!(decided.next_check, Some(at(60)));
}

#[test]
fn f27_a_settled_set_is_checked_until_a_lost_scale_up_can_not_be_carried_out_any_more() {
    let mut world = World::new(frs(50, even(true)), &["a", "b", "c"]);
    world.settle(1);
    let settled = world.previous.clusters[0].internal.requested_replicas;
    let open = |world: &mut World, replicas| {
        let set = world.members[0].view.workload.as_mut().unwrap();
        set.open_scale_up = replicas;
        let decided = world.check();
        let requested = decided.status.clusters[0].internal.requested_replicas;
        (decided.actions.len(), requested, decided.next_check)
    };
    let next = Some(at(world.now + 60));
    assert_eq!(open(&mut world, Some(20)), (0, Some(20), next));
    assert_eq!(open(&mut world, None), (0, settled, None));
}

#[test]
fn f27_a_settled_set_is_not_written() {
    let mut world = World::new(frs(50, even(true)), &["a", "b", "c"]);
    world.settle(1);
    let decided = world.check();
    assert_eq!(decided.actions, []);
    assert_eq!(decided.next_check, None);
    assert_eq!(condition(&decided, "Ready"), "True");
    assert_eq!(condition(&decided, "Placed"), "True");
    assert_eq!(condition(&decided, "Reconciling"), "");
    assert_eq!(decided.status.summary, "3/3");
}

#[test]
fn f20_replicas_of_a_pending_scale_down_are_not_available() {
    let mut world = World::new(frs(50, even(true)), &["a", "b"]);
    world.settle(1);
    hold(&mut world.members[0], 30, 30);
    world.step();
    assert_eq!(world.placed(), [25, 25]);
    // The member's controller has not caught up: its status still says 30.
    let set = world.members[0].view.workload.as_mut().unwrap();
    (
        set.available_replicas,
        set.ready_replicas,
        set.status_replicas,
        set.observed_generation,
        set.generation,
    ) = (30, 30, 30, 3, 4);
    world.members[0].view.pods.ready = 30;
    hold(&mut world.members[1], 27, 22);
    assert!(
        !world
            .check()
            .actions
            .iter()
            .any(|action| action.member == "b"
                && matches!(action.change, SetChange::Scale { to, .. } if to < 25)),
        "only 25 of a's 30 will be left"
    );
}

#[test]
fn f20_while_writes_of_a_dead_process_may_arrive_nothing_that_runs_is_removed() {
    let mut world = World::new(frs(30, even(true)), &["a", "b"]);
    world.settle(1);
    world.frs = frs(20, even(true));
    // Of those in b, five do not run: they can go, by a write that fails if they run by then.
    hold(&mut world.members[1], 15, 10);
    world.keeps_running_until = Some(world.now + 15);
    let decided = world.step();
    assert_eq!(decided.next_check, Some(at(world.now + 15)));
    assert_eq!(world.placed(), [15, 10]);
    let mut waits = decided.status.clusters[0].waits.iter();
    let wait = waits.find(|wait| wait.reason == WaitReason::EarlierWrites);
    let until = wait.unwrap().until.as_ref().unwrap().0;
    assert_eq!(until, at(world.now + 15));
    world.settle(1);
    assert_eq!(world.placed(), [15, 10]);
    world.now += 15;
    world.settle(1);
    assert_eq!(world.placed(), [10, 10]);
}

#[test]
fn f20_a_smaller_n_says_until_when_writes_of_a_dead_process_may_arrive() {
    let mut world = World::new(frs(30, even(true)), &["a", "b"]);
    world.settle(1);
    world.frs = frs(20, even(true));
    world.keeps_running_until = Some(world.now + 15);
    let decided = world.step();
    for cluster in &decided.status.clusters {
        let reason = ClusterReason::WaitingForEarlierWrites;
        assert!(
            cluster.message.ends_with(
                "keeps 5 extra replicas until it is known what happened before the controller started, or before the host was restored"
            ),
            "{}",
            cluster.message
        );
        assert_eq!(cluster.reason, Some(reason));
        let waits: Vec<_> = cluster.waits.iter().map(|wait| wait.reason).collect();
        assert_eq!(waits, [WaitReason::EarlierWrites]);
        assert_eq!(cluster.waits[0].until, Some(Time(at(world.now + 15))));
    }
    world.now += 15;
    world.settle(1);
    assert_eq!(world.placed(), [10, 10]);
}

#[test]
fn paused_changes_nothing() {
    let world = World::new(frs_with(json!({ "replicas": 5, "paused": true })), &["a"]);
    let decided = world.check();
    assert_eq!(decided.actions, []);
    assert_eq!(condition(&decided, "Paused"), "True");
}
