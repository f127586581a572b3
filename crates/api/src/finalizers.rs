//! Finalizers that fedrs sets.

/// On a FederatedReplicaSet: the controller releases or deletes its local ReplicaSets before the object disappears (F5).
pub const MEMBERS: &str = "fedrs.dev/members";
/// On a pod of a LocalReplicaSet whose policy asks for it: the pod stays until its containers are known to have stopped (M11).
pub const SHUTDOWN: &str = "fedrs.dev/shutdown";
/// On a Maintenance: the controller removes its marks from the nodes of the members before the object disappears.
pub const MAINTENANCE: &str = "fedrs.dev/maintenance";
/// On an AvailabilitySet: the controller removes its PodDisruptionBudgets and limits from the members before the object disappears.
pub const AVAILABILITY_SET: &str = "fedrs.dev/availability-set";
