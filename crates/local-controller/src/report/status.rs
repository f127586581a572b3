//! The status of a set.

use fedrs_api::{
    FieldError, LocalConditionType as Type, LocalReason as Reason, LocalReplicaSetStatus,
    NewCondition, ObservedLimit, RevisionPods, revision_name,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use replica_set_controller::{GroupCounts, MigrationWait, Wait};

use super::{conditions::conditions, input::Report};
use crate::entry::Entry;

impl Report<'_> {
    /// The status to publish.
    pub(crate) fn status(&self) -> LocalReplicaSetStatus {
        let (counts, account) = (&self.plan.counts, &self.plan.account);
        let name_of = |hash: u32| revision_name(self.set.name, hash);
        let update_revision = name_of(self.set.target);
        let mut revisions: Vec<_> = (counts.revisions.iter())
            .map(|(hash, groups)| of_revision(hash.map(name_of).unwrap_or_default(), groups))
            .collect();
        revisions.sort_by(|a, b| a.revision.cmp(&b.revision));
        let is_complete = counts.live == self.set.replicas && counts.updated == counts.live;
        let current_revision = match &self.previous.current_revision {
            Some(current) if !is_complete => current.clone(),
            _ => update_revision.clone(),
        };
        LocalReplicaSetStatus {
            observed_generation: Some(self.entry.generation),
            // The generation grows with each change of the spec, and nobody sets it (L2).
            revision_id: self.entry.generation,
            replicas: number(counts.live),
            ready_replicas: number(counts.ready),
            available_replicas: number(counts.available),
            updated_replicas: number(counts.updated),
            updated_available_replicas: number(counts.updated_available),
            terminating_replicas: number(counts.terminating),
            selector: self.valid.set.selector_text.clone(),
            current_revision: Some(current_revision),
            update_revision: Some(update_revision),
            max_unavailable: number(account.limit),
            unavailable: number(account.in_use),
            evictable: number(self.plan.disruption.lent),
            waiting_evictions: number(self.waiting_evictions() + self.plan.drained),
            limits: self.limits(),
            last_progress_time: self.last_progress(is_complete),
            revisions,
            conditions: conditions(self),
            record: self.plan.record.clone(),
        }
    }
}

impl Report<'_> {
    /// The last progress, while something is left to do.
    fn last_progress(&self, is_complete: bool) -> Option<Time> {
        let is_available = self.plan.counts.updated_available == self.set.replicas;
        let is_done = is_complete && is_available;
        let progress = (!is_done).then(|| self.memory.progress.published(self.previous));
        progress.flatten()
    }

    /// The limits of AvailabilitySets that the plan keeps to (A1).
    fn limits(&self) -> Vec<ObservedLimit> {
        let limits = self.entry.limits.iter();
        let observed = limits.map(|(set, limit)| ObservedLimit {
            availability_set: set.clone(),
            max_unavailable: limit.max_unavailable.try_into().unwrap_or(i32::MAX),
            revision: limit.revision,
        });
        observed.collect()
    }

    /// Pods that have to leave their nodes, and wait for the budget.
    fn waiting_evictions(&self) -> usize {
        let waits = self.plan.waits.iter().map(|wait| match wait {
            Wait::Migration {
                reason: MigrationWait::Budget,
                ..
            } => 1,
            _ => 0,
        });
        waits.sum()
    }
}

/// The status of a set with an invalid spec: its pods are as they were (F4 of a federated set).
pub(crate) fn invalid(
    entry: &Entry,
    previous: &LocalReplicaSetStatus,
    errors: &[FieldError],
    now: Timestamp,
) -> LocalReplicaSetStatus {
    let message = invalid_message(errors);
    let new = [
        (Type::Accepted, false),
        (Type::Ready, false),
        (Type::Stalled, true),
    ];
    let new = new.map(|(type_, holds)| {
        let condition = NewCondition::new(type_, holds, Reason::InvalidSpec, &*message);
        condition.into_condition(&previous.conditions, Some(entry.generation), now)
    });
    let is_kept = |type_: &str| {
        [Type::Available, Type::Progressing]
            .iter()
            .any(|kept| kept.as_str() == type_)
    };
    let kept = previous
        .conditions
        .iter()
        .filter(|condition| is_kept(&condition.type_));
    LocalReplicaSetStatus {
        observed_generation: Some(entry.generation),
        revision_id: entry.generation,
        conditions: new.into_iter().chain(kept.cloned()).collect(),
        ..previous.clone()
    }
}

/// All errors of a spec in one line.
pub(crate) fn invalid_message(errors: &[FieldError]) -> String {
    let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
    errors.join("; ")
}

fn of_revision(revision: String, groups: &GroupCounts) -> RevisionPods {
    RevisionPods {
        revision,
        ready: number(groups.ready),
        in_progress: number(groups.in_progress),
        failed: number(groups.failed),
        marked_remove: number(groups.marked_remove),
    }
}

fn number(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
