//! The set's PodDisruptionBudget (L20): evictions of others, as those of `kubectl drain`, share the budget of the set.
//!
//! ```text
//! spec.minAvailable = replicas - lent        lent + what the controller has begun <= maxUnavailable
//!
//! at rest         lent is the whole budget
//! updates wait    Raise -> observed, evicted pods seen -> pods read -> it is the controller's
//! nothing waits   recorded in the status -> Lower
//! ```
//!
//! The API server grants an eviction from what the disruption controller has counted last, which may be before what this controller
//! does now. So what is lent counts as in use, whether somebody uses it or not.
//!
//! A request that lends more is recorded before it is sent. It names the version of the PodDisruptionBudget, so that it counts until
//! a later generation is seen. One that lends less needs no record, and takes effect at once: the API server grants nothing until the
//! disruption controller has observed it. What it had granted before is seen as pods that are being removed, once
//! `status.disruptedPods` is empty and the pods are read again.

use fedrs_api::{LentRecord, LocalRecord};

use crate::{
    account::Account,
    group::{Group, Member},
    set::Set,
};

/// The PodDisruptionBudgets that match the pods of a set, as far as they are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Disruptions<'a> {
    /// That of the set.
    pub ours: Option<DisruptionBudget<'a>>,
    /// The name of another one: two that match a pod fail each of its evictions.
    pub other: Option<&'a str>,
    /// Whether all pods were read since the present generation of ours was observed.
    pub are_pods_read: bool,
}

/// The PodDisruptionBudget of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DisruptionBudget<'a> {
    /// The uid.
    pub uid: &'a str,
    /// The generation, which grows with each change of the spec.
    pub generation: i64,
    /// The healthy pods that an eviction must leave.
    pub min_available: usize,
    /// The replicas that the set had when it was written.
    pub replicas: usize,
    /// Whether it is what the controller writes, but for these two numbers.
    pub is_intact: bool,
    /// Whether no eviction that was granted is still to be seen: the disruption controller has observed this generation, or none so
    /// far, and `disruptedPods` is empty.
    pub is_settled: bool,
    /// The healthy pods that the disruption controller has counted.
    pub healthy: usize,
}

/// What becomes of the PodDisruptionBudget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DisruptionPlan {
    /// The pods that evictions of others may make unavailable: those that are lent, or will be once the record is published.
    pub lent: usize,
    /// What is written.
    pub change: Option<BudgetChange>,
    /// Whether updates or evictions wait for the pods to be read: nothing else is missing.
    pub reads_pods: bool,
}

/// A write of the PodDisruptionBudget. Its precondition is the version that was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BudgetChange {
    /// It is created, and lends nothing.
    Create {
        /// The healthy pods that an eviction must leave.
        min_available: usize,
    },
    /// It lends less, or as much.
    Raise {
        /// The healthy pods that an eviction must leave.
        min_available: usize,
    },
    /// It lends more, as was recorded.
    Lower {
        /// The healthy pods that an eviction must leave.
        min_available: usize,
    },
    /// It is deleted: another one matches the pods.
    Delete,
}

impl BudgetChange {
    /// The healthy pods that an eviction must leave; `None` if it is deleted.
    #[must_use]
    pub fn min_available(self) -> Option<usize> {
        match self {
            Self::Create { min_available }
            | Self::Raise { min_available }
            | Self::Lower { min_available } => Some(min_available),
            Self::Delete => None,
        }
    }
}

/// What is lent at the beginning of a step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lending {
    /// The pods.
    pub(crate) pods: usize,
    /// Whether the disruption controller has observed that.
    is_observed: bool,
    /// Whether all evictions that use it are among the pods that are known.
    is_settled: bool,
}

impl Lending {
    pub(crate) fn of(set: &Set<'_>, disruptions: &Disruptions<'_>, recorded: &LocalRecord) -> Self {
        let Some(ours) = disruptions.ours else {
            return Self {
                pods: 0,
                is_observed: true,
                is_settled: true,
            };
        };
        let is_current = ours.replicas == set.replicas && ours.is_intact;
        // After scaling, the disruption controller may count pods that are gone by now.
        let replicas = set.replicas.max(ours.replicas);
        Self {
            pods: replicas.saturating_sub(ours.floor(recorded)),
            is_observed: is_current && ours.is_settled,
            is_settled: is_current && ours.is_settled && disruptions.are_pods_read,
        }
    }

    /// Whether evictions of others may begin now.
    pub(crate) fn allows_evictions(self) -> bool {
        self.pods > 0 && self.is_observed
    }

    /// What of the budget can't be used for updates and evictions of the controller.
    pub(crate) fn withheld(self, set: &Set<'_>) -> usize {
        if self.is_settled {
            self.pods
        } else {
            set.limit()
        }
    }
}

impl DisruptionBudget<'_> {
    /// The healthy pods that are left by all evictions that were granted or may be.
    fn floor(&self, recorded: &LocalRecord) -> usize {
        let lent = recorded.lent.as_ref();
        let request = lent.filter(|lent| !(self.is_settled && self.is_past(lent)));
        let least = request.map_or(usize::MAX, LentRecord::least);
        self.min_available.min(least)
    }

    /// Whether the request has arrived, or never can.
    fn is_past(&self, lent: &LentRecord) -> bool {
        lent.uid != self.uid || lent.generation < self.generation
    }

    /// The pods that it lends, as it is written.
    fn lends(&self) -> usize {
        self.replicas.saturating_sub(self.min_available)
    }
}

/// What a step knows when the PodDisruptionBudget is decided.
pub(crate) struct Share<'a> {
    pub(crate) set: &'a Set<'a>,
    pub(crate) account: Account,
    pub(crate) lending: Lending,
    /// Available pods that would be updated or evicted now with more of the budget.
    pub(crate) wanted: usize,
    /// Whether pods that are not available would be.
    pub(crate) is_wanted: bool,
    /// Whether nothing is under way.
    pub(crate) is_idle: bool,
}

impl Share<'_> {
    /// What is written; what has to be recorded before goes into `record`.
    pub(crate) fn decide(
        &self,
        disruptions: &Disruptions<'_>,
        recorded: &LocalRecord,
        record: &mut LocalRecord,
    ) -> DisruptionPlan {
        let plan = DisruptionPlan {
            lent: self.lending.pods,
            change: None,
            reads_pods: false,
        };
        let replicas = self.set.replicas;
        let Some(ours) = &disruptions.ours else {
            record.lent = None;
            let is_needed = disruptions.other.is_none() && replicas > 0;
            let min_available = replicas;
            let change = is_needed.then_some(BudgetChange::Create { min_available });
            return DisruptionPlan { change, ..plan };
        };
        if disruptions.other.is_some() {
            let change = Some(BudgetChange::Delete);
            return DisruptionPlan { change, ..plan };
        }
        let target = self.target(ours);
        let min_available = replicas.saturating_sub(target);
        let change = self
            .raised(ours, min_available, recorded)
            .or_else(|| self.lowered(ours, target, recorded, record));
        let is_written = change.is_none() && record.lent == recorded.lent;
        let reads_pods = self.is_needed()
            && is_written
            && ours.is_settled
            && ours.replicas == replicas
            && !disruptions.are_pods_read;
        DisruptionPlan {
            lent: Lending::of(self.set, disruptions, record).pods,
            change,
            reads_pods,
        }
    }

    /// Whether the controller would use more of the budget.
    fn is_needed(&self) -> bool {
        self.wanted() > 0 || self.is_wanted
    }

    /// How many available pods it would use it for.
    fn wanted(&self) -> usize {
        self.wanted.min(self.free())
    }

    fn free(&self) -> usize {
        self.account.limit.saturating_sub(self.account.in_use)
    }

    /// What is to be lent.
    fn target(&self, ours: &DisruptionBudget<'_>) -> usize {
        let (lends, limit) = (ours.lends(), self.account.limit);
        if self.is_needed() {
            lends.min(self.free() - self.wanted())
        } else if self.is_idle && self.wanted == 0 {
            lends.max(self.free()).min(limit)
        } else {
            lends.min(limit)
        }
    }

    /// The change that lends less, or makes sure that a request to lend more does not arrive any more.
    fn raised(
        &self,
        ours: &DisruptionBudget<'_>,
        min_available: usize,
        recorded: &LocalRecord,
    ) -> Option<BudgetChange> {
        let is_awaited = recorded
            .lent
            .as_ref()
            .is_some_and(|lent| !ours.is_past(lent) && lent.least() < min_available);
        let has_grown = self.set.replicas > ours.replicas;
        let min_available = if min_available > ours.min_available {
            min_available
        } else if is_awaited {
            // Any change of the spec does.
            ours.min_available + 1
        } else if has_grown || !ours.is_intact {
            ours.min_available
        } else {
            return None;
        };
        Some(BudgetChange::Raise { min_available })
    }

    /// The change that lends more, or the same of fewer replicas: once the disruption controller has seen that the surplus is gone.
    fn lowered(
        &self,
        ours: &DisruptionBudget<'_>,
        target: usize,
        recorded: &LocalRecord,
        record: &mut LocalRecord,
    ) -> Option<BudgetChange> {
        let replicas = self.set.replicas;
        let has_shrunk = replicas < ours.replicas;
        let is_due = target > ours.lends() || has_shrunk && (self.is_idle || self.is_needed());
        if !is_due
            || self.account.untouched_surplus() > 0
            || ours.healthy > replicas + self.account.extra
        {
            return None;
        }
        let min_available = replicas.saturating_sub(target);
        let request = LentRecord {
            uid: ours.uid.to_owned(),
            generation: ours.generation,
            min_available: min_available as u64,
        };
        if recorded.lent.as_ref() == Some(&request) {
            return Some(BudgetChange::Lower { min_available });
        }
        record.lent = Some(request);
        None
    }
}

/// Whether nothing is under way that makes pods unavailable for a while.
pub(crate) fn is_idle(members: &[Member<'_>], account: &Account, record: &LocalRecord) -> bool {
    let is_moving = |member: &&Member<'_>| !matches!(member.group, Group::Ready | Group::Failed);
    let is_begun = record.evictions.values().any(|eviction| eviction.begun);
    account.missing == 0
        && account.untouched_surplus() == 0
        && record.updates.is_empty()
        && !is_begun
        && members.iter().filter(is_moving).count() == account.leaving
}
