//! When running pods that have to leave their nodes may move, by the MigrationPolicy of their set (M1, M6, M7, M10, M14, M15).
//!
//! A pod that is not available moves at once: it has nothing to lose. One whose deadline has passed moves, too, whatever holds it up.
//! All others also need the budget of the set.

use std::collections::HashMap;

use fedrs_api::{EvictionRecord, LocalRecord, RecreateRecord, ValidMigrationPolicy};
use jiff::Timestamp;

use crate::{
    account::{Account, cost},
    group::Member,
    pod::EvictionBy,
    policy::Policy,
    record::{Places, move_of},
    set::Set,
};

/// What holds up a pod that has to leave its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MigrationWait<'a> {
    /// The budget of the set is in use.
    Budget,
    /// As many pods are unavailable as the policy allows (M10).
    MaxUnavailable {
        /// What the policy allows.
        limit: usize,
    },
    /// As many pods of its shard are unavailable as the policy allows (M6).
    Shard {
        /// The value of the label.
        shard: &'a str,
        /// What the policy allows.
        limit: usize,
    },
    /// The set is being updated (M1).
    Rollout,
    /// The last migration is too recent (M14).
    TooSoon {
        /// Until when.
        until: Timestamp,
    },
    /// The pod is new on a node that evicts its pods (L18).
    TooYoung {
        /// Until when.
        until: Timestamp,
    },
    /// The pod bears the work on its node where it is (M9).
    Tolerated {
        /// Until when the node is expected back.
        until: Timestamp,
    },
    /// The MigrationPolicy of the set is not known.
    UnknownPolicy,
    /// As many pods are being copied as the policy allows (M2).
    Copies {
        /// What the policy allows.
        limit: usize,
    },
    /// A person has to shut the pod down (M7).
    ShutdownByPerson,
    /// Compaction does not move pods that persons shut down (M7).
    CompactionRefused,
}

impl MigrationWait<'_> {
    /// When it ends, if that is known.
    #[must_use]
    pub fn until(self) -> Option<Timestamp> {
        match self {
            Self::TooSoon { until } | Self::TooYoung { until } | Self::Tolerated { until } => {
                Some(until)
            }
            _ => None,
        }
    }
}

/// What a policy allows in this step.
pub(crate) struct Allowance<'s, 'a> {
    set: &'s Set<'a>,
    is_rolling: bool,
    /// Pods of each shard that are unavailable.
    unavailable: HashMap<String, usize>,
    now: Timestamp,
}

impl<'s, 'a> Allowance<'s, 'a> {
    pub(crate) fn of(
        set: &'s Set<'a>,
        members: &[Member<'a>],
        (record, places): (&LocalRecord, &Places),
        now: Timestamp,
    ) -> Self {
        let mut unavailable: HashMap<String, usize> = HashMap::new();
        if let Policy::Is(ValidMigrationPolicy {
            per_shard: Some(_), ..
        }) = set.migration
        {
            let members = members.iter().filter(|member| cost(member) == 0);
            let shards = members.filter_map(|member| member.pod.shard);
            let vacant = places.vacant.iter();
            let vacant = vacant.filter_map(|place| place.shard.as_deref());
            for shard in shards.chain(vacant) {
                *unavailable.entry(shard.to_owned()).or_default() += 1;
            }
        }
        let is_outdated = |member: &Member<'_>| member.is_outdated && member.pod.is_live();
        let has_updates = || !record.updates.is_empty() || members.iter().any(is_outdated);
        let waits = set.migration.waits_for_updates();
        Self {
            set,
            is_rolling: waits && set.may_update() && has_updates(),
            unavailable,
            now,
        }
    }

    /// Whether its deadline has passed (M15).
    pub(crate) fn is_forced(&self, member: &Member<'_>) -> bool {
        let asked = member.pod.migration;
        asked.is_some_and(|asked| asked.deadline <= self.now)
    }

    /// Until when the pod bears the work on its node where it is (M9); `None` if it has to leave. What it needs of the budget is its own
    /// from then on: its node may go at any moment.
    pub(crate) fn tolerates(&self, member: &Member<'a>, account: &Account) -> Option<Timestamp> {
        let Policy::Is(policy) = self.set.migration else {
            return None;
        };
        let (tolerance, absence) = policy.tolerance.zip(member.pod.absence)?;
        let is_short = absence.duration <= tolerance.max_downtime && self.now < absence.until;
        let limit = tolerance.max_unavailable;
        let limit = limit.map(|limit| limit.of(self.set.replicas));
        let cost = cost(member);
        let has_room = cost <= account.room()
            && limit.is_none_or(|limit| account.in_use.saturating_add(cost) <= limit);
        let is_asked_by_node = member.pod.eviction_by == EvictionBy::Node;
        (is_short && has_room && is_asked_by_node).then_some(absence.until)
    }

    /// What holds up the pod, beside the budget of the set. Those that have begun before in this step count.
    pub(crate) fn hold(
        &self,
        member: &Member<'a>,
        account: &Account,
        record: &LocalRecord,
    ) -> Option<MigrationWait<'a>> {
        let policy = match self.set.migration {
            _ if cost(member) == 0 => return None,
            Policy::None => return None,
            Policy::Unknown => return Some(MigrationWait::UnknownPolicy),
            Policy::Is(policy) => policy,
        };
        if self.is_rolling {
            return Some(MigrationWait::Rollout);
        }
        let until = policy.earliest(record.migrated, is_compaction(member), self.now);
        if let Some(until) = until.filter(|until| *until > self.now) {
            return Some(MigrationWait::TooSoon { until });
        }
        // A pod that is copied first is not missed.
        if self.set.migration.copy().is_some() {
            return None;
        }
        let limit = policy.max_unavailable;
        let limit = limit.map(|limit| limit.of(self.set.replicas));
        if let Some(limit) = limit.filter(|limit| account.in_use >= *limit) {
            return Some(MigrationWait::MaxUnavailable { limit });
        }
        let limit = policy.per_shard.as_ref()?.max_unavailable;
        let shard = member.pod.shard?;
        let unavailable = self.unavailable.get(shard).copied().unwrap_or_default();
        (unavailable >= limit).then_some(MigrationWait::Shard { shard, limit })
    }

    /// The eviction of the pod begins.
    pub(crate) fn begin(&mut self, member: &Member<'_>, record: &mut LocalRecord) {
        let pod = member.pod;
        let recorded = record.evictions.entry(pod.uid.to_owned());
        let eviction = recorded.or_insert_with(|| EvictionRecord::requested(self.now));
        let is_new = !eviction.begun;
        eviction.begun = true;
        eviction.forced |= is_new && self.is_forced(member);
        if !matches!(self.set.migration, Policy::Is(_)) {
            return;
        }
        // Of a node that does not answer, nobody knows how long the name is in use: another pod takes its place at once, unless nothing may
        // while it may still run.
        let keeps_name = !pod.is_on_lost_node() || self.set.migration.waits_for_stop();
        let is_copied = eviction.copy.is_some();
        let is_move = self.set.migration.copy().is_none();
        if is_new && keeps_name && is_move && !member.is_extra() && !is_copied {
            eviction.recreate = Some(move_of(self.set, pod));
        }
        if cost(member) == 0 || !is_new || is_copied {
            return;
        }
        if let Some(shard) = pod.shard {
            *self.unavailable.entry(shard.to_owned()).or_default() += 1;
        }
        self.count(member, record);
    }

    /// The pod gets a copy, which is created once that is recorded.
    pub(crate) fn copy(
        &self,
        member: &Member<'_>,
        place: RecreateRecord,
        record: &mut LocalRecord,
    ) {
        let eviction = EvictionRecord {
            copy: Some(place),
            ..EvictionRecord::requested(self.now)
        };
        record.evictions.insert(member.pod.uid.to_owned(), eviction);
        if cost(member) > 0 {
            self.count(member, record);
        }
    }

    /// Counts the migration of a running pod (M14).
    fn count(&self, member: &Member<'_>, record: &mut LocalRecord) {
        record.migrated.any = Some(self.now);
        if is_compaction(member) {
            record.migrated.compaction = Some(self.now);
        }
    }
}

/// Whether nothing but compaction asks for it.
pub(crate) fn is_compaction(member: &Member<'_>) -> bool {
    let asked = member.pod.migration;
    asked.is_some_and(|asked| asked.is_compaction)
}
