//! Members that are new, stale, lost, back, cordoned or unusable (F23, F33, F39).

use cluster_informer::{Health, SyncState, WorkloadView};
use federation_controller::check::SetChange;
use fedrs_api::WaitReason;
use serde_json::json;

use crate::world::{World, at, condition, desired, even, frs, hold};

#[test]
fn f33_replicas_of_a_lost_cluster_are_rescheduled_and_return() {
    for rebalance in [true, false] {
        let mut world = World::new(frs(50, even(rebalance)), &["a", "b", "c"]);
        world.settle(1);
        world.now = 100;
        let message = "connection refused".to_owned();
        world.members[1].health = Health::Unreachable {
            since: at(100),
            message,
        };
        assert_eq!(
            world.check().actions,
            [],
            "within the grace period nothing moves"
        );
        assert_eq!(world.check().next_check, Some(at(160)));
        world.now = 160;
        world.settle(1);
        assert_eq!((world.placed()[0], world.placed()[2]), (25, 25));
        assert_eq!(world.ready() - world.placed()[1], 50);

        world.members[1].health = Health::Healthy;
        world.settle(1);
        assert_eq!(
            world.ready(),
            50,
            "the surplus is taken back: {:?}",
            world.placed()
        );
        let mut layout = world.placed();
        layout.sort_unstable();
        assert_eq!(layout, [16, 17, 17], "rebalance {rebalance}");
    }
}

#[test]
fn f33_a_lost_cluster_whose_kubeconfig_is_removed_stays_lost() {
    let mut world = World::new(frs(50, even(true)), &["a", "b", "c"]);
    world.settle(1);
    world.now = 160;
    world.members[1].health = Health::Unreachable {
        since: at(100),
        message: "connection refused".into(),
    };
    world.settle(1);
    world.members[1].removed = Some(at(300));
    world.now = 300;
    let decided = world.check();
    assert_eq!(
        (&decided.actions[..], &decided.events[..]),
        (&[][..], &[][..])
    );
    assert_eq!(decided.status, world.previous, "nothing is news");
    assert_eq!(decided.status.available_replicas, 50);
}

#[test]
fn f39_nothing_is_scaled_down_while_a_view_is_stale() {
    let stale = [
        (Health::Healthy, SyncState::Stale { since: at(-100) }),
        (Health::Healthy, SyncState::NotSynced),
        (
            Health::Unauthorized {
                message: "401".into(),
            },
            SyncState::Synced,
        ),
        (
            Health::Failing {
                since: at(0),
                message: "timeout".into(),
            },
            SyncState::Synced,
        ),
    ];
    for (health, sync) in stale {
        let mut world = World::new(frs(50, even(true)), &["a", "b", "c"]);
        world.settle(1);
        hold(&mut world.members[0], 27, 27);
        (world.members[1].health, world.members[1].sync) = (health.clone(), sync);
        let downs: Vec<_> = world
            .check()
            .actions
            .into_iter()
            .filter(
                |action| matches!(action.change, SetChange::Scale { from, to, .. } if to < from),
            )
            .collect();
        assert_eq!(downs, [], "{health:?} {sync:?}");
    }
}

#[test]
fn f33_nothing_is_given_up_for_a_returned_member_until_it_is_stable() {
    let mut world = World::new(frs(50, even(true)), &["a", "b", "c"]);
    world.settle(1);
    world.members[1].health = Health::Unreachable {
        since: at(world.now),
        message: "connection refused".into(),
    };
    world.now += 60;
    world.settle(1);
    world.members[1].health = Health::Healthy;
    world.members[1].stabilizes_at = Some(at(world.now + 60));
    world.settle(1);
    assert_eq!(world.placed(), [25, 17, 25]);
    let message = &world.previous.clusters[1].message;
    assert!(message.contains("returned: "), "{message}");
    // Fewer replicas are no reason to keep more than those.
    world.frs = frs(30, even(true));
    world.settle(1);
    assert_eq!(
        world.ready() - world.placed()[1],
        30,
        "{:?}",
        world.placed()
    );
    world.members[1].stabilizes_at = None;
    world.settle(1);
    assert_eq!(world.placed(), [10, 10, 10]);
}

#[test]
fn f23_a_member_that_is_added_again_is_waited_for_by_sets_with_replicas_in_it() {
    for (had_replicas, waits) in [(false, false), (true, true)] {
        let mut world = World::new(frs(50, even(true)), &["a", "b", "c"]);
        if had_replicas {
            world.settle(1);
        } else {
            world.members.pop();
            world.settle(1);
            world.members.push(crate::world::running("c", 0));
        }
        let c = &mut world.members[2];
        (c.health, c.joined, c.awaited) = (Health::Unknown, at(world.now), false);
        (c.view, c.sync) = (WorkloadView::default(), SyncState::NotSynced);
        world.frs = frs(60, even(true));
        assert_eq!(world.check().actions.is_empty(), waits, "{had_replicas}");
        let downs = world.check().actions.into_iter();
        let downs =
            downs.filter(|it| matches!(it.change, SetChange::Scale { from, to, .. } if to < from));
        assert_eq!(downs.count(), 0);
    }
}

#[test]
fn f23_a_new_member_is_awaited_for_a_few_seconds() {
    let mut world = World::new(frs(50, even(true)), &["a", "b", "c"]);
    world.members[2].health = Health::Unknown;
    world.members[2].joined = at(0);
    let decided = world.check();
    assert_eq!(
        (decided.actions, decided.next_check),
        (vec![], Some(at(10)))
    );
    world.now = 10;
    assert_eq!(
        world.check().actions.len(),
        2,
        "then the others get all of it"
    );
}

/// Workloads of a kind are watched once the first set needs them: a member that has been one for long joins the others then.
#[test]
fn f23_a_new_set_is_laid_out_over_all_members_once_its_kind_is_listed_in_them() {
    let mut world = World::new(frs(12, even(false)), &["a", "b", "c"]);
    world.members[2].sync = SyncState::NotSynced;
    (world.members[2].joined, world.members[2].awaited) = (at(0), false);
    let decided = world.check();
    assert_eq!(
        (decided.actions, decided.next_check),
        (vec![], Some(at(10)))
    );
    world.now = 1;
    world.members[2].sync = SyncState::Synced;
    world.settle(1);
    assert_eq!(world.placed(), [4, 4, 4]);
}

/// Found by the simulation: the host could not be reached after the creation of a set, and the next controller created it in other
/// members, while one of those that had it did not accept the credentials yet.
#[test]
fn f23_a_set_that_no_status_places_waits_for_members_that_may_still_answer_a_new_controller() {
    // Whether the controller has just started, whether a status has placed the set before, and how many actions follow.
    for (starts, was_placed, expected) in [(true, false, 0), (false, false, 2), (true, true, 2)] {
        let mut world = World::new(frs(50, even(true)), &["a", "b", "c"]);
        if was_placed {
            world.settle(1);
            world.frs = frs(60, even(true));
        }
        let c = &mut world.members[2];
        let message = "401".into();
        (c.health, c.sync) = (Health::Unauthorized { message }, SyncState::NotSynced);
        (c.joined, c.awaited) = (at(world.now), starts);
        let decided = world.check();
        assert_eq!(decided.actions.len(), expected, "{starts} {was_placed}");
        if expected == 0 {
            assert_eq!(decided.next_check, Some(at(world.now + 10)));
            world.now += 10;
            assert_eq!(world.check().actions.len(), 2, "others get all of it");
        }
    }
}

#[test]
fn f23_after_a_restart_the_status_stays_until_the_members_have_answered() {
    let mut world = World::new(frs(50, even(true)), &["a", "b", "c"]);
    world.settle(1);
    let views: Vec<_> = world
        .members
        .iter()
        .map(|member| member.view.clone())
        .collect();
    for (member, health) in
        world
            .members
            .iter_mut()
            .zip([Health::Healthy, Health::Unknown, Health::Healthy])
    {
        member.joined = at(world.now);
        member.health = health;
        member.sync = SyncState::NotSynced;
        member.view = WorkloadView::default();
    }
    for (i, view) in views.into_iter().enumerate() {
        let decided = world.check();
        let decisions = (&decided.status, decided.actions.len(), decided.events.len());
        assert_eq!(decisions, (&world.previous, 0, 0), "{i} have answered");
        let member = &mut world.members[i];
        (member.health, member.sync) = (Health::Healthy, SyncState::Synced);
        member.view = view;
    }
    let decided = world.check();
    assert_eq!((decided.status, decided.actions), (world.previous, vec![]));
}

#[test]
fn a_cordoned_member_keeps_its_replicas_and_gets_no_more() {
    let mut world = World::new(frs(30, even(true)), &["a", "b", "c"]);
    world.settle(1);
    world.members[0].schedulable = false;
    world.frs = frs(60, even(true));
    world.settle(1);
    assert_eq!(world.placed(), [10, 25, 25]);
    let reason = &world.check().status.clusters[0].message;
    assert_eq!(reason, "cordoned: no more replicas");
}

#[test]
fn a_member_that_never_answered_has_no_effect() {
    let mut world = World::new(frs(30, even(true)), &["a", "b", "c"]);
    world.members[2].invalid_kubeconfig = Some("no YAML".into());
    world.settle(1);
    assert_eq!(world.placed(), [15, 15, 0]);
    let decided = world.check();
    assert_eq!(decided.next_check, None);
    assert_eq!(condition(&decided, "Reconciling"), "");
    // Its MemberCluster says why.
    assert_eq!(decided.status.clusters.len(), 2);
}

#[test]
fn preferences_for_clusters_that_are_no_members_are_named() {
    let clusters = json!({ "a": { "weight": 1, "maxReplicas": 2 }, "misspelt": { "weight": 1 } });
    let world = World::new(frs(5, json!({ "clusters": clusters })), &["a", "b"]);
    let decided = world.check();
    let placed = decided
        .status
        .conditions
        .iter()
        .find(|condition| condition.type_ == "Placed")
        .unwrap();
    assert!(
        placed.message.contains("3 of 5 replicas have no cluster"),
        "{}",
        placed.message
    );
    assert!(
        placed
            .message
            .contains("no member cluster is named \"misspelt\""),
        "{}",
        placed.message
    );
}

#[test]
fn f39_a_new_leader_takes_no_replacements_of_a_lost_member_back() {
    let unreachable = |world: &World| Health::Unreachable {
        since: at(world.now),
        message: "timeout".into(),
    };
    let mut world = World::new(frs(9, even(true)), &["a", "b", "c"]);
    world.settle(1);
    let before = world.previous.clone();
    world.members[1].health = unreachable(&world);
    world.now += 61;
    world.step();
    let replaced = world.placed();
    assert_eq!(replaced.iter().sum::<u32>(), 12, "{replaced:?}");
    for member in [0, 2] {
        hold(&mut world.members[member], replaced[member], 3);
    }
    // The leader has died before the status said so, and the next one does not know yet that b is lost.
    world.previous = before;
    world.members[1].health = unreachable(&world);
    let decided = world.check();
    assert_eq!(decided.actions, []);
    let cluster = &decided.status.clusters[0];
    let until = "until the state of every cluster is known";
    assert!(cluster.message.contains(until), "{}", cluster.message);
    let waits = cluster.waits.iter().map(|wait| wait.reason);
    assert!(waits.eq([WaitReason::Recovery]), "{:?}", cluster.waits);
    // A smaller N is no matter of b.
    world.frs = frs(4, even(true));
    world.settle(1);
    assert_eq!(world.placed(), [2, 3, 2]);
    // Back in time, b keeps its share, and what replaced it goes.
    world.frs = frs(9, even(true));
    world.members[1].health = Health::Healthy;
    world.settle(1);
    assert_eq!(world.placed(), [3, 3, 3]);
}

#[test]
fn f39_an_unknown_member_takes_nothing_back_that_others_were_asked_for() {
    let unknown = |world: &mut World| {
        world.members[0].health = Health::Unreachable {
            since: at(world.now),
            message: "timeout".into(),
        };
    };
    // Half way through a drain of a, with replacements that are not ready yet.
    let mut world = World::new(frs(30, even(true)), &["a", "b", "c"]);
    world.settle(1);
    world.members[0].draining = true;
    world.step();
    let requested = world.placed();
    assert_eq!(requested, [10, 15, 12]);
    for (member, replicas) in [(1, 15), (2, 12)] {
        hold(&mut world.members[member], replicas, 10);
    }
    let desired_before = desired(&world.check());
    unknown(&mut world);
    let decided = world.check();
    assert_eq!(
        decided.actions,
        [],
        "nothing is given up, and the surge is used up"
    );
    assert_eq!(desired(&decided)[1..], desired_before[1..]);
    // Replicas that the user adds go to the others.
    let mut world = World::new(frs(30, even(true)), &["a", "b", "c"]);
    world.settle(1);
    unknown(&mut world);
    world.frs.replicas = 36;
    world.settle(1);
    assert_eq!(world.placed(), [10, 13, 13]);
}
