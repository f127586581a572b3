//! What checks read of a member cluster.

use fedrs_api::{LocalKind, WorkloadKey};
use jiff::Timestamp;

use crate::{
    cluster_info::ClusterInfo,
    health::Health,
    sync_state::SyncState,
    workload::{WorkloadState, WorkloadView},
};

/// Sums over all local workloads of a member cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkloadTotals {
    /// Local workloads with existing or desired replicas.
    pub workloads: u32,
    /// Existing or desired replicas.
    pub replicas: u64,
    /// The first of these workloads: ReplicaSets, then Deployments, then LocalReplicaSets, each in order.
    pub first: Vec<WorkloadKey>,
}

/// A namespace that is watched by itself, and whose view is not up to date.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadNamespace {
    /// Its name.
    pub name: String,
    /// What fails, if anything did.
    pub failure: Option<String>,
}

/// The view of one member cluster. Calls take a short lock and never wait for the cluster.
pub trait MemberView: Send + Sync + 'static {
    /// What is known of the local workload `key`.
    fn workload(&self, key: &WorkloadKey) -> WorkloadView;
    /// Whether the view of the ReplicaSets and pods is up to date.
    fn sync_state(&self) -> SyncState;
    /// Whether the view of the workloads of the kind of `key` in its namespace is up to date, and of their pods. A member whose
    /// Deployments can't be read is as up to date for ReplicaSets as any other, and where ReplicaSets can't be read, the
    /// status of a Deployment counts its pods (F30). Others than ReplicaSets are not synced before somebody asks for them.
    fn sync_state_of(&self, key: &WorkloadKey) -> SyncState;
    /// What fails while the view of the kind of `key` in its namespace is not up to date, such as a missing permission.
    fn failure_of(&self, _key: &WorkloadKey) -> Option<String> {
        None
    }
    /// Whether the member has no workloads of this kind: it has said for long that there is no such kind. What else is known of
    /// them is from before.
    fn lacks(&self, _kind: LocalKind) -> bool {
        false
    }
    /// Watches workloads of this kind from now on, in all namespaces that are watched. Until then those other than ReplicaSets cost
    /// no request. May be called again.
    fn watch(&self, _kind: LocalKind) {}
    /// Since when workloads of the kind of `key` are watched in its namespace; `None` if they are not. The first list takes its time.
    fn watched_since(&self, _key: &WorkloadKey) -> Option<Timestamp> {
        None
    }
    /// The namespaces whose views are not up to date, if each is watched by itself.
    fn unread_namespaces(&self) -> Vec<UnreadNamespace> {
        Vec::new()
    }
    /// The limit that the cluster's responses exceed, if they do: the view is not up to date then.
    fn exceeded_limit(&self) -> Option<String>;
    /// The result of the liveness probe.
    fn health(&self) -> Health;
    /// The cluster's version and nodes.
    fn cluster_info(&self) -> ClusterInfo;
    /// An earlier leader saw the member last, as a lost one: each node has to report before its pods count.
    fn confirm_nodes(&self);
    /// Lists the workloads of the kind of `key` and the pods in its namespace again: what is known of them may be wrong.
    fn relist(&self, key: &WorkloadKey);
    /// Finds out whether the watch of the workloads of the kind of `key` in its namespace works: a decision waits for what only
    /// it shows.
    fn confirm_workloads(&self, key: &WorkloadKey);
    /// Sums over all local workloads, with the names of at most `max_names`. ReplicaSets of a known Deployment count as that.
    fn totals(&self, max_names: usize) -> WorkloadTotals;
    /// Applies the response to our own write, ahead of the watch.
    fn observe_write(&self, state: WorkloadState);
    /// A request to scale to `replicas`, which requires `generation`, is about to be sent. Until its result is known, the
    /// replicas above this number may be deleted at any moment, and those below it created.
    fn observe_scale(&self, key: &WorkloadKey, uid: &str, generation: i64, replicas: u32);
    /// The member has rejected that request: it is not carried out.
    fn observe_rejected_scale(&self, key: &WorkloadKey, uid: &str, generation: i64);
    /// Removes `key`: our delete request for the object with this uid succeeded.
    fn observe_deletion(&self, key: &WorkloadKey, uid: &str);
    /// Removes `key`: according to the response to a write, the object with this uid does not exist.
    fn observe_absence(&self, key: &WorkloadKey, uid: &str);
    /// Removes `key`: the object with this uid has had none of our labels since `resource_version`. It may get them again.
    fn observe_release(&self, key: &WorkloadKey, uid: &str, resource_version: &str);
}
