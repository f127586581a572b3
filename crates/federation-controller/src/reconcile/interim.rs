//! Statuses that only say that replicas are on their way: one of them waits, because the next one often says it all. Pure.

use std::time::Duration;

use fedrs_api::{
    ClusterInternalState, ClusterState, ClusterStatus, ConditionReason, ConditionStatus,
    ConditionType, FederatedReplicaSetStatus, WriteHistory, conditions::is_true,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

/// How long such a status waits for the next one at most, after so many that were written in a row (F22): what takes long is
/// not written every second.
pub(super) fn patience(written: u32) -> Duration {
    Duration::from_secs(1 << written.min(3))
}

/// Whether `status` only says that replicas are on their way, if the host has `published`. A status that somebody may have to
/// act on is not interim, nor one with what a later process has to know about failures, capacities and lost clusters.
pub(super) fn is_interim(
    published: Option<&FederatedReplicaSetStatus>,
    status: &FederatedReplicaSetStatus,
) -> bool {
    is_true(&status.conditions, ConditionType::Reconciling)
        && published.map(problems).unwrap_or_default() == problems(status)
        && published.map(memory).unwrap_or_default() == memory(status)
}

/// The conditions that say more than how far the replicas are.
fn problems(status: &FederatedReplicaSetStatus) -> Vec<(&str, &str, &str)> {
    let conditions = status.conditions.iter();
    conditions
        .filter(|condition| !is_progress(condition))
        .map(|condition| (&*condition.type_, &*condition.status, &*condition.reason))
        .collect()
}

fn is_progress(condition: &Condition) -> bool {
    match ConditionType::parse(&condition.type_) {
        Some(ConditionType::Accepted) => condition.status == ConditionStatus::True.as_str(),
        // Their reasons are those of `Reconciling`, which is true.
        Some(ConditionType::Placed | ConditionType::Ready) => true,
        Some(ConditionType::Reconciling) => matches!(
            ConditionReason::parse(&condition.reason),
            Some(
                ConditionReason::Rescheduling
                    | ConditionReason::ReplicasUnavailable
                    | ConditionReason::WaitingForMembers
            )
        ),
        _ => false,
    }
}

/// What is remembered of clusters other than what the last writes requested, which each of them shows as well.
fn memory(
    status: &FederatedReplicaSetStatus,
) -> Vec<(
    &str,
    Option<ClusterState>,
    Option<i32>,
    ClusterInternalState,
)> {
    let of_cluster = |cluster: &ClusterStatus| {
        let ordinary = [ClusterState::Eligible, ClusterState::Joining];
        let state = cluster.state.filter(|state| !ordinary.contains(state));
        let internal = ClusterInternalState {
            requested_replicas: None,
            unready_since: None,
            template: None,
            writes: WriteHistory {
                written_generation: None,
                ..cluster.internal.writes.clone()
            },
            ..cluster.internal.clone()
        };
        (state, cluster.capacity, internal)
    };
    let nothing = (None, None, ClusterInternalState::default());
    let clusters = status.clusters.iter();
    clusters
        .map(|cluster| (&*cluster.name, of_cluster(cluster)))
        .filter(|(_, memory)| *memory != nothing)
        .map(|(name, (state, capacity, internal))| (name, state, capacity, internal))
        .collect()
}
