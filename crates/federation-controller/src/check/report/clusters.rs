//! The entry of one member in the status (F6).

use cluster_informer::SyncState;
use fedrs_api::{ClusterReason, ClusterStatus};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{cluster_message::ClusterMessage, waits::waits};
use crate::check::{
    count::to_status,
    decision::{Decision, MemberDecision},
    eligibility::Eligibility,
    evaluation::MemberEvaluation,
};

/// The entries of the members that have replicas, that the placement names although they do not take the namespace, that would have
/// replicas but for the missing CRD of their workloads, or about which the next check has to know something. For the others, which
/// may be a thousand, the placement says enough.
pub(super) fn clusters(decision: &Decision<'_>) -> Vec<ClusterStatus> {
    let placement = &decision.snapshot.frs.placement;
    let is_listed = |member: &MemberDecision<'_>| {
        let is_named = placement.clusters.contains_key(member.name());
        let is_refused = match member.evaluation.eligibility {
            Eligibility::Refused {
                reason: ClusterReason::KindNotInstalled,
            } => placement.for_cluster(member.name()).is_some(),
            Eligibility::Refused { .. } => is_named,
            _ => false,
        };
        has_replicas(member) || is_refused
    };
    let members = decision
        .members()
        .filter(|member| is_listed(member) || member.evaluation.previous.is_some());
    let entries = members.map(|member| (is_listed(&member), cluster(decision, &member)));
    let listed = entries.filter(|(is_listed, entry)| *is_listed || !entry.internal.is_empty());
    listed.map(|(_, entry)| entry).collect()
}

/// Whether the member has, or should have, replicas or a local ReplicaSet.
fn has_replicas(member: &MemberDecision<'_>) -> bool {
    let evaluation = member.evaluation;
    evaluation.member.own_set().is_some()
        || evaluation.requested() > 0
        || member.step.next > 0
        || member.planned.target.total() > 0
}

fn cluster(decision: &Decision<'_>, member: &MemberDecision<'_>) -> ClusterStatus {
    let template_hash = Some(decision.snapshot.template_hash);
    let is_decided = decision.plan.is_some();
    let requests = member.is_eligible() && is_decided;
    // What this check requests is believed, whoever wrote it.
    let requested = if requests { member.requested() } else { 0 };
    let most = member.evaluation.most_believed().max(requested);
    let mut status = observed(member.evaluation, most, template_hash, decision.now);
    status.revision = member.evaluation.revision(decision.snapshot);
    if requests {
        decide(&mut status, member);
    }
    if !member.is_eligible() || is_decided {
        let message = ClusterMessage::of(decision, member);
        (status.reason, status.message) = (message.reason, message.text);
        status.waits = waits(decision, member);
    }
    status
}

/// The entry as far as it is observed: counts, of which at most as many as `most` are believed, and state. Everything else is
/// as in the previous status.
pub(super) fn observed(
    member: &MemberEvaluation<'_>,
    most: u64,
    template_hash: Option<u32>,
    now: Timestamp,
) -> ClusterStatus {
    let mut status = member.previous.cloned().unwrap_or_default();
    if status.name.is_empty() {
        status.name.clone_from(&member.member.name);
    }
    status.state = Some(member.eligibility.state());
    status.same_cluster_as = None;
    status.waits.clear();
    match member.eligibility {
        Eligibility::Lost { since } => {
            status = ClusterStatus {
                name: status.name,
                state: status.state,
                capacity: status.capacity,
                reason: status.reason,
                message: status.message,
                internal: status.internal,
                ..ClusterStatus::default()
            };
            status.internal.unready_since = None;
            status.internal.behind_since = None;
            status.internal.capacity_probes = 0;
            status.internal.lost_since = Some(Time(since));
        }
        Eligibility::Duplicate { of } => {
            status.same_cluster_as = Some(of.to_owned());
            status.internal.lost_since = None;
        }
        Eligibility::Refused { .. } => {
            observe_counts(&mut status, member, most, template_hash, now);
            status.desired_replicas = 0;
            status.internal.lost_since = None;
            // No request can be carried out any more.
            status.internal.requested_replicas = status.internal.requested_replicas.map(|_| 0);
        }
        Eligibility::Eligible { .. } => {
            observe_counts(&mut status, member, most, template_hash, now);
            status.internal.lost_since = None;
        }
        // Nothing is listed yet: the counts are as last known. Nor is it known whether a lost member is back.
        Eligibility::Joining { .. } | Eligibility::Unknown { .. } => {
            if member.member.sync != SyncState::NotSynced {
                observe_counts(&mut status, member, most, template_hash, now);
            }
        }
    }
    status
}

/// Counts what `member` shows now.
fn observe_counts(
    status: &mut ClusterStatus,
    member: &MemberEvaluation<'_>,
    most: u64,
    template_hash: Option<u32>,
    now: Timestamp,
) {
    count_pods(status, member, most, template_hash);
    status.unscheduled_replicas = to_status(member.scheduling.unscheduled);
    status.internal.unready_since = member.unready_since(now).map(Time);
    status.internal.behind_since = member.scheduling.recorded_since.map(Time);
}

/// Counts the pods of `member`, of which at most as many as `most` are believed.
fn count_pods(
    status: &mut ClusterStatus,
    member: &MemberEvaluation<'_>,
    most: u64,
    template_hash: Option<u32>,
) {
    let replicas = member
        .live_set()
        .map_or(0, |set| u64::from(set.status_replicas));
    let believed = |count: u64| to_status(count.min(most));
    status.replicas = believed(replicas);
    status.ready_replicas = believed(member.ready());
    status.available_replicas = believed(member.available());
    if let Some(hash) = template_hash {
        status.updated_replicas = believed(member.updated(hash));
    }
    // The watch of pods may be ahead of the status of the local ReplicaSet.
    status.updated_replicas = status.updated_replicas.min(status.replicas);
}

/// Adds what the check decided about an eligible member.
fn decide(status: &mut ClusterStatus, member: &MemberDecision<'_>) {
    let (target, capacity) = (member.planned.target, member.planned.capacity);
    status.desired_replicas = to_status(target.desired());
    status.capacity = capacity.capacity.map(to_status);
    let internal = &mut status.internal;
    internal.capacity_probes = to_status(target.probes);
    internal.growth_step = capacity.capacity.map_or(0, |_| to_status(capacity.step));
    if member.creation_rejection().is_none() {
        internal.rejection = None;
        internal.failures = to_status(u64::from(capacity.failures));
        internal.next_attempt_time = capacity.next_attempt.map(Time);
    }
    if member.evaluation.live_set().is_none() && member.evaluation.eligibility.is_writable() {
        (internal.template, internal.settings) = (None, None);
    } else {
        internal.template.clone_from(&member.evaluation.record);
    }
    internal.template_rejection = member.template_rejection().cloned().map(Box::new);
    internal.requested_replicas = member.step.requested.map(to_status);
    internal.unpublished_replicas = to_status(member.step.unpublished);
    internal.writes = member.step.writes.0.clone();
}
