//! Members that do not take the namespace of a set, and system namespaces.

use cluster_informer::Health;
use federation_controller::check::{NamespaceState, SetChange};
use fedrs_api::{ClusterReason, ClusterState};
use serde_json::json;

use crate::world::{
    World, at, condition, condition_message, condition_reason, desired, even, frs, hold,
};

fn settled(replicas: i32) -> World {
    let mut world = World::new(frs(replicas, even(false)), &["a", "b", "c"]);
    world.settle(1);
    world
}

#[test]
fn s1_a_member_that_does_not_take_the_namespace_gets_nothing_and_others_take_its_replicas() {
    let named = json!({ "*": { "weight": 1 }, "c": { "weight": 1 } });
    let placement = json!({ "rebalance": true, "clusters": named });
    let mut world = World::new(frs(12, placement), &["a", "b", "c"]);
    world.members[2].namespace = NamespaceState::NotTaken;
    world.settle(1);
    assert_eq!(world.placed(), [6, 6, 0]);
    assert_eq!(world.members[2].view.workload, None);
    let decided = world.check();
    assert_eq!(condition(&decided, "Ready"), "True");
    let cluster = &decided.status.clusters[2];
    assert_eq!(cluster.reason, Some(ClusterReason::NamespaceNotTaken));
    assert_eq!(cluster.message, "the cluster does not take the namespace");
}

#[test]
fn s1_a_namespace_that_is_taken_off_drains_without_a_dip() {
    let mut world = settled(12);
    world.members[2].namespace = NamespaceState::NotTaken;
    let first = world.step();
    let message = &first.status.clusters[2].message;
    assert!(
        message.starts_with(
            "the cluster does not take the namespace: replicas are rescheduled to other clusters"
        ),
        "{message}"
    );
    let mut texts = Vec::new();
    loop {
        let decided = world.step();
        assert!(world.ready() >= 12, "{:?}", world.placed());
        if decided.actions.is_empty() {
            break;
        }
        let actions = decided.actions.into_iter();
        texts.extend(actions.map(|action| action.event.message));
        world.now += 1;
    }
    assert_eq!(world.placed(), [6, 6, 0]);
    let text = "c: scaled down from 4 to 1: namespace not taken".to_owned();
    assert!(texts.contains(&text), "{texts:?}");
    world.members[2].namespace = NamespaceState::Taken;
    world.frs = frs(15, even(true));
    world.settle(1);
    assert_eq!(world.placed(), [5, 5, 5], "taken again");
}

#[test]
fn f20_a_scale_up_that_a_closed_namespace_may_still_get_uses_the_surge_and_is_watched() {
    // The response to the request for the replicas of c was lost, and then c no longer took the namespace.
    let mut world = settled(12);
    hold(&mut world.members[2], 0, 0);
    world.members[2].namespace = NamespaceState::NotTaken;
    let open = |world: &mut World, replicas| {
        let set = world.members[2].view.workload.as_mut().unwrap();
        set.open_scale_up = replicas;
    };
    open(&mut world, Some(4));
    for _ in 0..3 {
        let decided = world.step();
        let requested: u32 = world.placed().iter().sum();
        assert!(requested + 4 <= 15, "12 and a surge of 25 %: {requested}");
        let c = &decided.status.clusters[2];
        assert_eq!(c.state, Some(ClusterState::Eligible));
        assert!(c.has_replicas(), "its namespace is watched");
    }
    open(&mut world, None);
    world.settle(1);
    assert_eq!(world.placed(), [6, 6, 0]);
    let c = &world.previous.clusters[2];
    assert_eq!(c.state, Some(ClusterState::Refused));
    assert!(!c.has_replicas(), "{:?}", c.internal);
}

#[test]
fn s1_replicas_that_no_other_cluster_takes_stay_where_the_namespace_was_taken_off() {
    let mut world = settled(12);
    for member in &mut world.members {
        member.namespace = NamespaceState::NotTaken;
    }
    world.settle(1);
    let decided = world.check();
    assert_eq!((world.placed(), world.ready()), (vec![4, 4, 4], 12));
    assert_eq!(decided.actions, []);
    assert_eq!(condition_reason(&decided, "Placed"), "NamespaceNotTaken");
    assert_eq!(
        condition_message(&decided, "Placed"),
        "12 of 12 replicas have no cluster: no selected member cluster takes namespace default; \
         excluded (namespace not taken): a, b, c"
    );
}

#[test]
fn s1_where_the_namespace_is_not_taken_only_replicas_are_removed() {
    let mut world = settled(12);
    let c = &mut world.members[2];
    c.namespace = NamespaceState::NotTaken;
    // The template differs from the desired one, and somebody has added replicas.
    hold(c, 6, 6);
    c.view.workload.as_mut().unwrap().spec_hash = 1;
    for _ in 0..10 {
        for action in world.step().actions {
            let is_removal =
                matches!(action.change, SetChange::Scale { from, to, .. } if to < from);
            assert!(action.member != "c" || is_removal, "{action:?}");
        }
        world.now += 1;
    }
    assert_eq!(world.placed(), [6, 6, 0]);
}

#[test]
fn s1_nothing_changes_while_it_is_not_known_whether_the_namespace_is_taken() {
    let mut world = settled(12);
    world.members[2].namespace = NamespaceState::Unknown("not listed".to_owned());
    let decided = world.check();
    assert_eq!(
        (decided.actions.len(), desired(&decided)),
        (0, vec![4, 4, 4])
    );
    let cluster = &decided.status.clusters[2];
    assert_eq!(cluster.reason, Some(ClusterReason::NamespaceUnknown));
    assert_eq!(
        cluster.message,
        "on hold: not listed; replicas as last seen"
    );
    // A lost member is lost all the same.
    world.members[2].health = Health::Unreachable {
        since: at(0),
        message: String::new(),
    };
    world.now = 60;
    assert_eq!(
        world.check().status.clusters[2].state,
        Some(ClusterState::Lost)
    );
}

#[test]
fn s1_nothing_is_written_in_a_system_namespace() {
    let mut world = settled(12);
    for member in &mut world.members {
        member.namespace = NamespaceState::System;
    }
    // A set that an earlier version created there.
    hold(&mut world.members[2], 1, 1);
    let decided = world.check();
    assert_eq!(decided.actions, []);
    for type_ in ["Placed", "Ready"] {
        assert_eq!(condition(&decided, type_), "False");
    }
    assert_eq!(condition_reason(&decided, "Placed"), "NamespaceNotTaken");
    assert_eq!(
        condition_message(&decided, "Placed"),
        "12 of 12 replicas have no cluster: default is a system namespace, in which nothing is changed"
    );
    for cluster in &decided.status.clusters {
        assert_eq!(
            (cluster.state, cluster.reason, cluster.desired_replicas),
            (
                Some(ClusterState::Refused),
                Some(ClusterReason::SystemNamespace),
                0
            )
        );
    }
}

#[test]
fn s1_a_system_namespace_of_one_member_is_no_namespace_of_it() {
    let mut world = World::new(frs(12, even(true)), &["a", "b", "c"]);
    world.members[0].namespace = NamespaceState::System;
    world.settle(1);
    assert_eq!(world.placed(), [0, 6, 6]);
    assert_eq!(condition(&world.check(), "Ready"), "True");
}
