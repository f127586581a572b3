//! What the controller waits for in a cluster, and until when.
//!
//! A time that has passed stays until the next check: the end of a wait alone must not change the status.

use fedrs_api::{ClusterWait, WaitReason, pluralize};
use jiff::Timestamp;

use super::{cluster_message::waits_for, rollout::RolloutReport};
use crate::check::{
    decision::{Decision, MemberDecision},
    eligibility::Eligibility,
    evaluation::MemberEvaluation,
};

/// What the controller waits for in `member`. A paused set waits for nothing but its user.
pub(super) fn waits(decision: &Decision<'_>, member: &MemberDecision<'_>) -> Vec<ClusterWait> {
    let evaluation = member.evaluation;
    if decision.snapshot.frs.paused {
        return Vec::new();
    }
    match evaluation.eligibility {
        Eligibility::Joining { until } => {
            let what = "the cluster to answer";
            vec![ClusterWait::new(WaitReason::FirstAnswer, what, until)]
        }
        Eligibility::Unknown {
            until, ref cause, ..
        } => recovery(evaluation, cause, until).into_iter().collect(),
        // What will be known in seconds changes no status.
        Eligibility::Eligible { on_hold: true } => {
            let previous = evaluation.previous.iter();
            previous
                .flat_map(|previous| previous.waits.clone())
                .collect()
        }
        Eligibility::Eligible { .. } if decision.plan.is_some() => {
            let waits = backoff(decision.local_kind(), member)
                .into_iter()
                .chain(replicas(member));
            let waits = waits.chain([surplus(decision, member), deletion(decision, evaluation)]);
            let rollout = RolloutReport::of(decision);
            let rollout = rollout.and_then(|rollout| rollout.wait(member));
            let waits = waits.chain(capacity(decision, member)).flatten();
            waits.chain(rollout).chain(evictions(evaluation)).collect()
        }
        Eligibility::Eligible { .. }
        | Eligibility::Lost { .. }
        | Eligibility::Duplicate { .. }
        | Eligibility::Refused { .. } => Vec::new(),
    }
}

/// Until when a member of an unknown state keeps its replicas.
fn recovery(
    member: &MemberEvaluation<'_>,
    cause: &str,
    until: Option<Timestamp>,
) -> Option<ClusterWait> {
    let replicas = member.possibly_requested();
    (replicas > 0).then(|| match until {
        None => {
            let what = format!("the cluster to recover ({cause})");
            ClusterWait::new(WaitReason::Recovery, what, None)
        }
        Some(until) => {
            let replicas = pluralize(replicas, "replica");
            let what = format!(
                "the cluster to recover ({cause}); otherwise other clusters get its {replicas}"
            );
            ClusterWait::new(WaitReason::GracePeriod, what, until)
        }
    })
}

/// The end of a deletion, without which no other set of the name can be created.
fn deletion(decision: &Decision<'_>, member: &MemberEvaluation<'_>) -> Option<ClusterWait> {
    let finalizers = waits_for(member.deletion()?);
    let until = member.deletion_counts_from(decision.snapshot.settings);
    let until = until.filter(|until| *until > decision.now);
    let otherwise = until.map_or("", |_| "; otherwise other clusters get its replicas");
    let kind = decision.local_kind();
    let what = format!("the deletion of the {kind}, which {finalizers}{otherwise}");
    Some(ClusterWait::new(WaitReason::Deletion, what, until))
}

/// Evictions that the member's LocalReplicaSet does not finish (L19), by pod.
fn evictions(member: &MemberEvaluation<'_>) -> Option<ClusterWait> {
    let deployment = member.live_set()?.deployment.as_ref()?;
    let blocked = deployment.eviction_blocked.as_ref()?;
    let what = format!("its LocalReplicaSet: {blocked}");
    Some(ClusterWait::new(WaitReason::Eviction, what, None))
}

/// The next attempt of what the member rejects, or another writer undoes.
fn backoff(kind: &str, member: &MemberDecision<'_>) -> [Option<ClusterWait>; 3] {
    let evaluation = member.evaluation;
    let attempt = |what, at: Option<Timestamp>| ClusterWait::new(WaitReason::Backoff, what, at);
    let held_until = member.step.held_until;
    let creation = member.creation_rejection();
    let template = evaluation.template_rejection;
    let template = template.filter(|_| evaluation.set().is_some());
    [
        held_until.map(|at| attempt("the next write", Some(at))),
        creation.map(|_| {
            let at = evaluation.next_creation();
            ClusterWait::new(
                WaitReason::Backoff,
                format!("the next attempt to create the {kind}"),
                at,
            )
        }),
        template.map(|rejection| {
            let at = rejection.next_attempt_time.0;
            attempt("the next attempt to write the template", Some(at))
        }),
    ]
}

/// What keeps an eligible member from its replicas.
fn replicas(member: &MemberDecision<'_>) -> [Option<ClusterWait>; 4] {
    let (evaluation, target) = (member.evaluation, member.planned.target);
    let replicas = |count| pluralize(count, "replica");
    let missing = target.total().saturating_sub(evaluation.available());
    let is_written = member.creation_rejection().is_none()
        && evaluation.deletion().is_none()
        && member.step.held_until.is_none();
    let beyond_surge = target.total().saturating_sub(member.step.next);
    let removed = evaluation.requested().saturating_sub(member.step.next);
    let stabilizes_at = evaluation.member.stabilizes_at;
    let stabilizes_at = stabilizes_at.filter(|_| member.is_stabilizing());
    [
        (is_written && missing > target.probes).then(|| {
            let what = format!("{} to become available", replicas(missing));
            ClusterWait::new(WaitReason::Availability, what, None)
        }),
        (is_written && beyond_surge > 0)
            .then(|| ClusterWait::new(WaitReason::Surge, "the surge to allow more replicas", None)),
        (is_written && removed > 0).then(|| {
            let what = format!("{} to be removed", replicas(removed));
            ClusterWait::new(WaitReason::Removal, what, None)
        }),
        stabilizes_at.map(|until| {
            let what = "the cluster to be healthy for long enough";
            ClusterWait::new(WaitReason::StabilizationWindow, what, until)
        }),
    ]
}

/// What replicas beyond the desired ones wait for; those of a ReplicaSet that is being deleted wait for its end.
fn surplus(decision: &Decision<'_>, member: &MemberDecision<'_>) -> Option<ClusterWait> {
    let evaluation = member.evaluation;
    let surplus = member.surplus();
    if surplus == 0 || evaluation.deletion().is_some() {
        return None;
    }
    let replicas = pluralize(surplus, "replica");
    Some(if let Some(until) = decision.snapshot.keeps_running_until {
        let what = format!(
            "what happened before the controller started, or before the host was restored, to be known, before {replicas} can be removed"
        );
        ClusterWait::new(WaitReason::EarlierWrites, what, until)
    } else if member.step.waits_for_rollout {
        let what = format!("the rollout in the cluster, before {replicas} can be removed");
        ClusterWait::new(WaitReason::Rollout, what, None)
    } else if member.waits_for_unknown() {
        let what = format!("clusters whose state is unknown, before {replicas} can be removed");
        ClusterWait::new(WaitReason::Recovery, what, None)
    } else if member.step.drain.staying > 0 {
        let replicas = pluralize(member.step.drain.staying, "replica");
        let what = format!("the clients of {replicas} to leave, before they are removed");
        ClusterWait::new(WaitReason::PodDrain, what, member.step.drain.until)
    } else {
        let what = format!("replacements of {replicas}");
        ClusterWait::new(WaitReason::Replacements, what, None)
    })
}

/// What keeps pods from nodes, and the cluster from more replicas.
fn capacity(decision: &Decision<'_>, member: &MemberDecision<'_>) -> [Option<ClusterWait>; 3] {
    let (scheduling, target) = (&member.evaluation.scheduling, member.planned.target);
    // Pending replicas and capacity probes stay where they are.
    let staying = scheduling.failed.max(target.pending + target.probes);
    let leaving = scheduling.unscheduled.saturating_sub(staying);
    let has_probes = target.probes + target.pending > 0 && scheduling.unscheduled > 0;
    let next_attempt = member.planned.capacity.next_attempt;
    let next_attempt = next_attempt.filter(|at| has_probes && *at > decision.now);
    [
        (leaving > 0).then(|| {
            let (pods, replicas) = (pluralize(leaving, "pod"), pluralize(leaving, "replica"));
            let what = format!("a node for {pods}; otherwise other clusters get {replicas}");
            ClusterWait::new(
                WaitReason::UnscheduledTimeout,
                what,
                scheduling.next_failure,
            )
        }),
        has_probes.then(|| {
            let what = "a pending pod to be scheduled, which shows capacity";
            ClusterWait::new(WaitReason::CapacityProbe, what, None)
        }),
        next_attempt.map(|at| {
            let what = "the next attempt to add more than capacity probes";
            ClusterWait::new(WaitReason::CapacityProbe, what, at)
        }),
    ]
}
