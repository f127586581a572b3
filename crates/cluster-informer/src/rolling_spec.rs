//! The spec of a local workload that rolls its template out, a Deployment or a LocalReplicaSet, and its state.

use fedrs_api::{LocalKind, local_defaults};
use reflector::{
    limited_value,
    partial::{Text, null_as_default},
};
use serde::{Deserialize, Deserializer, de::IgnoredAny};
use serde_json::Value;

use crate::{
    cluster_info::text_hash,
    deployment_state::{DeploymentState, LocalSetState, RolloutStrategy},
    pod_template::{MAX_VALUES, PodTemplate},
    workload::WorkloadState,
    workload_metadata::WorkloadMetadata,
    workload_status::WorkloadStatus,
};

/// The fields that a check needs. `S` is the strategy of the kind.
#[derive(Debug, Deserialize)]
#[serde(
    from = "WholeSpec<S>",
    bound(deserialize = "S: Default + Deserialize<'de>")
)]
pub(crate) struct RollingSpec<S> {
    pub(crate) replicas: u32,
    paused: bool,
    min_ready_seconds: i32,
    pub(crate) progress_deadline_seconds: Option<i32>,
    pub(crate) revision_history_limit: Option<i32>,
    /// Of a LocalReplicaSet.
    pub(crate) drain_seconds: i32,
    /// Of a LocalReplicaSet: the hash of the text.
    pub(crate) migration_policy: Option<u64>,
    /// Of a LocalReplicaSet.
    pub(crate) has_others: bool,
    pub(crate) strategy: S,
    pub(crate) template: PodTemplate,
}

#[derive(Deserialize)]
#[serde(
    rename_all = "camelCase",
    bound(deserialize = "S: Default + Deserialize<'de>")
)]
struct WholeSpec<S> {
    /// The API server's own default.
    #[serde(default = "one")]
    replicas: u32,
    #[serde(default)]
    min_ready_seconds: i32,
    #[serde(default, deserialize_with = "null_as_default")]
    paused: bool,
    /// The second name is that of a LocalReplicaSet.
    #[serde(
        default,
        alias = "deploymentStrategy",
        deserialize_with = "null_as_default"
    )]
    strategy: S,
    #[serde(default, deserialize_with = "limited_value::<MAX_VALUES, _>")]
    template: Value,
    #[serde(default)]
    progress_deadline_seconds: Option<i32>,
    #[serde(default)]
    revision_history_limit: Option<i32>,
    // What follows is of a LocalReplicaSet.
    #[serde(default, deserialize_with = "null_as_default")]
    stopped: bool,
    #[serde(default, deserialize_with = "is_not_rolling")]
    update_mode: IsOther,
    #[serde(default, deserialize_with = "is_account")]
    account_id: IsOther,
    #[serde(default, deserialize_with = "is_segment")]
    node_segment_id: IsOther,
    #[serde(default, deserialize_with = "null_as_default")]
    constraints: Constraints,
    #[serde(default)]
    drain_seconds: Option<i32>,
    #[serde(default, deserialize_with = "text_hash")]
    migration_policy: Option<u64>,
    #[serde(default)]
    removal_timeout_seconds: Option<i32>,
    #[serde(default)]
    eviction_timeout_seconds: Option<i32>,
    #[serde(default)]
    node_timeout_seconds: Option<i32>,
}

/// Whether it is another text than the API server's own default.
#[derive(Debug, Default)]
pub(crate) struct IsOther(pub(crate) bool);

/// Where pods of a LocalReplicaSet must not run together.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Constraints {
    #[serde(deserialize_with = "null_as_default")]
    antiaffinity: Vec<IgnoredAny>,
}

fn one() -> u32 {
    1
}

fn is_not_rolling<'de, D: Deserializer<'de>>(deserializer: D) -> Result<IsOther, D::Error> {
    is_other(deserializer, "Rolling")
}

fn is_account<'de, D: Deserializer<'de>>(deserializer: D) -> Result<IsOther, D::Error> {
    is_other(deserializer, "")
}

fn is_segment<'de, D: Deserializer<'de>>(deserializer: D) -> Result<IsOther, D::Error> {
    is_other(deserializer, &local_defaults::node_segment_id())
}

pub(crate) fn is_other<'de, D: Deserializer<'de>>(
    deserializer: D,
    default: &str,
) -> Result<IsOther, D::Error> {
    let text = Option::<Text<'_>>::deserialize(deserializer)?;
    Ok(IsOther(text.is_some_and(|text| text.0 != default)))
}

impl<S> WholeSpec<S> {
    /// Whether a LocalReplicaSet has another value than the API server's own default in a field that fedrs does not set.
    fn has_others(&self) -> bool {
        let is_other = |seconds: Option<i32>, default: i32| seconds.unwrap_or(default) != default;
        self.stopped
            || self.update_mode.0
            || self.account_id.0
            || self.node_segment_id.0
            || !self.constraints.antiaffinity.is_empty()
            || is_other(
                self.removal_timeout_seconds,
                local_defaults::removal_timeout_seconds(),
            )
            || is_other(
                self.eviction_timeout_seconds,
                local_defaults::eviction_timeout_seconds(),
            )
            || is_other(
                self.node_timeout_seconds,
                local_defaults::node_timeout_seconds(),
            )
    }
}

impl<S> From<WholeSpec<S>> for RollingSpec<S> {
    fn from(spec: WholeSpec<S>) -> Self {
        Self {
            drain_seconds: spec.drain_seconds.unwrap_or(0),
            migration_policy: spec.migration_policy,
            has_others: spec.has_others(),
            replicas: spec.replicas,
            paused: spec.paused,
            min_ready_seconds: spec.min_ready_seconds,
            progress_deadline_seconds: spec.progress_deadline_seconds,
            revision_history_limit: spec.revision_history_limit,
            strategy: spec.strategy,
            // Its selector is immutable, and its settings change without a rollout.
            template: PodTemplate::new(&spec.template, 0, &Value::Null),
        }
    }
}

impl<S> RollingSpec<S> {
    /// The state of a workload of `kind`. `strategy` is in pods.
    pub(crate) fn into_state(
        self,
        kind: LocalKind,
        metadata: WorkloadMetadata,
        mut status: WorkloadStatus,
        strategy: RolloutStrategy,
        local: Option<LocalSetState>,
    ) -> WorkloadState {
        let deployment = DeploymentState {
            strategy,
            paused: self.paused,
            min_ready_seconds: self.min_ready_seconds,
            written_template: self.template.written_hash,
            updated_replicas: status.updated_replicas,
            progressing: status.conditions.progressing.take(),
            eviction_blocked: status.conditions.eviction_blocked.take(),
            template_is_labeled: self.template.is_labeled_as(&metadata.labels),
            local,
        };
        WorkloadState {
            deployment: Some(Box::new(deployment)),
            ..metadata.into_state(kind, self.replicas, self.template.hash, status)
        }
    }
}
