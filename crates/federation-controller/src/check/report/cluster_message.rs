//! Why a cluster has its replicas: the reason and the message of its entry in the status (F19).

use std::fmt::{Display, Write};

use cluster_informer::Deletion;
use federated_scheduler::Reason;
use fedrs_api::{ClusterReason, plural, pluralize};

use crate::check::{
    decision::{Decision, MemberDecision},
    eligibility::Eligibility,
    evaluation::MemberEvaluation,
    snapshot::NamespaceState,
};

/// The details of a message, and the most significant of their reasons.
#[derive(Debug, Default)]
pub(super) struct ClusterMessage {
    pub(super) reason: Option<ClusterReason>,
    pub(super) text: String,
}

impl ClusterMessage {
    /// The message of `member`.
    pub(super) fn of(decision: &Decision<'_>, member: &MemberDecision<'_>) -> Self {
        let mut message = Self::default();
        match not_eligible(member.evaluation) {
            Some((reason, detail)) => message.push(reason, detail),
            None => message.push_decided(decision, member),
        }
        let frs = decision.snapshot.frs;
        if frs.paused {
            message.push(ClusterReason::Paused, frs.key.kind.stopping_field());
        }
        message
    }

    fn push(&mut self, reason: ClusterReason, detail: impl Display) {
        self.push_text(detail);
        self.push_reason(reason);
    }

    fn push_reason(&mut self, reason: ClusterReason) {
        self.reason = self.reason.into_iter().chain([reason]).min();
    }

    fn push_text(&mut self, detail: impl Display) {
        let separator = if self.text.is_empty() { "" } else { "; " };
        write!(self.text, "{separator}{detail}").expect("a String takes any text");
    }

    /// What decided the replicas of an eligible member, what keeps it from them, and what it has beyond them.
    fn push_decided(&mut self, decision: &Decision<'_>, member: &MemberDecision<'_>) {
        self.push_share(member);
        let kind = decision.local_kind();
        self.push_deletion(kind, member.evaluation);
        self.push_rejection(kind, member);
        let target = member.planned.target;
        let replicas = |count| pluralize(count, "replica");
        if target.kept > 0 {
            let kept = replicas(target.kept);
            let detail = format_args!("{kept} kept: no other cluster can take them");
            self.push(ClusterReason::KeptInPlace, detail);
        }
        for (reason, detail) in target.pending_reasons() {
            self.push(reason, detail);
        }
        self.push_unscheduled(member.evaluation);
        if let Some(error) = member.step.writes.error() {
            let detail = match member.step.writes.rejected_since() {
                Some(since) => format!("changes have failed since {since:.0} ({error})"),
                None => format!("last write failed ({error})"),
            };
            self.push(ClusterReason::WriteRejected, detail);
        } else if member.step.held_until.is_some() {
            self.push(ClusterReason::ExternalWriter, "changed by another writer");
        }
        if member.excess() > 0 {
            let excess = replicas(member.excess());
            let detail =
                format_args!("reports {excess} more than were requested, which do not count");
            self.push(ClusterReason::ExcessReplicas, detail);
        }
        if member.is_stabilizing() {
            let detail = "returned: replicas elsewhere stay until the cluster is stable";
            self.push(ClusterReason::Stabilizing, detail);
        }
        if member.surplus() > 0 {
            let surplus = pluralize(member.surplus(), "extra replica");
            let (reason, until) = if decision.snapshot.keeps_running_until.is_some() {
                let until = "it is known what happened before the controller started, or before the host was restored";
                (ClusterReason::WaitingForEarlierWrites, until)
            } else if member.waits_for_unknown() {
                let until = "the state of every cluster is known";
                (ClusterReason::WaitingForUnknownClusters, until)
            } else if member.step.drain.staying > 0 {
                (ClusterReason::WaitingForClients, "their clients have left")
            } else {
                let until = "replacements are available";
                (ClusterReason::WaitingForReplacements, until)
            };
            self.push(reason, format_args!("keeps {surplus} until {until}"));
        }
    }

    /// What decided the layout; a cluster that all replicas leave has no share.
    fn push_share(&mut self, member: &MemberDecision<'_>) {
        let (evaluation, planned) = (member.evaluation, &member.planned);
        if evaluation.member.namespace == NamespaceState::NotTaken {
            let detail = "the cluster does not take the namespace: replicas are rescheduled to other clusters";
            return self.push(ClusterReason::NamespaceNotTaken, detail);
        }
        if evaluation.member.draining {
            let detail = if evaluation.requested() == 0 {
                "draining: no replicas"
            } else {
                "draining: replicas are rescheduled to other clusters"
            };
            return self.push(ClusterReason::Draining, detail);
        }
        let reasons = planned.reasons.unwrap_or_default();
        for reason in reasons.iter() {
            // A cordon and a rejection limit the capacity as well, and have a detail of their own.
            let is_limit = matches!(reason, Reason::AtCapacity { .. });
            if !is_limit || planned.capacity.capacity.is_some() {
                self.push(share_reason(reason), reason);
            }
        }
        if !evaluation.member.schedulable {
            self.push(ClusterReason::Cordoned, "cordoned: no more replicas");
        }
    }

    /// A ReplicaSet of the name can be created once the one that is being deleted is gone.
    fn push_deletion(&mut self, kind: &str, member: &MemberEvaluation<'_>) {
        let Some(deletion) = member.deletion() else {
            return;
        };
        self.push(
            ClusterReason::ReplicaSetTerminating,
            being_deleted(kind, deletion),
        );
    }

    fn push_rejection(&mut self, kind: &str, member: &MemberDecision<'_>) {
        if let Some(rejection) = member.template_rejection()
            && member.evaluation.set().is_some()
        {
            let (since, message) = (rejection.since.0, &rejection.message);
            let detail = format_args!("rejects the template since {since:.0} ({message})");
            self.push(ClusterReason::WriteRejected, detail);
        }
        let Some(rejection) = member.creation_rejection() else {
            return;
        };
        let (since, message) = (rejection.since.0, &rejection.message);
        let detail = format_args!("rejects the {kind} since {since:.0} ({message})");
        self.push(ClusterReason::CreationRejected, detail);
    }

    /// Which pods have no node or can't be created, with the member's message.
    fn push_unscheduled(&mut self, member: &MemberEvaluation<'_>) {
        let scheduling = &member.scheduling;
        let pods = |count| pluralize(count, "pod");
        let message = scheduling.message.unwrap_or("no message");
        let (pending, unschedulable) = scheduling.without_node();
        if unschedulable > 0 {
            let detail = format_args!("{} unschedulable ({message})", pods(unschedulable));
            self.push(ClusterReason::PodsUnschedulable, detail);
        }
        if pending > 0 {
            let detail = format_args!("{} pending", pods(pending));
            self.push(ClusterReason::PodsPending, detail);
        }
        let not_created = match scheduling.not_created {
            0 => None,
            count => Some(format!("{} not created", pods(count))),
        };
        if let Some(since) = scheduling.not_acting_since {
            let cause = format!("the cluster's controllers have not acted since {since:.0}");
            let detail = not_created.map_or(cause.clone(), |pods| format!("{pods}: {cause}"));
            self.push(ClusterReason::ControllersNotActing, detail);
        } else if let Some(pods) = not_created {
            let detail = format_args!("{pods} ({message})");
            self.push(ClusterReason::PodsNotCreated, detail);
        }
    }
}

/// Since when a local workload of this kind is being deleted, and what that waits for.
pub(super) fn being_deleted(kind: &str, deletion: &Deletion) -> String {
    let (since, finalizers) = (deletion.since, waits_for(deletion));
    format!("the {kind} has been terminating since {since:.0} and {finalizers}")
}

/// The finalizers that a deletion waits for.
pub(super) fn waits_for(deletion: &Deletion) -> String {
    let names = deletion.finalizers.iter().map(|name| match &**name {
        // The name alone does not say what it waits for.
        "foregroundDeletion" => "foregroundDeletion (until its pods are gone)",
        name => name,
    });
    let names: Vec<_> = names.collect();
    let noun = plural(names.len(), "finalizer");
    format!("waits for {noun} {}", names.join(", "))
}

/// Why `member` is not eligible, with the text; `None` if it is.
pub(super) fn not_eligible(member: &MemberEvaluation<'_>) -> Option<(ClusterReason, String)> {
    Some(match &member.eligibility {
        Eligibility::Eligible { .. } => return None,
        Eligibility::Joining { .. } => (ClusterReason::Joining, "just added".to_owned()),
        Eligibility::Unknown { reason, cause, .. } => {
            let draining = if member.member.draining {
                "draining, "
            } else {
                ""
            };
            let seen = if member.set().is_some_and(|set| set.status_replicas > 0) {
                "; replicas as last seen"
            } else {
                ""
            };
            (*reason, format!("{draining}on hold: {cause}{seen}"))
        }
        Eligibility::Lost { since } => (
            ClusterReason::Lost,
            format!("lost since {since:.0}: replicas are rescheduled to other clusters"),
        ),
        Eligibility::Duplicate { of } => (
            ClusterReason::DuplicateMember,
            format!("same cluster as {of}, which counts its replicas"),
        ),
        Eligibility::Refused { reason } => {
            let text = match reason {
                ClusterReason::SystemNamespace => {
                    "the namespace is a system namespace: nothing is changed in it"
                }
                ClusterReason::KindNotInstalled => crate::messages::KIND_NOT_INSTALLED,
                _ => "the cluster does not take the namespace",
            };
            (*reason, text.to_owned())
        }
    })
}

fn share_reason(reason: &Reason) -> ClusterReason {
    match reason {
        Reason::NotSelected => ClusterReason::NotSelected,
        Reason::ScaledToZero | Reason::NoReplicasLeft { .. } | Reason::ZeroWeight => {
            ClusterReason::NoShare
        }
        Reason::AtMinimum { .. } | Reason::BelowMinimum { .. } => ClusterReason::AtMinimum,
        Reason::ByWeight(_) | Reason::AboveShare { .. } | Reason::RemovedFirst { .. } => {
            ClusterReason::ByWeight
        }
        Reason::WithinShare { .. } | Reason::KeptInPlace { .. } => ClusterReason::KeptInPlace,
        Reason::AtMaximum { .. } => ClusterReason::AtMaximum,
        Reason::AtCapacity { .. } => ClusterReason::AtCapacity,
    }
}
