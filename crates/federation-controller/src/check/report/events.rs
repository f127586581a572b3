//! Events about what changed since the previous status (F38).

use fedrs_api::{
    ConditionType, EventReason, FederatedReplicaSetStatus,
    conditions::{find, is_true},
};

use crate::{
    check::{
        count::from_status,
        decision::{Decision, MemberDecision},
        eligibility::Eligibility,
        messages,
    },
    event::Event,
};

use super::conditions::not_placed;

/// Conditions that are worth an event when they become true.
const RECORDED: [(ConditionType, EventReason); 2] = [
    (ConditionType::Contended, EventReason::Contended),
    (
        ConditionType::NotBecomingReady,
        EventReason::NotBecomingReady,
    ),
];

/// The events of `decision`, whose status is `status`.
pub(super) fn events(decision: &Decision<'_>, status: &FederatedReplicaSetStatus) -> Vec<Event> {
    let previous = decision.snapshot.previous;
    let mut events = Vec::new();
    for member in decision.members() {
        if decision.plan.is_some() {
            events.extend(capacity_event(&member));
        }
        events.extend(eligibility_event(&member, status, previous));
    }
    if status.unplaced_replicas != previous.unplaced_replicas
        && let Some(not_placed) = not_placed(decision)
    {
        let message = not_placed.to_string();
        events.push(messages::unplaced_event(not_placed.has_match, &message));
    }
    for (type_, reason) in RECORDED {
        if let Some(condition) = find(&status.conditions, type_)
            && !is_true(&previous.conditions, type_)
        {
            events.push(messages::condition_event(reason, &condition.message));
        }
    }
    events
}

/// A cluster that is full, or can run more replicas again (F34).
fn capacity_event(member: &MemberDecision<'_>) -> Option<Event> {
    if !member.is_eligible() {
        return None;
    }
    let evaluation = member.evaluation;
    let before = evaluation.previous.and_then(|previous| previous.capacity);
    messages::capacity_event(
        member.name(),
        (before.map(from_status), member.planned.capacity.capacity),
        evaluation.scheduling.failed,
        evaluation.scheduling.message,
    )
}

/// A cluster that is lost, returned, or turned out to be registered twice (F33).
fn eligibility_event(
    member: &MemberDecision<'_>,
    status: &FederatedReplicaSetStatus,
    previous: &FederatedReplicaSetStatus,
) -> Option<Event> {
    let (name, evaluation) = (member.name(), member.evaluation);
    let was_lost = evaluation
        .previous
        .is_some_and(|previous| previous.internal.lost_since.is_some());
    let replicas = evaluation.requested();
    match evaluation.eligibility {
        Eligibility::Lost { since } if !was_lost && replicas > 0 => {
            Some(messages::lost_event(name, since, replicas))
        }
        Eligibility::Eligible { .. } if was_lost => Some(messages::returned_event(name, replicas)),
        Eligibility::Duplicate { of } => {
            let is_reported = |status: &FederatedReplicaSetStatus| {
                let mut clusters = status.clusters.iter();
                clusters.any(|cluster| {
                    cluster.name == name && cluster.same_cluster_as.as_deref() == Some(of)
                })
            };
            let is_new = is_reported(status) && !is_reported(previous);
            is_new.then(|| messages::duplicate_event(name, of))
        }
        _ => None,
    }
}
