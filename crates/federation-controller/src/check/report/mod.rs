//! What a check reports: the status with its clusters and conditions (F6, F19), and events about what changed (F38).

mod cluster_message;
mod clusters;
mod conditions;
mod events;
mod invalid;
mod placement;
mod rollout;
mod waits;

use fedrs_api::{ClusterStatus, FederatedReplicaSetStatus};

pub use self::invalid::{InvalidFrs, reject};
use self::{
    clusters::clusters, conditions::conditions, events::events, placement::PlacementReport,
    rollout::RolloutReport,
};
use super::{
    count::{from_status, to_status},
    decision::Decision,
};
use controller_base::event::Event;

/// A status to publish, and the events to record.
#[derive(Clone, Debug, PartialEq)]
pub struct StatusRefresh {
    /// The status, which is the next check's previous one.
    pub status: FederatedReplicaSetStatus,
    /// What changed since the previous status.
    pub events: Vec<Event>,
    /// Whether replicas wait for their replacements to be ready, or members for a part of the budget: each pod that gets ready is
    /// worth a check (F20).
    pub moving: bool,
}

/// Reports `decision`.
pub(super) fn report(decision: &Decision<'_>) -> StatusRefresh {
    let previous = decision.snapshot.previous;
    // The published status stays until all members have answered: a restart of a settled set writes nothing.
    if decision.plan.is_none() && decision.snapshot.is_observed() {
        return StatusRefresh {
            status: previous.clone(),
            events: Vec::new(),
            moving: false,
        };
    }
    let placement = PlacementReport::of(decision);
    let mut status = with_sums(counted(decision), clusters(decision));
    if let Some(rollout) = RolloutReport::of(decision) {
        rollout.add_to(&mut status);
    }
    status.conditions = conditions(decision, &status, &placement);
    StatusRefresh {
        events: events(decision, &status, &placement),
        moving: decision.is_moving() || decision.is_rolling_out(),
        status,
    }
}

/// The status without clusters and conditions. A pass that decides nothing observes nothing.
fn counted(decision: &Decision<'_>) -> FederatedReplicaSetStatus {
    let (frs, previous) = (decision.snapshot.frs, decision.snapshot.previous);
    let Some(plan) = &decision.plan else {
        return FederatedReplicaSetStatus {
            observed_generation: previous.observed_generation,
            observed_preferences_hash: previous.observed_preferences_hash.clone(),
            selector: frs.selector_text.clone(),
            current_revision: previous.current_revision.clone(),
            update_revision: previous.update_revision.clone(),
            rollout: previous.rollout.clone(),
            placed_replicas: previous.placed_replicas,
            unplaced_replicas: previous.unplaced_replicas,
            ..FederatedReplicaSetStatus::default()
        };
    };
    FederatedReplicaSetStatus {
        observed_generation: Some(frs.generation),
        observed_preferences_hash: frs.preferences_hash.clone(),
        selector: frs.selector_text.clone(),
        placed_replicas: to_status(u64::from(frs.replicas).saturating_sub(plan.unplaced)),
        unplaced_replicas: to_status(plan.unplaced),
        ..FederatedReplicaSetStatus::default()
    }
}

/// `status` with `clusters`, and what they sum up to.
fn with_sums(
    status: FederatedReplicaSetStatus,
    clusters: Vec<ClusterStatus>,
) -> FederatedReplicaSetStatus {
    let sum = |count: fn(&ClusterStatus) -> i32| {
        let counts = clusters.iter().map(|cluster| from_status(count(cluster)));
        to_status(counts.sum())
    };
    let desired = clusters
        .iter()
        .filter(|cluster| cluster.desired_replicas > 0);
    let is_complete =
        |cluster: &&ClusterStatus| cluster.available_replicas >= cluster.desired_replicas;
    let (complete, all) = (desired.clone().filter(is_complete).count(), desired.count());
    FederatedReplicaSetStatus {
        replicas: sum(|cluster| cluster.replicas),
        ready_replicas: sum(|cluster| cluster.ready_replicas),
        available_replicas: sum(|cluster| cluster.available_replicas),
        updated_replicas: sum(|cluster| cluster.updated_replicas),
        summary: format!("{complete}/{all}"),
        clusters,
        ..status
    }
}
