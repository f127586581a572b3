//! The conditions of a FederatedReplicaSet (F6): Accepted, Placed and Ready always, the others while they are true.

use fedrs_api::{
    ConditionReason, ConditionType, FederatedReplicaSetStatus, RejectionKind, conditions::condition,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::{clusters::state_detail, names::unknown_names, unready::unready_for_long};
use crate::check::{
    count::from_status,
    decision::{Decision, MemberDecision},
    eligibility::Eligibility,
    messages::{ClusterDetail, NotPlaced, Waiting, conditions as texts},
};

/// The conditions of `status`, which has everything else.
pub(super) fn conditions(
    decision: &Decision<'_>,
    status: &FederatedReplicaSetStatus,
) -> Vec<Condition> {
    let mut set = Conditions::of(
        &decision.snapshot.previous.conditions,
        status.observed_generation,
        decision.now,
    );
    set.put(
        ConditionType::Accepted,
        true,
        ConditionReason::Valid,
        texts::ACCEPTED,
    );
    let not_placed = not_placed(decision);
    put_placed(&mut set, decision, not_placed.as_ref());
    put_ready(&mut set, decision, status, not_placed.as_ref());
    if !decision.snapshot.frs.paused && !decision.is_settled(status) {
        let reason = reconciling_reason(decision, not_placed.as_ref());
        let message = waiting(decision, status);
        set.put(ConditionType::Reconciling, true, reason, &message);
    }
    put_problems(&mut set, decision, status);
    if decision.snapshot.frs.paused {
        set.put(
            ConditionType::Paused,
            true,
            ConditionReason::Paused,
            texts::PAUSED,
        );
    }
    set.built
}

/// Builds conditions, keeping the time of the last transition while the status stays.
pub(super) struct Conditions<'a> {
    previous: &'a [Condition],
    generation: Option<i64>,
    now: Timestamp,
    pub(super) built: Vec<Condition>,
}

impl<'a> Conditions<'a> {
    pub(super) fn of(previous: &'a [Condition], generation: Option<i64>, now: Timestamp) -> Self {
        Self {
            previous,
            // Before the first decision the status has -1, which a condition must not have.
            generation: generation.filter(|generation| *generation >= 0),
            now,
            built: Vec::new(),
        }
    }

    pub(super) fn put(
        &mut self,
        type_: ConditionType,
        holds: bool,
        reason: ConditionReason,
        message: &str,
    ) {
        self.built.push(condition(
            self.previous,
            type_,
            holds,
            reason,
            message,
            self.generation,
            self.now,
        ));
    }
}

fn put_placed(
    set: &mut Conditions<'_>,
    decision: &Decision<'_>,
    not_placed: Option<&NotPlaced<'_>>,
) {
    let type_ = ConditionType::Placed;
    if decision.plan.is_none() {
        set.put(
            type_,
            false,
            ConditionReason::WaitingForMembers,
            texts::JOINING,
        );
    } else if let Some(not_placed) = not_placed {
        set.put(type_, false, not_placed.reason(), &not_placed.to_string());
    } else if decision.is_moving() {
        set.put(
            type_,
            false,
            ConditionReason::Rescheduling,
            texts::RESCHEDULING,
        );
    } else {
        set.put(
            type_,
            true,
            ConditionReason::AllReplicasPlaced,
            texts::PLACED,
        );
    }
}

/// Ready: decided for this generation, and every replica placed and available as last known.
fn put_ready(
    set: &mut Conditions<'_>,
    decision: &Decision<'_>,
    status: &FederatedReplicaSetStatus,
    not_placed: Option<&NotPlaced<'_>>,
) {
    let type_ = ConditionType::Ready;
    if decision.plan.is_none() {
        set.put(
            type_,
            false,
            ConditionReason::WaitingForMembers,
            texts::JOINING,
        );
        return;
    }
    let desired = u64::from(decision.snapshot.frs.replicas);
    let available = from_status(status.available_replicas);
    let message = texts::available(available, desired);
    if available < desired {
        set.put(type_, false, ConditionReason::ReplicasUnavailable, &message);
    } else if let Some(not_placed) = not_placed {
        set.put(type_, false, not_placed.reason(), &not_placed.to_string());
    } else {
        set.put(type_, true, ConditionReason::AllReplicasAvailable, &message);
    }
}

/// Why replicas have no cluster, if any has none.
pub(super) fn not_placed<'a>(decision: &Decision<'a>) -> Option<NotPlaced<'a>> {
    let unplaced = decision.unplaced();
    if unplaced == 0 {
        return None;
    }
    let placement = &decision.snapshot.frs.placement;
    let members = || {
        let members = decision.evaluations.iter();
        members
            .filter(|evaluation| !evaluation.eligibility.is_duplicate())
            .map(|evaluation| evaluation.member)
    };
    let all: Vec<_> = members().map(|member| member.name.as_str()).collect();
    let is_selected = |name: &&str| {
        let preference = placement.for_cluster(name);
        preference.is_some_and(|preference| preference.weight > 0 || preference.min_replicas > 0)
    };
    let draining = members().filter(|member| member.draining);
    let cordoned = members().filter(|member| !member.schedulable && !member.draining);
    Some(NotPlaced {
        unplaced,
        replicas: u64::from(decision.snapshot.frs.replicas),
        has_match: all.iter().any(is_selected),
        draining: draining.map(|member| member.name.as_str()).collect(),
        cordoned: cordoned.map(|member| member.name.as_str()).collect(),
        unknown: unknown_names(placement, &all),
    })
}

/// The most significant reason for being on the way.
fn reconciling_reason(
    decision: &Decision<'_>,
    not_placed: Option<&NotPlaced<'_>>,
) -> ConditionReason {
    let unknown = |member: &MemberDecision<'_>| {
        matches!(member.evaluation.eligibility, Eligibility::Unknown { .. })
            && member.evaluation.requested() > 0
    };
    let rejecting = |member: &MemberDecision<'_>| {
        member.is_eligible() && member.evaluation.rejected_since().is_some()
    };
    if decision.plan.is_none() {
        ConditionReason::WaitingForMembers
    } else if let Some(not_placed) = not_placed {
        not_placed.reason()
    } else if decision.members().any(|member| unknown(&member)) {
        ConditionReason::MemberUnknown
    } else if decision.members().any(|member| rejecting(&member)) {
        ConditionReason::WorkloadRejected
    } else if decision.is_moving() {
        ConditionReason::Rescheduling
    } else {
        ConditionReason::ReplicasUnavailable
    }
}

/// What the controller waits for, cluster by cluster.
fn waiting(decision: &Decision<'_>, status: &FederatedReplicaSetStatus) -> String {
    let mut parts = Vec::new();
    for member in decision.members() {
        let evaluation = member.evaluation;
        match state_detail(&evaluation.eligibility) {
            None => push_waiting(&mut parts, &member),
            Some(ClusterDetail::Unknown { .. }) if evaluation.requested() == 0 => {}
            Some(detail @ (ClusterDetail::Unknown { .. } | ClusterDetail::Joining { .. })) => {
                parts.push(Waiting::Cluster(member.name(), detail));
            }
            Some(_) => {}
        }
    }
    if parts.is_empty() {
        parts.push(Waiting::Capacity(from_status(status.unplaced_replicas)));
    }
    texts::waiting(&parts)
}

/// What the controller waits for in an eligible member.
fn push_waiting<'a>(parts: &mut Vec<Waiting<'a>>, member: &MemberDecision<'a>) {
    let (name, evaluation) = (member.name(), member.evaluation);
    if let Some(until) = member.step.held_until {
        parts.push(Waiting::NextWrite(name, until));
        return;
    }
    let target = member.planned.target;
    let missing = target.total().saturating_sub(evaluation.available());
    if evaluation.rejected_since().is_some() {
        parts.push(Waiting::Rejection(name));
    } else if missing > target.probes {
        parts.push(Waiting::Availability(name, missing));
    }
    let surplus = evaluation.requested().saturating_sub(target.total());
    if surplus > 0 {
        parts.push(Waiting::Replacements(name, surplus));
    }
}

/// The conditions that are present only while there is a problem.
fn put_problems(
    set: &mut Conditions<'_>,
    decision: &Decision<'_>,
    status: &FederatedReplicaSetStatus,
) {
    let mut put = |type_, reason, message: &str| set.put(type_, true, reason, message);
    let conflicts: Vec<_> = status
        .clusters
        .iter()
        .filter_map(|cluster| Some((&*cluster.name, cluster.internal.rejection.as_ref()?)))
        .filter(|(_, rejection)| rejection.kind == RejectionKind::NameConflict)
        .map(|(cluster, rejection)| (cluster, &*rejection.message))
        .collect();
    if !conflicts.is_empty() {
        let message = texts::name_conflicts(&conflicts);
        put(
            ConditionType::NameConflict,
            ConditionReason::OwnedByAnother,
            &message,
        );
    }
    let overlapping = decision.snapshot.overlapping;
    if !overlapping.is_empty() {
        let message = texts::selector_overlap(overlapping);
        put(
            ConditionType::SelectorOverlap,
            ConditionReason::OverlappingSelector,
            &message,
        );
    }
    let members = || decision.members();
    let unready: Vec<_> = members()
        .filter_map(|member| {
            let since = unready_for_long(decision, &member)?;
            Some((member.name(), member.evaluation.unready(), since))
        })
        .collect();
    if let Some(surplus) = blocked(decision, !unready.is_empty()) {
        let message = texts::move_blocked(&surplus);
        put(
            ConditionType::MoveBlocked,
            ConditionReason::ReplacementsNotReady,
            &message,
        );
    }
    if !unready.is_empty() {
        let message = texts::not_becoming_ready(&unready);
        put(
            ConditionType::NotBecomingReady,
            ConditionReason::NoProgress,
            &message,
        );
    }
    let contentions: Vec<_> = members()
        .filter_map(|member| {
            let (times, manager) = member.step.writes.contention()?;
            Some((member.name(), times, manager))
        })
        .collect();
    if !contentions.is_empty() {
        let message = texts::contended(&contentions);
        put(
            ConditionType::Contended,
            ConditionReason::ExternalWriter,
            &message,
        );
    }
    // A ReplicaSet keeps the pods that it has.
    let template_hash = decision.snapshot.template_hash;
    let outdated: Vec<_> = members()
        .filter(|member| !matches!(member.evaluation.eligibility, Eligibility::Lost { .. }))
        .map(|member| {
            (
                member.name(),
                member.evaluation.pods_by_template(template_hash).1,
            )
        })
        .filter(|(_, pods)| *pods > 0)
        .collect();
    if !outdated.is_empty() {
        let message = texts::template_outdated(&outdated);
        put(
            ConditionType::TemplateOutdated,
            ConditionReason::OutdatedPods,
            &message,
        );
    }
}

/// Replicas that can't be removed, by cluster, if their replacements have no capacity or, with `unready`, don't become
/// ready (F20).
fn blocked<'a>(decision: &Decision<'a>, unready: bool) -> Option<Vec<(&'a str, u64)>> {
    let eligible = || decision.members().filter(MemberDecision::is_eligible);
    let surplus: Vec<_> = eligible()
        .map(|member| (member.name(), member.surplus()))
        .filter(|(_, surplus)| *surplus > 0)
        .collect();
    let no_capacity = decision.unplaced() > 0
        || eligible()
            .any(|member| member.evaluation.scheduling.failed > member.planned.target.probes);
    (!surplus.is_empty() && (no_capacity || unready)).then_some(surplus)
}
