//! Finalizers that fedrs sets.

/// On a FederatedReplicaSet: the controller releases or deletes its local workloads before the object disappears (F5).
pub const MEMBERS: &str = "fedrs.dev/members";
/// On the ControllerRevision that records a foreground deletion (F5).
pub const CASCADE: &str = "fedrs.dev/cascade";
