//! The status of a local workload.

use reflector::partial::{for_each_item, null_as_default};
use serde::{Deserialize, Deserializer};

use crate::workload_conditions::WorkloadConditions;

/// The status of a local workload, of any kind.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct WorkloadStatus {
    pub(crate) observed_generation: i64,
    pub(crate) replicas: u32,
    pub(crate) ready_replicas: u32,
    pub(crate) available_replicas: u32,
    /// Of a ReplicaSet.
    pub(crate) fully_labeled_replicas: u32,
    /// Of a Deployment or a LocalReplicaSet.
    pub(crate) updated_replicas: u32,
    /// Of a LocalReplicaSet.
    pub(crate) waiting_evictions: u32,
    /// Of a LocalReplicaSet.
    pub(crate) evictable: u32,
    /// Of a LocalReplicaSet.
    #[serde(deserialize_with = "null_as_default")]
    pub(crate) revisions: ReadyPods,
    #[serde(deserialize_with = "null_as_default")]
    pub(crate) conditions: WorkloadConditions,
}

/// The pods of all revisions that are available, and of which no update or eviction was recorded (L16).
#[derive(Debug, Default)]
pub(crate) struct ReadyPods(pub(crate) u32);

impl<'de> Deserialize<'de> for ReadyPods {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Revision {
            #[serde(default)]
            ready: u32,
        }
        let mut ready = Self::default();
        for_each_item(deserializer, |revision: Revision| {
            ready.0 = ready.0.saturating_add(revision.ready);
        })?;
        Ok(ready)
    }
}
