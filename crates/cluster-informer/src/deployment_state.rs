//! What is known of a Deployment beyond what every local workload has.

use fedrs_api::{WorkloadKey, local_defaults};
use reflector::Uid;
use serde::Deserialize;

/// What a Deployment, or a LocalReplicaSet, has beside what a ReplicaSet has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeploymentState {
    /// `spec.strategy`, in pods; of a LocalReplicaSet `spec.deploymentStrategy`, without a surge.
    pub strategy: RolloutStrategy,
    /// `spec.paused`: the member's controller starts no rollout, and scales all ReplicaSets of a Deployment in proportion.
    pub paused: bool,
    /// `spec.minReadySeconds`.
    pub min_ready_seconds: i32,
    /// The hash of the user's template that an annotation of the template names; 0 without one. Another writer may have changed
    /// the template since.
    pub written_template: u32,
    /// `status.updatedReplicas`: pods of the template that `observedGeneration` has.
    pub updated_replicas: u32,
    /// The condition `Progressing`.
    pub progressing: Option<Progressing>,
    /// Which evictions a LocalReplicaSet does not finish in time, and why (L19).
    pub eviction_blocked: Option<String>,
    /// Whether the template has our labels: the watch of the pods shows those that are created from it.
    pub template_is_labeled: bool,
    /// What only a LocalReplicaSet has.
    pub local: Option<LocalSetState>,
}

/// What a LocalReplicaSet has beside what a Deployment has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LocalSetState {
    /// What of its spec decides how the controller in the member works.
    pub settings: LocalSettings,
    /// `status.waitingEvictions`: evictions of available pods that wait for a part of the budget (L20).
    pub waiting_evictions: u32,
    /// `status.evictable`: pods that evictions through the API server may make unavailable, whatever the strategy is now (L20).
    pub evictable: u32,
}

/// The spec of a LocalReplicaSet beside replicas, selector, template and budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalSettings {
    /// `spec.progressDeadlineSeconds`.
    pub progress_deadline_seconds: i32,
    /// `spec.revisionHistoryLimit`.
    pub revision_history_limit: i32,
    /// `spec.drainSeconds`.
    pub drain_seconds: i32,
    /// The XXH3 hash of the text `spec.migrationPolicy`, which another writer may have made of any length; `None` if it is absent.
    pub migration_policy: Option<u64>,
    /// `spec.deploymentStrategy.deploySpeed`.
    pub speed: Option<LocalSpeed>,
    /// Whether a field is set that fedrs leaves at its default, such as `stopped`. Fields that are not known here do not count: a
    /// newer API server may default them.
    pub has_others: bool,
}

/// The API server's own defaults.
impl Default for LocalSettings {
    fn default() -> Self {
        Self {
            progress_deadline_seconds: local_defaults::progress_deadline_seconds(),
            revision_history_limit: local_defaults::revision_history_limit(),
            drain_seconds: 0,
            migration_policy: None,
            speed: None,
            has_others: false,
        }
    }
}

/// At most `update_portion` pods begin to be updated in any `min_delay` seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LocalSpeed {
    /// `updatePortion`.
    pub update_portion: u32,
    /// `minDelay`.
    pub min_delay: u32,
}

/// How many pods a Deployment may replace at once: the rolling update parameters of its strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RolloutStrategy {
    /// `maxUnavailable`, in pods. `Recreate` may make all replicas unavailable.
    pub max_unavailable: u32,
    /// `maxSurge`, in pods.
    pub max_surge: u32,
    /// Whether both are integers. Otherwise they are what the member's controller makes of percentages, or of `Recreate`,
    /// with the present `spec.replicas`, and change with these.
    pub is_fixed: bool,
}

/// The smallest one that the API server accepts.
impl Default for RolloutStrategy {
    fn default() -> Self {
        Self {
            max_unavailable: 0,
            max_surge: 1,
            is_fixed: true,
        }
    }
}

/// The condition `Progressing` of a Deployment, true or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progressing {
    /// Its reason, such as `NewReplicaSetAvailable` or `ProgressDeadlineExceeded`.
    pub reason: String,
    /// Its message.
    pub message: String,
}

/// The Deployment that is the controller of a ReplicaSet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwningDeployment {
    /// The key that it has as a local workload.
    pub key: WorkloadKey,
    /// Its uid.
    pub uid: Uid,
    /// Whether the template of the ReplicaSet has our labels: the watch of the pods shows those that are created from it.
    pub template_is_labeled: bool,
}

impl DeploymentState {
    /// Whether `spec` differs, as far as it is read.
    pub(crate) fn has_other_spec(&self, other: &Self) -> bool {
        let spec = Self::settings;
        spec(self) != spec(other)
    }

    /// What is read of its spec beside replicas and template.
    pub(crate) fn settings(&self) -> (RolloutStrategy, bool, i32, Option<LocalSettings>) {
        let local = self.local.map(|local| local.settings);
        (self.strategy, self.paused, self.min_ready_seconds, local)
    }

    /// The bytes that it takes.
    pub(crate) fn bytes(&self) -> usize {
        let texts = self.progressing.iter();
        let texts = texts.map(|condition| condition.reason.len() + condition.message.len());
        let blocked = self.eviction_blocked.as_ref().map_or(0, String::len);
        size_of::<Self>() + texts.sum::<usize>() + blocked
    }
}

impl OwningDeployment {
    /// The bytes that it takes.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>() + self.key.namespace.len() + self.key.name.len()
    }
}
