//! How far the rollout of a FederatedDeployment is: `status.rollout`.

use federated_rollout::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::record_text;

/// How far a rollout is, and what of its budget is in use.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RolloutStatus {
    /// The step that is being updated or waited for, by its name; absent for the implied last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// The revision of the spec that made no progress and is undone: `currentRevision` is rolled out again, until the template of
    /// the spec changes. Only with `spec.rollout.onFailure: Undo`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_revision: Option<String>,
    /// Why a pod of the revision that has failed is not available: cluster, pod, and what it says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failing_pod: Option<String>,
    /// The pods that may be unavailable, over all member clusters together.
    pub max_unavailable: i32,
    /// Of `maxUnavailable`: in use. Pods that are unavailable for whatever reason, and those that member clusters may make so.
    pub unavailable: i32,
    /// The pods that may exist beyond `spec.replicas`, over all member clusters together.
    pub max_surge: i32,
    /// Of `maxSurge`: in use. Pods that exist, and those that member clusters may create.
    pub surge: i32,
    /// Which parts of the budget are lent to which member cluster, as JSON. The controller continues from it. Do not edit it:
    /// the controller stops rather than lending a part twice.
    #[serde(with = "record_text")]
    #[schemars(with = "String")]
    pub record: State,
}
