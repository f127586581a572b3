//! The status of a local workload.

use reflector::partial::null_as_default;
use serde::Deserialize;

use crate::workload_conditions::WorkloadConditions;

/// The status of a ReplicaSet or a Deployment.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct WorkloadStatus {
    pub(crate) observed_generation: i64,
    pub(crate) replicas: u32,
    pub(crate) ready_replicas: u32,
    pub(crate) available_replicas: u32,
    /// Of a ReplicaSet.
    pub(crate) fully_labeled_replicas: u32,
    /// Of a Deployment.
    pub(crate) updated_replicas: u32,
    #[serde(deserialize_with = "null_as_default")]
    pub(crate) conditions: WorkloadConditions,
}
