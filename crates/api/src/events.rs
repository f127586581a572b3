//! Reasons of the events that fedrs records.

use crate::closed_set::closed_set;

closed_set! {
    /// Reasons of events on a FederatedReplicaSet (F38).
    pub enum EventReason {
        /// A local ReplicaSet was created.
        Created,
        /// A local ReplicaSet was scaled up.
        ScaledUp,
        /// A local ReplicaSet was scaled down.
        ScaledDown,
        /// A local ReplicaSet got the current template.
        Updated,
        /// A rollout began, ended, or reached its next step.
        Rollout,
        /// A rollout made no progress for `progressDeadlineSeconds`.
        RolloutFailed,
        /// The status can't be read: nothing is changed before it can.
        UnreadableStatus,
        /// Pods that a local ReplicaSet adopted got fedrs's labels (F30).
        PodsAdopted,
        /// Clients are to leave pods that are removed next (`spec.drainSeconds`). Only logged: their removal is an event.
        PodsDraining,
        /// A local ReplicaSet that another writer changed or deleted was restored (F29, F31).
        DriftRepaired,
        /// A workload of the same name was adopted or replaced (F29).
        Overwritten,
        /// A member rejected the creation of the local ReplicaSet (F28).
        CreationRejected,
        /// A member rejected a change of the local ReplicaSet.
        WriteRejected,
        /// A cluster can't run more replicas (F34).
        ClusterFull,
        /// A cluster can run more replicas again (F34).
        CapacityRaised,
        /// A cluster is lost; its replicas are rescheduled (F33).
        ClusterLost,
        /// A lost cluster answers again.
        ClusterReturned,
        /// The deletion of a local ReplicaSet hangs; its replicas are rescheduled.
        ReplicaSetTerminating,
        /// A cluster is registered as two members.
        DuplicateMember,
        /// No cluster can run some of the replicas (F18).
        InsufficientCapacity,
        /// The placement leaves no member cluster for some of the replicas.
        NoMatchingCluster,
        /// No member cluster that the placement selects takes the namespace.
        NamespaceNotTaken,
        /// The placement, or a step of the rollout, names a cluster that is no member.
        UnknownCluster,
        /// The spec or its preferences are invalid (F4).
        InvalidSpec,
        /// Another writer keeps changing a local ReplicaSet.
        Contended,
        /// Scheduled pods don't become ready.
        NotBecomingReady,
        /// The deletion waits for members that don't answer (F5).
        DeletionPending,
        /// Local ReplicaSets were left in members that did not answer before the deadline (F5).
        LeftBehind,
    }
}

closed_set! {
    /// Reasons of events on a LocalReplicaSet.
    pub enum LocalEventReason {
        /// Pods were created (L13).
        SuccessfulCreate,
        /// The API server rejects new pods (L13).
        FailedCreate,
        /// Surplus pods were removed (L13).
        SuccessfulDelete,
        /// The API server rejects the removal of a pod.
        FailedDelete,
        /// Pods were removed to be created again with the current template (L12).
        Recreating,
        /// Pods are updated in place (L12).
        UpdatedInPlace,
        /// CPU or memory of pods are changed in place (L12).
        Resized,
        /// The API server rejects a change of a pod.
        FailedUpdate,
        /// Pods were removed because they have to leave their nodes (L18).
        Evicted,
        /// Pods that did not shut down in time were deleted by force (L17).
        ForceDeleted,
        /// Pods that match and had no controller were adopted (C1).
        Adopted,
        /// Pods that do not match any more were released (C6).
        Released,
        /// The spec is invalid.
        InvalidSpec,
        /// The status can't be read: nothing is changed before it can.
        UnreadableStatus,
        /// A revision can't be kept or read.
        FailedRevision,
    }
}

closed_set! {
    /// Reasons of events on a MigrationRequest.
    pub enum MigrationEventReason {
        /// A webhook did not acknowledge a notification (M8).
        FailedNotification,
    }
}

closed_set! {
    /// Reasons of events on a Maintenance.
    pub enum MaintenanceEventReason {
        /// Its time has come: nodes are marked, and their pods leave.
        Started,
        /// All of its nodes are cordoned, and no pod of a LocalReplicaSet or ReplicaSet is left on them.
        Emptied,
        /// The work is over: the marks are removed.
        Ended,
        /// No node matches.
        NoNodes,
        /// The spec is invalid, or names a cluster that is no member.
        NotAccepted,
        /// A member does not answer, or rejects requests.
        MemberUnreachable,
        /// Pods are left in members where nobody moves them.
        PodsNotAsked,
        /// A cluster is no member any more: the marks of its nodes stay.
        MarksLeft,
    }
}

closed_set! {
    /// Reasons of events on an AvailabilitySet.
    pub enum AvailabilityEventReason {
        /// The set is available again.
        Available,
        /// More pods than the budget says are unreachable.
        BudgetExceeded,
        /// The set can't be available with this budget and so many pods.
        NotSatisfiable,
        /// The spec is invalid.
        NotAccepted,
        /// A member does not answer, or rejects requests.
        MemberUnreachable,
        /// A cluster is no member any more: what limits evictions there stays.
        LimitsLeft,
    }
}

closed_set! {
    /// Reasons of events on a MemberCluster. The reasons of the condition Ready are reasons of events as well.
    pub enum MemberEventReason {
        /// The controller uses a kubeconfig that does not protect its credentials.
        InsecureKubeconfig,
        /// The controller renewed the token of the member's kubeconfig.
        TokenRenewed,
        /// The controller could not renew the token of the member's kubeconfig.
        TokenRenewalFailed,
        /// The kubeconfig holds no token that can renew itself.
        TokenNotRenewable,
    }
}
