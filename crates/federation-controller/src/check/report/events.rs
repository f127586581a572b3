//! Events about what changed since the previous status (F38).

use controller_base::event::Event;
use fedrs_api::{
    ClusterWait, ConditionReason, ConditionType, EventReason, FederatedReplicaSetStatus,
    WaitReason,
    conditions::{find, is_true},
    pluralize,
};

use super::{
    cluster_message::{being_deleted, not_eligible},
    placement::PlacementReport,
    rollout::RolloutReport,
};
use crate::check::{
    count::from_status,
    decision::{Decision, MemberDecision},
    eligibility::Eligibility,
};

/// Conditions that are worth an event of the same name when they become true.
const RECORDED: [ConditionType; 2] = [ConditionType::Contended, ConditionType::NotBecomingReady];

/// The events of `decision`, whose status is `status`.
pub(super) fn events(
    decision: &Decision<'_>,
    status: &FederatedReplicaSetStatus,
    placement: &PlacementReport,
) -> Vec<Event> {
    let previous = decision.snapshot.previous;
    let mut events = Vec::new();
    for member in decision.members() {
        if decision.plan.is_some() && member.is_eligible() {
            events.extend(capacity_event(&member));
        }
        events.extend(eligibility_event(&member, status, previous));
        if decision.plan.is_some() && !decision.snapshot.frs.paused {
            events.extend(deletion_event(decision, &member));
        }
    }
    let is_new_spec = decision.plan.is_some() && !decision.snapshot.is_observed();
    if let Some((reason, message)) = &placement.unplaced {
        // The MemberCluster says why a member is unknown; one whose Deployments are listed for the first time is so for a moment.
        let is_known = *reason != ConditionReason::MemberUnknown;
        let placed = find(&previous.conditions, ConditionType::Placed);
        let was_unknown =
            placed.is_some_and(|placed| placed.reason == ConditionReason::MemberUnknown.as_str());
        let is_other = status.unplaced_replicas != previous.unplaced_replicas || was_unknown;
        if is_known && is_other {
            let message = placement.with_unknown_names(message);
            events.push(Event::warning(*reason, message));
        }
    } else if is_new_spec && let Some(unknown) = &placement.unknown_names {
        events.push(Event::warning(EventReason::UnknownCluster, unknown));
    }
    for type_ in RECORDED {
        if let Some(condition) = find(&status.conditions, type_)
            && !is_true(&previous.conditions, type_)
        {
            events.push(Event::warning(type_, &condition.message));
        }
    }
    if let Some(rollout) = RolloutReport::of(decision) {
        let unknown = is_new_spec.then(|| rollout.unknown_clusters()).flatten();
        let unknown = unknown.map(|unknown| Event::warning(EventReason::UnknownCluster, unknown));
        events.extend(unknown.into_iter().chain(rollout.events(status)));
    }
    events
}

/// A cluster that is full, or can run more replicas again (F34).
fn capacity_event(member: &MemberDecision<'_>) -> Option<Event> {
    let (name, scheduling) = (member.name(), &member.evaluation.scheduling);
    let before = member
        .evaluation
        .previous
        .and_then(|previous| previous.capacity);
    match (before.map(from_status), member.planned.capacity.capacity) {
        (None, Some(capacity)) => {
            let pods = pluralize(scheduling.unscheduled, "pod");
            let why = scheduling.message.unwrap_or("no message");
            let state = if scheduling.not_created > 0 {
                "not created"
            } else {
                "unschedulable"
            };
            let text = format!("{name}: cluster full: capacity {capacity}, {pods} {state} ({why})");
            Some(Event::warning(EventReason::ClusterFull, text))
        }
        (Some(before), Some(after)) if after > before => {
            let text = format!("{name}: capacity raised from {before} to {after}");
            Some(Event::normal(EventReason::CapacityRaised, text))
        }
        (Some(before), None) => {
            let text = format!("{name}: capacity of {before} is no longer a limit");
            Some(Event::normal(EventReason::CapacityRaised, text))
        }
        _ => None,
    }
}

/// A local ReplicaSet whose deletion hangs. Recorded once: from then on the wait in the status has no end.
fn deletion_event(decision: &Decision<'_>, member: &MemberDecision<'_>) -> Option<Event> {
    let (name, evaluation) = (member.name(), member.evaluation);
    let deletion = evaluation.deletion().filter(|_| member.is_eligible())?;
    let counts_from = evaluation.deletion_counts_from(decision.snapshot.settings);
    let hangs = counts_from.is_none_or(|time| time <= decision.now);
    let mut waits = evaluation
        .previous
        .iter()
        .flat_map(|previous| &previous.waits);
    let is_reported =
        |wait: &ClusterWait| wait.reason == WaitReason::Deletion && wait.until.is_none();
    if !hangs || waits.any(is_reported) {
        return None;
    }
    let text = format!("{name}: {}", being_deleted(decision.local_kind(), deletion));
    Some(Event::warning(EventReason::ReplicaSetTerminating, text))
}

/// A cluster that is lost, has returned, or is registered twice (F33).
fn eligibility_event(
    member: &MemberDecision<'_>,
    status: &FederatedReplicaSetStatus,
    previous: &FederatedReplicaSetStatus,
) -> Option<Event> {
    let (name, evaluation) = (member.name(), member.evaluation);
    let was_lost = evaluation
        .previous
        .is_some_and(|previous| previous.internal.lost_since.is_some());
    let replicas = || pluralize(evaluation.requested(), "replica");
    match evaluation.eligibility {
        Eligibility::Lost { since } if !was_lost && evaluation.requested() > 0 => {
            let replicas = replicas();
            let text =
                format!("{name}: lost since {since:.0}: rescheduling {replicas} to other clusters");
            Some(Event::warning(EventReason::ClusterLost, text))
        }
        Eligibility::Eligible { .. } if was_lost => {
            let text = format!("{name}: cluster returned with {}", replicas());
            Some(Event::normal(EventReason::ClusterReturned, text))
        }
        Eligibility::Duplicate { of } => {
            let is_reported = |status: &FederatedReplicaSetStatus| {
                let mut clusters = status.clusters.iter();
                clusters.any(|cluster| {
                    cluster.name == name && cluster.same_cluster_as.as_deref() == Some(of)
                })
            };
            let is_new = is_reported(status) && !is_reported(previous);
            let (_, detail) = not_eligible(evaluation).filter(|_| is_new)?;
            let text = format!("{name}: {detail}; remove one of the two members");
            Some(Event::warning(EventReason::DuplicateMember, text))
        }
        _ => None,
    }
}
