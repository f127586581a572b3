//! Asks for checks. Members and watches see no more of the reconciler than this.

use cluster_informer::ChangeHandler;

/// Asks for checks, from any task: never blocks. Changes of single workloads arrive as [`ChangeHandler`].
pub(crate) trait Trigger: ChangeHandler {
    /// Checks every FederatedReplicaSet without delay (F23).
    fn check_all(&self);
}
