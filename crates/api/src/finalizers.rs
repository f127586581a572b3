//! Finalizers that fedrs sets.

/// On a FederatedReplicaSet: the controller releases or deletes its local ReplicaSets before the object disappears (F5).
pub const MEMBERS: &str = "fedrs.dev/members";
