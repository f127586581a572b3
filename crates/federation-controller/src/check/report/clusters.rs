//! The entry of one member in the status (F6, F19).

use cluster_informer::SyncState;
use federated_scheduler::Reason;
use fedrs_api::ClusterStatus;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::unready::unready_since;
use crate::check::{
    count::to_status,
    decision::{Decision, MemberDecision},
    eligibility::Eligibility,
    evaluation::MemberEvaluation,
    messages::{ClusterDetail, ClusterMessage},
};

/// The entries of the members that have replicas, or preferences that explain why not.
pub(super) fn clusters(decision: &Decision<'_>) -> Vec<ClusterStatus> {
    let placement = &decision.snapshot.frs.placement;
    decision
        .members()
        .filter(|member| {
            member.evaluation.requested() > 0
                || member.evaluation.live_set().is_some()
                || placement.for_cluster(member.name()).is_some()
        })
        .map(|member| cluster(decision, &member))
        .collect()
}

fn cluster(decision: &Decision<'_>, member: &MemberDecision<'_>) -> ClusterStatus {
    let template_hash = Some(decision.snapshot.template_hash);
    let mut status = observed(member.evaluation, template_hash, decision.now);
    let is_decided = decision.plan.is_some();
    if member.is_eligible() && is_decided {
        decide(&mut status, member);
    }
    if !member.is_eligible() || is_decided {
        let message = message(decision, member);
        (status.reason, status.message) = (message.reason, message.text);
    }
    status
}

/// The entry as far as it is observed: counts and state. Everything else is as in the previous status.
pub(super) fn observed(
    member: &MemberEvaluation<'_>,
    template_hash: Option<u32>,
    now: Timestamp,
) -> ClusterStatus {
    let mut status = ClusterStatus {
        name: member.member.name.clone(),
        ..member.previous.cloned().unwrap_or_default()
    };
    status.state = Some(member.eligibility.state());
    status.same_cluster_as = None;
    match member.eligibility {
        Eligibility::Lost { since } => {
            status = ClusterStatus {
                desired_replicas: 0,
                ..without_counts(status)
            };
            status.internal.capacity_probes = 0;
            status.internal.lost_since = Some(Time(since));
        }
        Eligibility::Duplicate { of } => {
            status.same_cluster_as = Some(of.to_owned());
            status.internal.lost_since = None;
        }
        Eligibility::Eligible { .. } => {
            status = with_counts(status, member, template_hash, now);
            status.internal.lost_since = None;
        }
        // Nothing is listed yet: the counts are as last known. Nor is it known whether a lost member is back.
        Eligibility::Joining { .. } | Eligibility::Unknown { .. }
            if member.member.sync == SyncState::NotSynced => {}
        Eligibility::Joining { .. } | Eligibility::Unknown { .. } => {
            status = with_counts(status, member, template_hash, now);
        }
    }
    status
}

fn without_counts(status: ClusterStatus) -> ClusterStatus {
    let mut status = ClusterStatus {
        replicas: 0,
        ready_replicas: 0,
        available_replicas: 0,
        updated_replicas: 0,
        unscheduled_replicas: 0,
        ..status
    };
    status.internal.unready_since = None;
    status
}

fn with_counts(
    status: ClusterStatus,
    member: &MemberEvaluation<'_>,
    template_hash: Option<u32>,
    now: Timestamp,
) -> ClusterStatus {
    let replicas = member.set().map_or(0, |set| u64::from(set.status_replicas));
    let updated = template_hash.map(|hash| to_status(member.pods_by_template(hash).0));
    let mut status = ClusterStatus {
        replicas: to_status(replicas),
        ready_replicas: to_status(member.ready()),
        available_replicas: to_status(member.available()),
        updated_replicas: updated.unwrap_or(status.updated_replicas.min(to_status(replicas))),
        unscheduled_replicas: to_status(member.scheduling.unscheduled),
        ..status
    };
    status.internal.unready_since = unready_since(member, now).map(Time);
    status
}

/// Adds what the check decided about an eligible member.
fn decide(status: &mut ClusterStatus, member: &MemberDecision<'_>) {
    let (target, capacity) = (member.planned.target, member.planned.capacity);
    status.desired_replicas = to_status(target.desired());
    status.capacity = capacity.capacity.map(to_status);
    let internal = &mut status.internal;
    internal.capacity_probes = to_status(target.probes);
    internal.growth_step = capacity.capacity.map_or(0, |_| to_status(capacity.step));
    if member.evaluation.rejected_since().is_none() {
        internal.rejection = None;
        internal.failures = to_status(u64::from(capacity.failures));
        internal.next_attempt_time = capacity.next_attempt.map(Time);
    }
    if member.evaluation.live_set().is_none() && member.evaluation.eligibility.is_writable() {
        internal.template = None;
    }
    member.step.writes.store(internal);
}

/// Why the cluster has its replicas.
fn message(decision: &Decision<'_>, member: &MemberDecision<'_>) -> ClusterMessage {
    let mut message = ClusterMessage::default();
    match state_detail(&member.evaluation.eligibility) {
        Some(detail) => message.push(detail),
        None => push_decided(&mut message, member),
    }
    if decision.snapshot.frs.paused {
        message.push(ClusterDetail::Paused);
    }
    message
}

/// The detail of a member that is not eligible.
pub(super) fn state_detail<'a>(eligibility: &Eligibility<'a>) -> Option<ClusterDetail<'a>> {
    Some(match *eligibility {
        Eligibility::Eligible { .. } => return None,
        Eligibility::Joining { until } => ClusterDetail::Joining { until },
        Eligibility::Unknown { cause, until } => ClusterDetail::Unknown { cause, until },
        Eligibility::Lost { since } => ClusterDetail::Lost { since },
        Eligibility::Duplicate { of } => ClusterDetail::Duplicate { of },
    })
}

/// What decided the replicas of an eligible member, what keeps it from them, and what it has beyond them.
fn push_decided(message: &mut ClusterMessage, member: &MemberDecision<'_>) {
    let (evaluation, planned) = (member.evaluation, &member.planned);
    if evaluation.member.draining {
        let replicas = evaluation.requested();
        message.push(ClusterDetail::Draining { replicas });
    } else {
        // A cordon and a rejection limit the capacity as well, and have a detail of their own.
        let is_learned = |reason: &&Reason| {
            planned.capacity.capacity.is_some() || !matches!(reason, Reason::AtCapacity { .. })
        };
        let reasons = planned.reasons.unwrap_or_default();
        for reason in reasons.iter().filter(is_learned) {
            message.push(ClusterDetail::Share(*reason));
        }
        if !evaluation.member.schedulable {
            message.push(ClusterDetail::Cordoned);
        }
    }
    if let Some(since) = evaluation.rejected_since() {
        let rejection = evaluation
            .previous
            .and_then(|previous| previous.internal.rejection.as_ref());
        message.push(ClusterDetail::Rejecting {
            since,
            message: rejection.map(|rejection| &*rejection.message),
            next: evaluation.next_creation(),
        });
    }
    let target = planned.target;
    let (kept, pending, probes) = (target.kept, target.pending, target.probes);
    if kept > 0 {
        message.push(ClusterDetail::Kept { replicas: kept });
    }
    if pending > 0 {
        message.push(ClusterDetail::Pending { replicas: pending });
    }
    if probes > 0 {
        message.push(ClusterDetail::CapacityProbes { replicas: probes });
    }
    push_unscheduled(message, evaluation);
    if let Some(until) = member.step.held_until {
        let error = member.step.writes.error();
        message.push(ClusterDetail::WriteHeld { error, until });
    }
    let replicas = member.surplus();
    if replicas > 0 {
        message.push(ClusterDetail::Surplus { replicas });
    }
}

/// Which pods have no node or can't be created, with the member's message, and until when.
fn push_unscheduled(message: &mut ClusterMessage, member: &MemberEvaluation<'_>) {
    let scheduling = &member.scheduling;
    let text = scheduling.message;
    let not_created = scheduling.not_created;
    let unschedulable = scheduling.unscheduled.saturating_sub(not_created);
    if unschedulable > 0 {
        message.push(ClusterDetail::Unschedulable {
            pods: unschedulable,
            message: text,
        });
    }
    if not_created > 0 {
        message.push(ClusterDetail::NotCreated {
            pods: not_created,
            message: text,
        });
    }
    if let Some(due) = scheduling.next_failure {
        message.push(ClusterDetail::RescheduledAt(due));
    }
}
