//! Local ReplicaSets that another writer changes as well: restored, but never in a loop (F29, F31).

use cluster_informer::WorkloadView;
use federation_controller::check::{Outcome, Outcomes, with_outcomes};
use fedrs_api::{ClusterInternalState, ClusterStatus};

use serde_json::json;

use crate::world::{DESIRED, World, at, condition, condition_message, frs, hold, running};

/// Another writer scales the set in a to 7.
fn scale_externally(world: &mut World) {
    hold(&mut world.members[0], 7, 7);
    let set = world.members[0].view.workload.as_mut().unwrap();
    set.generation += 1;
    set.observed_generation += 1;
}

/// Steps 30 replicas to where they should be, with no fewer running and no more than the surge requested.
fn settles_within_surge(world: &mut World) {
    for _ in 0..20 {
        world.step();
        let placed = world.placed();
        let requested: u32 = placed.iter().sum();
        assert!(
            requested <= 37,
            "30 and a surge of 25 %, not {requested}: {placed:?}"
        );
        assert!(world.ready() >= 30, "{placed:?}");
    }
}

#[test]
fn f29_repeated_external_changes_are_repaired_with_backoff() {
    let mut world = World::settled(9);
    world.now = 100;
    let mut repaired = Vec::new();
    while world.now < 400 {
        if world.placed()[0] == 3 {
            scale_externally(&mut world);
        }
        let decided = world.step();
        if let [action] = &decided.actions[..] {
            assert!(action.repairs && action.member == "a", "{action:?}");
            repaired.push(world.now - 100);
        } else {
            let again = decided.next_check.unwrap();
            assert!(
                again > at(world.now),
                "looked at again when the pause is over"
            );
        }
        let disturbances = decided.status.clusters[0].internal.writes.drift_count;
        assert_eq!(
            condition(&decided, "Contended") == "True",
            disturbances >= 5
        );
        world.now += 1;
    }
    assert_eq!(repaired, [0, 10, 30, 70, 130, 190, 250]);
}

#[test]
fn f20_what_an_earlier_leader_requested_and_did_not_publish_uses_the_surge() {
    let mut world = World::settled(30);
    let weight = |weight| json!({ "weight": weight });
    let clusters = json!({ "a": weight(1), "b": weight(8), "c": weight(1) });
    world.frs = frs(30, json!({ "rebalance": true, "clusters": clusters }));
    // It was moving replicas from b and c to a, all with a surge of 7, and died before its first status.
    for (member, replicas) in world.members.iter_mut().zip([24, 3, 10]) {
        let generation = member.view.workload.as_ref().unwrap().generation;
        hold(member, replicas, replicas);
        let set = member.view.workload.as_mut().unwrap();
        set.generation = generation + i64::from(replicas != 10);
        set.observed_generation = set.generation;
    }
    settles_within_surge(&mut world);
    assert_eq!(world.placed(), [3, 24, 3]);
}

#[test]
fn f20_replicas_that_a_restored_status_does_not_know_use_the_surge_while_they_stay() {
    let mut world = World::settled(30);
    // The status is of before all replicas went to a: what it should have beyond its share stays until others run.
    for (member, replicas) in world.members.iter_mut().zip([30, 0, 0]) {
        let generation = member.view.workload.as_ref().unwrap().generation;
        hold(member, replicas, replicas);
        let set = member.view.workload.as_mut().unwrap();
        set.generation = generation + 1;
        set.observed_generation = set.generation;
    }
    settles_within_surge(&mut world);
    assert_eq!(world.placed(), [10, 10, 10]);
}

#[test]
fn f20_replicas_that_a_restored_status_does_not_know_use_the_surge_however_slow_their_replacements_start()
 {
    let mut world = World::settled(30);
    // The status is of before all replicas went to a, by one write or by several.
    for (member, replicas) in world.members.iter_mut().zip([30, 0, 0]) {
        let generation = member.view.workload.as_ref().unwrap().generation;
        hold(member, replicas, replicas);
        let set = member.view.workload.as_mut().unwrap();
        set.generation = generation + 1;
        set.observed_generation = set.generation;
    }
    // A pod takes 20 minutes to start.
    let mut started = [30, 0, 0];
    for minute in 1..400 {
        world.step();
        let placed = world.placed();
        let requested: u32 = placed.iter().sum();
        assert!(requested <= 37, "30 and a surge of 25 %: {placed:?}");
        for ((member, replicas), started) in world.members.iter_mut().zip(&placed).zip(&mut started)
        {
            *started = if minute % 20 == 0 {
                *replicas
            } else {
                *replicas.min(started)
            };
            let generation = member.view.workload.as_ref().unwrap().generation;
            hold(member, *replicas, *started);
            let set = member.view.workload.as_mut().unwrap();
            set.generation = generation;
            set.observed_generation = generation;
        }
        assert!(world.ready() >= 30, "{started:?} of {placed:?}");
        world.now += 60;
    }
    assert_eq!(world.placed(), [10, 10, 10]);
    let unpublished = |cluster: &ClusterStatus| cluster.internal.unpublished_replicas;
    assert!(
        world
            .previous
            .clusters
            .iter()
            .all(|cluster| unpublished(cluster) == 0)
    );
}

#[test]
fn f20_a_member_that_carries_out_no_writes_does_not_use_the_surge_for_ever() {
    // It shows more replicas by an external change, and from then on the same: it rejects what would remove them, or answers
    // that it removes them, and its next event shows them again.
    let mut set = running("a", 10).view.workload.unwrap();
    set.generation = 4;
    let removes = Outcome::Scaled { set, by: None };
    let conflicts = Outcome::Conflict("changed meanwhile".into());
    let fails = Outcome::Failed("spec.replicas is 40 after 10 was written".into());
    for answer in [removes, conflicts, fails] {
        let mut world = World::settled(30);
        let claim = |world: &mut World| {
            hold(&mut world.members[0], 40, 40);
            let set = world.members[0].view.workload.as_mut().unwrap();
            set.generation = 4;
            set.observed_generation = 4;
        };
        hold(&mut world.members[1], 0, 0);
        world.set_capacity("b", 0);
        for _ in 0..60 {
            claim(&mut world);
            world.step_unless(|action| (action.member == "a").then(|| answer.clone()));
            world.now += 10;
        }
        assert_eq!(world.placed()[2], 15, "replaces what b has lost");
    }
}

#[test]
fn f20_a_set_that_a_restored_status_does_not_know_uses_the_surge() {
    let mut world = World::settled(30);
    let weight = |weight| json!({ "weight": weight });
    let clusters = json!({ "a": weight(1), "b": weight(0), "c": weight(0) });
    world.frs = frs(30, json!({ "rebalance": true, "clusters": clusters }));
    // The status is of before all replicas went to b.
    for (index, replicas) in [0, 30, 0].into_iter().enumerate() {
        let member = &mut world.members[index];
        let cluster = &mut world.previous.clusters[index];
        cluster.desired_replicas = 0;
        cluster.internal = ClusterInternalState::default();
        if replicas == 0 {
            member.view = WorkloadView::default();
            cluster.internal.requested_replicas = Some(0);
        } else {
            hold(member, replicas, replicas);
        }
    }
    settles_within_surge(&mut world);
    assert_eq!(world.placed(), [30, 0, 0]);
}

#[test]
fn f22_the_status_says_how_long_a_set_waits_to_be_restored() {
    let mut world = World::settled(9);
    world.now = 100;
    scale_externally(&mut world);
    world.step();
    scale_externally(&mut world);
    world.now = 104;
    // A world that does nothing also refreshes its status, which is the same.
    let decided = world.step();
    assert_eq!(decided.actions, []);
    assert_eq!(
        condition_message(&decided, "Reconciling"),
        "a: waiting until 2027-01-15T08:01:50Z for the next write"
    );
    let waits = &decided.status.clusters[0].waits;
    assert_eq!(waits[0].until.as_ref().unwrap().0, at(110));
}

#[test]
fn f29_contention_ends_when_the_other_writer_stops() {
    let mut world = World::settled(9);
    scale_externally(&mut world);
    world.step();
    let decided = world.step();
    let over = decided.next_check.unwrap();
    assert_eq!(over, at(world.now + 600), "the longest backoff");
    assert_eq!(decided.status.clusters[0].internal.writes.drift_count, 1);
    world.now += 600;
    let decided = world.step();
    assert_eq!(decided.next_check, None);
    assert_eq!(decided.status.clusters[0].internal.writes.drift_count, 0);
    assert_eq!(
        decided.status.clusters[0].internal.writes.repaired_time,
        None
    );
}

#[test]
fn f31_a_deleted_set_counts_as_an_external_change() {
    let mut world = World::settled(9);
    for (disturbances, actions) in [(1, 1), (2, 0)] {
        world.members[0].view = WorkloadView::default();
        let decided = world.step();
        assert_eq!(
            decided.status.clusters[0].internal.writes.drift_count,
            disturbances
        );
        assert_eq!(decided.actions.len(), actions);
    }
}

#[test]
fn f29_only_external_changes_count_as_contention() {
    let mut world = World::settled(9);
    let set = world.members[0].view.workload.as_mut().unwrap();
    set.generation += 2;
    let decided = world.step();
    assert_eq!(
        decided.status.clusters[0].internal.writes.drift_count, 0,
        "it is as it should be"
    );
    // Our own write, whose answer never came.
    let unknown: Outcomes = [("a".to_owned(), Outcome::Unknown("deadline".into()))].into();
    world.previous = with_outcomes(world.previous, &unknown, DESIRED, at(0), &world.settings);
    scale_externally(&mut world);
    let decided = world.step();
    assert_eq!(decided.actions.len(), 1);
    assert_eq!(decided.status.clusters[0].internal.writes.drift_count, 0);
}

#[test]
fn f29_a_set_with_a_controller_owner_is_not_ours() {
    let mut world = World::settled(9);
    world.members[0]
        .view
        .workload
        .as_mut()
        .unwrap()
        .has_controller = true;
    let decided = world.check();
    let [action] = &decided.actions[..] else {
        panic!("{:?}", decided.actions)
    };
    assert!(
        matches!(
            action.change,
            federation_controller::check::SetChange::Create { .. }
        ),
        "which the member rejects with the reason: {action:?}"
    );
    assert_eq!(
        decided.status.clusters[0].replicas, 0,
        "its pods are not counted"
    );
}
