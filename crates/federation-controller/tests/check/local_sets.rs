//! Members with LocalReplicaSets: what others change in them, what their statuses say, and members that have none.

use cluster_informer::{
    DeploymentState, LocalSetState, LocalSettings, LocalSpeed, RolloutStrategy, WorkloadView,
};
use federation_controller::check::SetChange;
use fedrs_api::{ClusterReason, ClusterState, ConditionType, WaitReason, conditions};
use serde_json::json;

use crate::rollout_world::World;

/// Nothing is lent to a member: it has what is written then.
fn world() -> World {
    let speed = json!({ "updatePortion": 2, "minDelaySeconds": 30 });
    let mut world = World::new(json!({
        "localKind": "LocalReplicaSet", "paused": true, "rollout": { "speed": speed },
    }));
    for member in 0..3 {
        change(&mut world, member, |_, _| {});
    }
    world
}

/// Changes what a member has, and its settings.
fn change(
    world: &mut World,
    member: usize,
    change: impl FnOnce(&mut DeploymentState, &mut LocalSettings),
) {
    let speed = LocalSpeed {
        update_portion: 1,
        min_delay: 30,
    };
    let mut settings = LocalSettings {
        speed: Some(speed),
        ..LocalSettings::default()
    };
    let state = world.deployment(member);
    state.paused = true;
    state.strategy = RolloutStrategy {
        max_unavailable: 0,
        max_surge: 0,
        is_fixed: true,
    };
    // Of pods that are available after the time of the speed.
    state.min_ready_seconds = 30;
    change(state, &mut settings);
    state.local = Some(LocalSetState {
        settings,
        ..LocalSetState::default()
    });
}

/// The members whose local workload is overwritten.
fn overwritten(world: &World) -> Vec<String> {
    let actions = world.check().actions.into_iter();
    let overwrites = actions
        .filter(|action| matches!(action.change, SetChange::Overwrite { drifted: true, .. }));
    overwrites.map(|action| action.member).collect()
}

type Change = fn(&mut DeploymentState, &mut LocalSettings);

#[test]
fn f29_a_local_set_that_others_have_changed_is_overwritten() {
    assert_eq!(overwritten(&world()), [""; 0]);
    let same: [Change; 3] = [
        // A fence changes it by one.
        |_, settings| settings.progress_deadline_seconds += 1,
        |_, settings| settings.progress_deadline_seconds -= 1,
        // What is lent, at the speed of the set.
        |state, settings| {
            state.strategy.max_unavailable = 2;
            state.paused = false;
            settings.speed.as_mut().unwrap().update_portion = 2;
        },
    ];
    for applied in same {
        let mut world = world();
        change(&mut world, 1, applied);
        assert_eq!(overwritten(&world), [""; 0]);
    }
    let others: [Change; 10] = [
        |_, settings| settings.has_others = true,
        |_, settings| settings.migration_policy = Some(1),
        |_, settings| settings.progress_deadline_seconds += 2,
        |_, settings| settings.revision_history_limit = 3,
        |_, settings| settings.speed = None,
        |_, settings| settings.speed.as_mut().unwrap().update_portion = 2,
        |_, settings| settings.speed.as_mut().unwrap().min_delay = 29,
        |state, _| state.min_ready_seconds = 7,
        |state, _| state.paused = false,
        |state, _| state.strategy.is_fixed = false,
    ];
    for (number, applied) in others.into_iter().enumerate() {
        let mut world = world();
        change(&mut world, 1, applied);
        assert_eq!(overwritten(&world), ["b"], "{number}");
    }
}

#[test]
fn l19_evictions_that_are_blocked_are_told_by_cluster_and_pod() {
    let mut world = world();
    let message = "evictions are not finished in time: web-x since 08:00: the budget is in use";
    change(&mut world, 1, |state, _| {
        state.eviction_blocked = Some(message.to_owned());
    });
    let status = world.check().status;
    for cluster in &status.clusters {
        let mut waits = cluster.waits.iter();
        let told = waits.find(|wait| wait.reason == WaitReason::Eviction);
        let expected = (cluster.name == "b").then(|| format!("its LocalReplicaSet: {message}"));
        assert_eq!(told.map(|wait| wait.message.clone()), expected);
    }
}

#[test]
fn f33_a_member_without_local_replica_sets_says_so_and_others_have_its_replicas() {
    let mut world = world();
    world.members[2].lacks_kind = true;
    world.members[2].view = WorkloadView::default();
    let status = world.check().status;
    let desired = status
        .clusters
        .iter()
        .map(|cluster| cluster.desired_replicas);
    let mut desired: Vec<_> = desired.collect();
    assert_eq!(desired.pop(), Some(0));
    desired.sort_unstable();
    assert_eq!(desired, [4, 5]);
    let c = &status.clusters[2];
    assert_eq!(c.state, Some(ClusterState::Refused));
    assert_eq!(c.reason, Some(ClusterReason::KindNotInstalled));
    assert!(
        c.message.contains("LocalReplicaSets are not installed"),
        "{}",
        c.message
    );
    for member in &mut world.members {
        member.lacks_kind = true;
        member.view = WorkloadView::default();
    }
    let status = world.check().status;
    let placed = conditions::find(&status.conditions, ConditionType::Placed).unwrap();
    let expected = "excluded (LocalReplicaSets not installed): a, b, c";
    assert!(placed.message.contains(expected), "{}", placed.message);
}
