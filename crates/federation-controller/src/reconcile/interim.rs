//! Interim statuses, which only say that replicas are on their way: the write of one is delayed, because the next one often
//! replaces it.

use std::time::Duration;

use fedrs_api::{
    ClusterInternalState, ClusterState, ClusterStatus, ConditionReason, ConditionStatus,
    ConditionType, FederatedReplicaSetStatus, WriteHistory, conditions::is_true,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::check::RolloutRecord;

/// The longest delay of an interim status, after so many that were `written` in a row (F22): the longer replicas take, the
/// rarer are the writes about them.
pub(super) fn max_delay(written: u32) -> Duration {
    Duration::from_secs(1 << written.min(3))
}

/// Lets interim statuses of all objects take turns: while many change at once, each is reported more rarely, so that the host
/// is not busy with what changes again soon (F38).
#[derive(Debug, Default)]
pub(super) struct InterimPace(Mutex<Option<Instant>>);

impl InterimPace {
    /// Between two interim statuses.
    const PERIOD: Duration = Duration::from_millis(500);
    /// No turn is later than this.
    const LONGEST: Duration = Duration::from_secs(60);

    /// Takes the next turn.
    pub(super) fn turn(&self, now: Instant) -> Instant {
        let mut next = self.0.lock();
        let turn = next.map_or(now, |next| next.clamp(now, now + Self::LONGEST));
        *next = Some(turn + Self::PERIOD);
        turn
    }
}

/// Whether `status` only says that replicas are on their way, if the host has `published`. A status that a person may have to
/// act on is not interim, nor is one from which a new leader learns about failures, capacities or lost clusters.
pub(super) fn is_interim(
    published: Option<&FederatedReplicaSetStatus>,
    status: &FederatedReplicaSetStatus,
) -> bool {
    is_true(&status.conditions, ConditionType::Reconciling)
        && RolloutRecord::of(status)
            .is_covered_by(&published.map(RolloutRecord::of).unwrap_or_default())
        && published.map(problems).unwrap_or_default() == problems(status)
        && published.map(internal_state).unwrap_or_default() == internal_state(status)
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
        Some(ConditionType::Placed | ConditionType::Ready | ConditionType::Available) => true,
        Some(ConditionType::Progressing) => {
            condition.reason == ConditionReason::RollingOut.as_str()
        }
        Some(ConditionType::Reconciling) => matches!(
            ConditionReason::parse(&condition.reason),
            Some(
                ConditionReason::Rescheduling
                    | ConditionReason::ReplicasUnavailable
                    | ConditionReason::RollingOut
                    | ConditionReason::WaitingForMembers
            )
        ),
        _ => false,
    }
}

/// What a new leader has to know of the clusters, except what the last writes requested: each cluster shows that as well.
fn internal_state(
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
        .filter(|(_, state)| *state != nothing)
        .map(|(name, (state, capacity, internal))| (name, state, capacity, internal))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f38_interim_statuses_of_many_objects_take_turns() {
        let (pace, now) = (InterimPace::default(), Instant::now());
        let turns: Vec<_> = (0..200).map(|_| pace.turn(now) - now).collect();
        assert_eq!(turns[0], Duration::ZERO, "the first one does not wait");
        assert_eq!(turns[4], InterimPace::PERIOD * 4);
        assert_eq!(turns[199], InterimPace::LONGEST);
        let later = now + InterimPace::LONGEST * 2;
        assert_eq!(pace.turn(later), later, "nobody else has reported lately");
    }
}
