//! What a LocalReplicaSet's controller has begun, as it is recorded in the status before it begins (L15, L19).

use std::{collections::BTreeMap, time::Duration};

use federated_rollout::after;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::compact::is_default;

/// What was begun, by the uid of the pod: a pod that is deleted remembers nothing.
///
/// Publish it with a precondition on the version that it was decided from, so that of two leaders one fails.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LocalRecord {
    /// Updates that have begun and are not complete.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub updates: BTreeMap<String, UpdateRecord>,
    /// Evictions that were requested and are not finished.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub evictions: BTreeMap<String, EvictionRecord>,
    /// When running pods were migrated last (M14).
    #[serde(skip_serializing_if = "is_default")]
    pub migrated: MigratedRecord,
    /// Updates that were seen to have begun, as long as they count for the speed. In the order of their times. Expired ones are
    /// removed with the next change.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub begun: Vec<BegunRecord>,
    /// What evictions of others may take of the budget by the last request that lends them more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lent: Option<LentRecord>,
    /// Cordoned nodes for whose drain updates wait.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub drains: BTreeMap<String, DrainRecord>,
}

/// When the migrations of running pods began last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MigratedRecord {
    /// For whatever cause.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub any: Option<Timestamp>,
    /// For compaction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compaction: Option<Timestamp>,
}

/// A request that lowers the PodDisruptionBudget of the set. It may arrive as long as the budget has this generation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LentRecord {
    /// The uid of the PodDisruptionBudget.
    pub uid: String,
    /// The generation of the PodDisruptionBudget that is a precondition of the request.
    pub generation: i64,
    /// The pods that evictions have to leave available.
    pub min_available: u64,
}

/// A cordoned node for whose drain updates wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DrainRecord {
    /// Since when, or when a pod of the node was evicted last.
    pub since: Timestamp,
    /// Since when the PodDisruptionBudget allows evictions; absent while it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed: Option<Timestamp>,
}

/// The update of a pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UpdateRecord {
    /// The hash of the template that the pod had; absent if it had none. Only a pod that still has it is updated under this record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<u32>,
    /// Whether the update was seen to have begun: it counts in [`LocalRecord::begun`] from then on.
    #[serde(default, skip_serializing_if = "is_default")]
    pub seen: bool,
    /// The pod is created again, with the same name (L12).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recreate: Option<RecreateRecord>,
}

/// The pod that is created again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecreateRecord {
    /// Its name.
    pub name: String,
    /// The node that it had, which the new one prefers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The shard that it keeps, as the value of the label of shards (M6).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<String>,
    /// Whether it is not started until a person does so (M7, M12): it gets the scheduling gate.
    #[serde(default, skip_serializing_if = "is_default")]
    pub gated: bool,
}

/// The eviction of a pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EvictionRecord {
    /// When the request was first seen.
    pub since: Timestamp,
    /// Whether it has begun: the pod may be deleted.
    #[serde(default, skip_serializing_if = "is_default")]
    pub begun: bool,
    /// The pod is created again on another node, with the same name (M5). Absent: its successor gets another name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recreate: Option<RecreateRecord>,
    /// The pod that is made before this one is removed (M2). It is no replica of the set until the eviction begins; from then on, the
    /// evicted one is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy: Option<RecreateRecord>,
    /// Whether it has begun because its deadline had passed (M15).
    #[serde(default, skip_serializing_if = "is_default")]
    pub forced: bool,
}

/// Updates that were seen to have begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BegunRecord {
    /// When they were seen, at or after the time at which they began.
    pub at: Timestamp,
    /// Pods.
    pub pods: u64,
}

impl EvictionRecord {
    /// One that was first seen at this time, and has not begun.
    #[must_use]
    pub fn requested(since: Timestamp) -> Self {
        Self {
            since,
            begun: false,
            recreate: None,
            copy: None,
            forced: false,
        }
    }

    /// One that begins, or has begun.
    #[must_use]
    pub fn begun(since: Timestamp) -> Self {
        Self {
            begun: true,
            ..Self::requested(since)
        }
    }
}

impl LentRecord {
    /// The pods that evictions have to leave available.
    #[must_use]
    pub fn least(&self) -> usize {
        usize::try_from(self.min_available).unwrap_or(usize::MAX)
    }
}

impl LocalRecord {
    /// Counts one more update that was seen to have begun at `now`.
    pub fn count_begun(&mut self, now: Timestamp) {
        match self.begun.last_mut() {
            Some(last) if last.at == now => last.pods += 1,
            _ => self.begun.push(BegunRecord { at: now, pods: 1 }),
        }
    }

    /// Forgets updates that no longer count for a speed with this delay.
    pub fn forget_begun(&mut self, min_delay: Duration, now: Timestamp) {
        self.begun.retain(|begun| begun.counts_at(min_delay, now));
    }
}

impl BegunRecord {
    /// Whether they count for a speed with this delay.
    #[must_use]
    pub fn counts_at(&self, min_delay: Duration, now: Timestamp) -> bool {
        self.ends(min_delay) > now
    }

    /// When they stop counting.
    #[must_use]
    pub fn ends(&self, min_delay: Duration) -> Timestamp {
        after(self.at, min_delay)
    }
}
