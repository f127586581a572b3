//! What a change in a member cluster means for a local ReplicaSet.

use fedrs_api::WorkloadKey;
use jiff::Timestamp;

/// A change of a local ReplicaSet or its pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkloadChange {
    /// The workload was created, or its status changed: there is no drift.
    Status,
    /// The workload was deleted, or somebody changed its spec, labels or owner.
    Drift,
    /// More replicas are available: a move may continue.
    MoreAvailable,
    /// A pod was created, deleted, or changed its state.
    Pods,
    /// A pod has no node.
    PodUnscheduled {
        /// Since when.
        since: Timestamp,
    },
}

/// A change of the local ReplicaSet with this key, or of its pods.
pub(crate) type KeyedChange = (WorkloadKey, WorkloadChange);

/// Receives changes from the task that owns the member's state: must not block.
pub trait ChangeHandler: Send + Sync + 'static {
    /// The local ReplicaSet `key` in `cluster`, or its pods, changed.
    fn on_workload_change(&self, cluster: &str, key: &WorkloadKey, change: WorkloadChange);
    /// The health or the sync state of `cluster` changed: everything in it has to be checked (F23).
    fn on_cluster_change(&self, cluster: &str);
}
