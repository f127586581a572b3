//! The conditions of a FederatedReplicaSet (F6): Accepted, Placed and Ready always, the others while they are true.

use std::{collections::BTreeSet, time::Duration};

use controller_base::short_list::short_list;
use fedrs_api::{
    ClusterWait, ConditionReason, ConditionType, FederatedReplicaSetStatus, NewCondition,
    RejectionKind, SetKind, WaitReason, pluralize,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::{placement::PlacementReport, rollout::RolloutReport};
use crate::check::{
    count::from_status,
    decision::{Decision, MemberDecision},
    eligibility::Eligibility,
    evaluation::MemberEvaluation,
    plan,
    time::after,
};

/// The time without progress after which `NotBecomingReady` is true: the default `progressDeadlineSeconds` of a Deployment.
const PROGRESS_DEADLINE: Duration = Duration::from_secs(600);

/// Different rejections of the template that are shown at most.
const SHOWN: usize = 3;

const JOINING: &str = "members that were just added have not answered yet";

/// A condition of a FederatedReplicaSet.
pub(super) type FrsCondition = NewCondition<ConditionType, ConditionReason>;

/// The `new` conditions with their times. Each keeps the time of its last transition while its status stays.
pub(super) fn build(
    previous: &[Condition],
    generation: Option<i64>,
    now: Timestamp,
    new: impl IntoIterator<Item = FrsCondition>,
) -> Vec<Condition> {
    // Before the first decision the status has -1, which a condition must not have.
    let generation = generation.filter(|generation| *generation >= 0);
    new.into_iter()
        .map(|new| new.into_condition(previous, generation, now))
        .collect()
}

/// The conditions of `status`, which has everything else.
pub(super) fn conditions(
    decision: &Decision<'_>,
    status: &FederatedReplicaSetStatus,
    placement: &PlacementReport,
) -> Vec<Condition> {
    use {ConditionReason as Reason, ConditionType as Type};
    let valid = "the spec and its preferences are valid";
    let unready = unready_for_long(decision);
    let (rejected_as, rejected) = match template_rejected(decision) {
        Some(message) => (Reason::TemplateRejected, Some(message)),
        None => (Reason::WorkloadRejected, workload_rejected(decision)),
    };
    let accepted = match &rejected {
        Some(message) => NewCondition::new(Type::Accepted, false, rejected_as, message),
        None => NewCondition::new(Type::Accepted, true, Reason::Valid, valid),
    };
    let rollout = RolloutReport::of(decision);
    let failed = rollout.and_then(|rollout| rollout.failure());
    let (stalled_as, stalled) = match failed {
        Some((reason, message)) if rejected.is_none() => (reason, Some(message)),
        _ => (rejected_as, rejected),
    };
    let problems = [
        (Type::Stalled, stalled_as, stalled),
        (
            Type::NameConflict,
            Reason::OwnedByAnother,
            name_conflict(status),
        ),
        (
            Type::SelectorOverlap,
            Reason::OverlappingSelector,
            selector_overlap(decision),
        ),
        (
            Type::MoveBlocked,
            Reason::ReplacementsNotReady,
            move_blocked(decision, unready.is_some()),
        ),
        (Type::NotBecomingReady, Reason::NoProgress, unready),
        (Type::Contended, Reason::ExternalWriter, contended(decision)),
        (
            Type::TemplateOutdated,
            Reason::OutdatedPods,
            template_outdated(decision),
        ),
        paused(decision),
    ];
    let problems = problems.into_iter().filter_map(|(type_, reason, message)| {
        Some(NewCondition::new(type_, true, reason, message?))
    });
    let always = [
        accepted,
        placed(decision, placement),
        ready(decision, status, placement),
    ];
    let previous = &decision.snapshot.previous.conditions;
    let of_rollout = rollout.map(|rollout| rollout.conditions(status));
    let conditions = always
        .into_iter()
        .chain(of_rollout.into_iter().flatten())
        .chain(reconciling(decision, status, placement))
        .chain(problems);
    build(
        previous,
        status.observed_generation,
        decision.now,
        conditions,
    )
}

/// Whether every replica has a cluster that can run it, and all clusters are at their target.
fn placed(decision: &Decision<'_>, placement: &PlacementReport) -> FrsCondition {
    let (holds, reason, message) = if decision.plan.is_none() {
        (false, ConditionReason::WaitingForMembers, JOINING)
    } else if let Some((reason, message)) = &placement.unplaced {
        (false, *reason, &**message)
    } else if decision.is_moving() {
        let message = "replicas are being scheduled to their clusters";
        (false, ConditionReason::Rescheduling, message)
    } else {
        let message = "all clusters are at their desired replicas";
        (true, ConditionReason::AllReplicasPlaced, message)
    };
    let message = placement.with_unknown_names(message);
    NewCondition::new(ConditionType::Placed, holds, reason, message)
}

/// Ready: decided for this generation, and every replica placed and available as last known.
fn ready(
    decision: &Decision<'_>,
    status: &FederatedReplicaSetStatus,
    placement: &PlacementReport,
) -> FrsCondition {
    let ready = |status: bool, reason, message: String| {
        NewCondition::new(ConditionType::Ready, status, reason, message)
    };
    if decision.plan.is_none() {
        return ready(
            false,
            ConditionReason::WaitingForMembers,
            JOINING.to_owned(),
        );
    }
    let desired = u64::from(decision.snapshot.frs.replicas);
    let available = from_status(status.available_replicas);
    let verb = if desired == 1 { "is" } else { "are" };
    let replicas = pluralize(desired, "replica");
    let message = match available.saturating_sub(desired) {
        0 => format!("{available} of {replicas} {verb} available"),
        surplus => format!("{replicas} {verb} available, and {surplus} surplus"),
    };
    if available < desired {
        return ready(false, ConditionReason::ReplicasUnavailable, message);
    }
    match &placement.unplaced {
        Some((reason, why)) => ready(false, *reason, placement.with_unknown_names(why)),
        None => match RolloutReport::of(decision).filter(|rollout| !rollout.is_complete()) {
            Some(rollout) => ready(false, rollout.reason(), rollout.message()),
            None => ready(true, ConditionReason::AllReplicasAvailable, message),
        },
    }
}

/// What the controller still works towards.
fn reconciling(
    decision: &Decision<'_>,
    status: &FederatedReplicaSetStatus,
    placement: &PlacementReport,
) -> Option<FrsCondition> {
    let rejects =
        |member: MemberDecision<'_>| member.is_eligible() && member.template_rejection().is_some();
    // If all members reject the template, a person has to correct it.
    let waits_for_template =
        template_rejected(decision).is_none() && decision.members().any(rejects);
    let is_settled = decision.is_settled(status) && !waits_for_template;
    let has_failed = RolloutReport::of(decision).is_some_and(|rollout| rollout.failure().is_some());
    let is_stalled = has_failed || workload_rejected(decision).is_some();
    if decision.snapshot.frs.paused || is_settled || is_stalled {
        return None;
    }
    let message = waiting(decision, status);
    let reason = reconciling_reason(decision, placement);
    Some(NewCondition::new(
        ConditionType::Reconciling,
        true,
        reason,
        message,
    ))
}

/// The most significant reason of the condition `Reconciling`.
fn reconciling_reason(decision: &Decision<'_>, placement: &PlacementReport) -> ConditionReason {
    let is_unknown = |member: MemberDecision<'_>| {
        member.evaluation.eligibility.is_unknown() && member.evaluation.requested() > 0
    };
    let is_rejecting = |member: MemberDecision<'_>| {
        let rejects =
            member.creation_rejection().is_some() || member.template_rejection().is_some();
        member.is_eligible() && rejects
    };
    if decision.plan.is_none() {
        ConditionReason::WaitingForMembers
    } else if let Some((reason, _)) = placement.unplaced {
        reason
    } else if decision.members().any(is_unknown) {
        ConditionReason::MemberUnknown
    } else if decision.members().any(is_rejecting) {
        ConditionReason::WorkloadRejected
    } else if decision.is_moving() {
        ConditionReason::Rescheduling
    } else if let Some(rollout) = RolloutReport::of(decision).filter(|_| decision.is_rolling_out())
    {
        rollout.reason()
    } else {
        ConditionReason::ReplicasUnavailable
    }
}

/// What the controller waits for, cluster by cluster.
fn waiting(decision: &Decision<'_>, status: &FederatedReplicaSetStatus) -> String {
    if decision.plan.is_none() && status.clusters.is_empty() {
        return JOINING.to_owned();
    }
    // What only shows more capacity matters where replicas have no cluster.
    let is_capacity = |wait: &&ClusterWait| wait.reason == WaitReason::CapacityProbe;
    let waiting = status.clusters.iter().filter_map(|cluster| {
        let waits = cluster.waits.iter().filter(|wait| !is_capacity(wait));
        let waits = list(waits.map(ToString::to_string), ", and ")?;
        Some(format!("{}: waiting {waits}", cluster.name))
    });
    short_list(waiting, "; ").unwrap_or_else(|| {
        let unplaced = pluralize(from_status(status.unplaced_replicas), "replica");
        format!("waiting for a cluster for {unplaced}")
    })
}

/// `parts` in one line, if there are any.
fn list(parts: impl Iterator<Item = String>, separator: &str) -> Option<String> {
    let parts: Vec<_> = parts.collect();
    (!parts.is_empty()).then(|| parts.join(separator))
}

/// Why no member accepts the template, if at least one rejects it.
fn template_rejected(decision: &Decision<'_>) -> Option<String> {
    let members = decision.evaluations.iter();
    if !plan::template_rejected(members.clone()) {
        return None;
    }
    let eligible = members.filter(|member| member.eligibility.is_eligible());
    let rejections = eligible.filter_map(|member| member.template_rejection);
    let shown = distinct(rejections.map(|rejection| &*rejection.message))?;
    Some(format!(
        "every member cluster rejects the template: {shown}"
    ))
}

/// Why all members that could get replicas reject the local ReplicaSet, if they have done so for longer than
/// `unscheduledTimeout`: a person has to change something (F28).
fn workload_rejected(decision: &Decision<'_>) -> Option<String> {
    let (frs, now) = (decision.snapshot.frs, decision.now);
    let could_get_replicas = |member: &&MemberEvaluation<'_>| {
        let preference = frs.placement.for_cluster(&member.member.name);
        let is_selected = preference.is_some_and(|preference| {
            let some = preference.weight > 0 || preference.min_replicas > 0;
            some && preference.max_replicas != Some(0)
        });
        let is_open = member.member.schedulable && !member.member.draining;
        member.eligibility.is_eligible() && is_open && is_selected
    };
    let mut members = decision.evaluations.iter().filter(could_get_replicas);
    let settings = decision.snapshot.settings;
    let rejects = |member: &MemberEvaluation<'_>| {
        member.rejection().is_some() && member.rejects_for_long(now, settings)
    };
    if !members.clone().all(rejects) {
        return None;
    }
    let kind = decision.local_kind();
    let rejections = members.by_ref().filter_map(MemberEvaluation::rejection);
    let shown = distinct(rejections.map(|rejection| &*rejection.message))?;
    Some(format!("every member cluster rejects the {kind}: {shown}"))
}

/// A few of the different `messages`, if there are any.
fn distinct<'a>(messages: impl Iterator<Item = &'a str>) -> Option<String> {
    let messages: BTreeSet<_> = messages.collect();
    list(messages.into_iter().take(SHOWN).map(str::to_owned), "; ")
}

/// Members whose local ReplicaSet belongs to another owner.
fn name_conflict(status: &FederatedReplicaSetStatus) -> Option<String> {
    let conflicts = status.clusters.iter().filter_map(|cluster| {
        let rejection = cluster.internal.rejection.as_ref()?;
        let is_conflict = rejection.kind == RejectionKind::NameConflict;
        is_conflict.then(|| format!("{}: {}", cluster.name, rejection.message))
    });
    short_list(conflicts, "; ")
}

fn selector_overlap(decision: &Decision<'_>) -> Option<String> {
    let others = list(decision.snapshot.overlapping.iter().cloned(), ", ")?;
    Some(format!(
        "the selector overlaps with the selectors of {others}: each set could adopt the others' pods"
    ))
}

/// Replicas that can't be removed, if their replacements have no capacity or, with `unready`, don't become ready (F20).
fn move_blocked(decision: &Decision<'_>, unready: bool) -> Option<String> {
    let eligible = || decision.members().filter(MemberDecision::is_eligible);
    let has_failed = |member: MemberDecision<'_>| {
        member.evaluation.scheduling.failed > member.planned.target.probes
    };
    if !unready && decision.unplaced() == 0 && !eligible().any(has_failed) {
        return None;
    }
    let surplus = eligible()
        .filter(|member| member.surplus() > member.step.drain.staying)
        .map(|member| {
            format!(
                "{} in {}",
                pluralize(member.surplus(), "replica"),
                member.name()
            )
        });
    let surplus = short_list(surplus, ", ")?;
    Some(format!(
        "cannot remove {surplus}: replacements are not ready"
    ))
}

/// Clusters with scheduled pods of which none has become ready for longer than the deadline.
fn unready_for_long(decision: &Decision<'_>) -> Option<String> {
    // Pods that are ready, but not for long enough, count as progress only later.
    let min_ready = Duration::from_secs(decision.snapshot.frs.min_ready_seconds.into());
    let eligible = decision.members().filter(MemberDecision::is_eligible);
    let unready = eligible.filter_map(|member| {
        let since = member.evaluation.unready_since(decision.now)?;
        let is_long = after(since, PROGRESS_DEADLINE + min_ready) <= decision.now;
        let (name, pods) = (member.name(), member.evaluation.unready());
        is_long.then(|| {
            let pods = pluralize(pods, "pod");
            format!("{pods} in {name} not ready, without progress since {since:.0}")
        })
    });
    short_list(unready, "; ")
}

/// Clusters whose local ReplicaSet another writer keeps changing.
fn contended(decision: &Decision<'_>) -> Option<String> {
    let kind = decision.local_kind();
    let contentions = decision.members().filter_map(|member| {
        let (times, manager) = member.step.writes.contention()?;
        let (name, manager) = (member.name(), manager.unwrap_or("another writer"));
        Some(format!(
            "the {kind} in {name} was changed {times} times by {manager}, and restored each time"
        ))
    });
    short_list(contentions, "; ")
}

/// Clusters with pods of other templates: a ReplicaSet keeps the pods that it has.
fn template_outdated(decision: &Decision<'_>) -> Option<String> {
    if decision.snapshot.rollout.is_some() {
        return None;
    }
    let outdated = decision.members().filter_map(|member| {
        let is_lost = matches!(member.evaluation.eligibility, Eligibility::Lost { .. });
        let (_, pods) = member
            .evaluation
            .pods_by_template(decision.snapshot.template_hash);
        (!is_lost && pods > 0).then(|| format!("{pods} in {}", member.name()))
    });
    let outdated = short_list(outdated, ", ")?;
    Some(format!(
        "pods were created from another template, or adopted: {outdated}; they stay until they are deleted"
    ))
}

fn paused(decision: &Decision<'_>) -> (ConditionType, ConditionReason, Option<String>) {
    let frs = &decision.snapshot.frs;
    let kind = frs.key.kind;
    let (reason, rolling) = match kind {
        SetKind::FederatedReplicaSet => (ConditionReason::Paused, ""),
        SetKind::FederatedDeployment => (
            ConditionReason::Stopped,
            ", apart from a pause of those that roll",
        ),
    };
    let field = kind.stopping_field();
    let message = format!("spec.{field} is true: the members are not changed{rolling}");
    (ConditionType::Paused, reason, frs.paused.then_some(message))
}
