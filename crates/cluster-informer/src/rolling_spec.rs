//! The spec of a local workload that rolls its template out, a Deployment or a LocalReplicaSet, and its state.

use fedrs_api::LocalKind;
use reflector::{limited_value, partial::null_as_default};
use serde::Deserialize;
use serde_json::Value;

use crate::{
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
}

fn one() -> u32 {
    1
}

impl<S> From<WholeSpec<S>> for RollingSpec<S> {
    fn from(spec: WholeSpec<S>) -> Self {
        Self {
            replicas: spec.replicas,
            paused: spec.paused,
            min_ready_seconds: spec.min_ready_seconds,
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
            template_is_labeled: self.template.is_labeled_as(&metadata.labels),
            local,
        };
        WorkloadState {
            deployment: Some(Box::new(deployment)),
            ..metadata.into_state(kind, self.replicas, self.template.hash, status)
        }
    }
}
