//! Ready pods are left by their clients before they are removed (`spec.drainSeconds`, D2).

use federation_controller::check::{Check, SetChange};
use fedrs_api::{ClusterReason, ClusterStatus, WaitReason};
use serde_json::json;

use crate::world::{World, at, even, frs, frs_with};

const DRAIN: i64 = 30;

/// 9 replicas in 3 members.
fn settled() -> World {
    let set = json!({ "replicas": 9, "placement": even(true), "drainSeconds": DRAIN });
    let mut world = World::new(frs_with(set), &["a", "b", "c"]);
    world.settle(1);
    assert_eq!(world.placed(), [3, 3, 3]);
    world
}

fn of_c(decided: &Check) -> &ClusterStatus {
    let mut clusters = decided.status.clusters.iter();
    clusters.find(|cluster| cluster.name == "c").unwrap()
}

/// How many pods of which member begin to drain, or go on serving.
fn drained(decided: &Check) -> Vec<(&str, u32)> {
    let pods = decided.actions.iter().map(|action| match action.change {
        SetChange::DrainPods { pods, .. } => (&*action.member, pods),
        ref other => panic!("{other:?}"),
    });
    pods.collect()
}

#[test]
fn d2_replicas_that_leave_a_cluster_drain_once_their_replacements_run() {
    let mut world = settled();
    world.members[2].draining = true;
    let (mut began, mut waited) = (None, false);
    for _ in 0..300 {
        let left = world.placed()[2];
        let decided = world.step();
        for action in &decided.actions {
            match action.change {
                SetChange::DrainPods { pods, since, .. } => {
                    assert_eq!(action.member, "c");
                    assert!(pods > 0 && since >= at(world.now));
                    assert!(world.ready() >= 9 + pods, "their replacements run");
                    began = Some(world.now);
                }
                SetChange::Scale { from, to, .. } if to < from => {
                    assert!(world.now >= began.take().unwrap() + DRAIN);
                    assert!(world.placed()[2] < left);
                }
                _ => {}
            }
        }
        let cluster = of_c(&decided);
        let wait = cluster
            .waits
            .iter()
            .find(|wait| wait.reason == WaitReason::PodDrain);
        if let Some(until) = wait.and_then(|wait| wait.until.clone()) {
            assert_eq!(Some(until.0), began.map(|began| at(began + DRAIN)));
            assert_eq!(decided.next_check, Some(until.0));
            assert!(
                cluster.message.contains("until their clients have left"),
                "{}",
                cluster.message
            );
            waited = true;
        }
        assert!(world.ready() >= 9, "{:?}", world.placed());
        world.now += 1;
    }
    assert_eq!(world.placed()[2], 0);
    assert!(waited && world.step().actions.is_empty());
}

#[test]
fn d2_pods_that_are_to_stay_after_all_drain_no_longer() {
    let mut world = settled();
    world.frs.replicas = 6;
    assert_eq!(drained(&world.step()), [("a", 1), ("b", 1), ("c", 1)]);
    world.now += DRAIN / 2;
    assert!(world.step().actions.is_empty());
    world.frs.replicas = 8;
    assert_eq!(drained(&world.step()).len(), 2, "one is to be removed");
    world.frs.replicas = 9;
    let ended = world.step();
    assert!(drained(&ended).iter().all(|(_, pods)| *pods == 0));
    assert_eq!(world.placed(), [3, 3, 3]);
    assert!(world.step().actions.is_empty());
}

#[test]
fn d2_pods_that_are_not_ready_go_at_once() {
    let mut world = settled();
    world.set_capacity("c", 1);
    world.frs.replicas = 6;
    let decided = world.step();
    let of_c = decided.actions.iter().find(|action| action.member == "c");
    assert!(
        matches!(
            of_c.unwrap().change,
            SetChange::Scale { from: 3, to: 2, .. }
        ),
        "{of_c:?}"
    );
}

#[test]
fn d2_without_drain_seconds_nothing_waits() {
    let mut world = World::new(frs(9, even(true)), &["a", "b", "c"]);
    world.settle(1);
    world.frs.replicas = 6;
    for action in world.step().actions {
        assert!(matches!(
            action.change,
            SetChange::Scale { from: 3, to: 2, .. }
        ));
    }
    let cluster = world.check();
    let reason = of_c(&cluster).reason;
    assert_ne!(reason, Some(ClusterReason::WaitingForClients));
}
