//! Moves and scaling beside rollouts of FederatedDeployments (L14, F32, F34).

use cluster_informer::{DeploymentState, RolloutStrategy};
use federated_rollout::{Loan, Strategy};
use federation_controller::check::SetChange;
use fedrs_api::{ClusterWait, TemplateRecord, WaitReason};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;

use crate::{
    rollout_world::{NEW, World, lent, member_with, revision},
    world::{LIVE, at},
};

fn is_down(change: &SetChange) -> bool {
    matches!(change, SetChange::Scale { from, to, .. } if to < from)
}

/// Found by the simulation: a Deployment that is scaled down in the middle of a rollout may never go on.
#[test]
fn l14_no_replica_is_removed_from_a_member_before_the_rollout_there_has_ended() {
    for (fields, failed, removes) in [
        (json!({}), false, false),
        (json!({}), true, true),
        (json!({ "paused": true }), false, true),
    ] {
        let clusters = json!({ "a": { "weight": 0 }, "*": { "weight": 1 } });
        let mut fields = fields;
        fields["placement"] = json!({ "rebalance": true, "clusters": clusters });
        let mut world = World::new(fields);
        for other in [1, 2] {
            let member = &mut world.members[other];
            *member = member_with(&member.name, 5);
            world.previous.clusters[other].internal.requested_replicas = Some(5);
        }
        world.deployment(0).updated_replicas = 1;
        world.recorded.state.revision = revision(NEW);
        world.recorded.state.begun = vec![String::new()];
        world.recorded.state.failed = failed;
        let decided = world.check();
        let mut of_a = decided.actions.iter().filter(|action| action.member == "a");
        assert_eq!(
            of_a.any(|action| is_down(&action.change)),
            removes,
            "{failed} {:?}",
            decided.actions
        );
        let waits = &decided.status.clusters[0].waits;
        let is_removed = |wait: &ClusterWait| wait.reason == WaitReason::Removal;
        assert_eq!(waits.iter().any(is_removed), removes, "{waits:?}");
    }
}

/// Found by the simulation: 26 replicas stayed where none was created, and used all of the surge.
#[test]
fn f32_replicas_that_no_controller_creates_leave_a_deployment() {
    let mut world = World::new(json!({}));
    world.previous.clusters[2].internal.behind_since = Some(Time(at(-100)));
    let view = &mut world.members[2].view;
    view.current_at = Some(at(0));
    (view.pods.active, view.pods.ready) = (0, 0);
    let set = view.workload.as_mut().unwrap();
    (set.status_replicas, set.fully_labeled_replicas) = (0, 0);
    (set.ready_replicas, set.available_replicas) = (0, 0);
    set.observed_generation = set.generation - 1;
    set.behind_since = Some(at(-100));
    world.deployment(2).updated_replicas = 0;
    let decided = world.check();
    let mut of_c = decided.actions.iter().filter(|action| action.member == "c");
    assert!(of_c.any(|action| is_down(&action.change)), "{decided:?}");
}

/// Found by the simulation: they could not be removed before the end of a rollout that had no budget left because of them.
#[test]
fn f34_replicas_without_a_node_are_replaced_beside_a_rollout_that_holds_them() {
    for (waited, others) in [(30, vec![]), (90, vec![4, 4])] {
        let mut world = World::new(json!({ "rescheduling": { "maxMoveSurge": 1 } }));
        world.deployment(0).updated_replicas = 1;
        let set = world.set(0);
        (set.ready_replicas, set.available_replicas) = (1, 1);
        let pods = &mut world.members[0].view.pods;
        (pods.ready, pods.unscheduled) = (1, 2);
        pods.unscheduled_since = vec![(at(-waited), 2)];
        let decided = world.check();
        let scaled = decided.actions.iter();
        let scaled = scaled.filter_map(|action| match action.change {
            SetChange::Scale { to, .. } => Some(to),
            _ => None,
        });
        assert_eq!(scaled.collect::<Vec<_>>(), others, "{:?}", decided.actions);
    }
}

#[test]
fn l14_a_template_waits_for_pods_without_a_node_that_get_one_or_move() {
    for (updated, unscheduled, is_full, waits) in [
        (3, 0, false, false),
        (3, 1, false, true),
        // No cluster can run it.
        (3, 1, true, false),
        // It rolls already.
        (1, 1, false, false),
    ] {
        let mut world = World::new(json!({}));
        if is_full {
            for (cluster, capacity) in world.previous.clusters.iter_mut().zip([2, 3, 3]) {
                cluster.capacity = Some(capacity);
            }
        }
        world.deployment(0).updated_replicas = updated;
        let view = &mut world.members[0].view;
        view.pods.ready -= unscheduled;
        view.pods.unscheduled = unscheduled;
        view.pods.unscheduled_since = vec![(at(0), unscheduled)];
        let set = view.workload.as_mut().unwrap();
        (set.ready_replicas, set.available_replicas) = (3 - unscheduled, 3 - unscheduled);
        let lent = lent(&world.check());
        let is_lent = lent.iter().any(|(name, ..)| name == "a");
        assert_eq!(
            !is_lent, waits,
            "{updated} {unscheduled} {is_full} {lent:?}"
        );
    }
}

/// Of 9 replicas 8 are wanted. A member with a loan guarantees one replica less: nothing is removed before its rollout has ended.
#[test]
fn l14_no_replica_is_removed_on_which_a_loan_relies() {
    let mut world = World::new(json!({ "replicas": 8 }));
    world.deployment.rollout.paused = true;
    assert_eq!(world.check().actions.len(), 1);
    let loan = Loan {
        strategy: Strategy::new(1, 0),
        revision: revision(NEW),
        generation: 2,
        ..Loan::default()
    };
    world.recorded.state.loans.insert("a".to_owned(), loan);
    // It rolls: two pods of the old template are left.
    *world.deployment(0) = DeploymentState {
        strategy: RolloutStrategy {
            max_unavailable: 1,
            max_surge: 0,
            is_fixed: true,
        },
        updated_replicas: 1,
        written_template: NEW,
        ..DeploymentState::default()
    };
    world.previous.clusters[0].internal.template = Some(TemplateRecord::new(NEW.into(), LIVE));
    let scaled = |world: &World| {
        let actions = world.check().actions;
        let scaled = actions
            .iter()
            .filter(|action| matches!(action.change, SetChange::Scale { .. }));
        scaled.count()
    };
    assert_eq!(scaled(&world), 0);
    world.deployment(0).updated_replicas = 3;
    world.recorded.state.loans.clear();
    assert_eq!(scaled(&world), 1);
}
