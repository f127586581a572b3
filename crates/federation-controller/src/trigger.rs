//! Requests checks. Members and watches know nothing else of the reconciler.

use std::collections::BTreeSet;

use cluster_informer::ChangeHandler;

/// Requests checks, from any task: never blocks. Changes of single workloads arrive as [`ChangeHandler`].
pub(crate) trait Trigger: ChangeHandler {
    /// Checks every FederatedReplicaSet without delay (F23).
    fn check_all(&self);
    /// Checks every FederatedReplicaSet of a namespace without delay.
    fn check_namespace(&self, namespace: &str);
    /// The namespaces of FederatedReplicaSets with replicas in `member`, as the last checks decided.
    fn namespaces_in(&self, member: &str) -> BTreeSet<String>;
}
