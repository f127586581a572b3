//! Why migrations wait, for programs: metrics and filters.

use crate::closed_set::closed_set;

closed_set! {
    /// What holds up a migration that has not begun.
    pub enum MigrationWaitReason {
        /// The budget of the set is in use.
        Budget,
        /// As many pods are unavailable as the policy allows (M10).
        MaxUnavailable,
        /// As many pods of its shard are unavailable as the policy allows (M6).
        Shard,
        /// The set is being updated (M1).
        Rollout,
        /// The last migration is too recent (M14).
        TooSoon,
        /// The pod is new on a node that evicts its pods (L18).
        TooYoung,
        /// The pod bears the work on its node where it is (M9).
        Tolerated,
        /// The MigrationPolicy of the set is not known (M1).
        UnknownPolicy,
        /// As many pods are being copied as the policy allows (M2).
        Copies,
        /// A person has to do something: `status.awaits` says what (M4, M7, M11, M12).
        Person,
        /// `spec.stopped` of the set stops every change of its pods (L8).
        Stopped,
        /// Another pod of its ReplicaSet or Deployment moves first.
        Queued,
        /// The API server rejects the eviction, and no budget is the reason.
        Rejected,
        /// The MigrationPolicy asks for what pods of ReplicaSets do not support: the pod stays until its deadline (M1, M15).
        PolicyNotSupported,
    }
}

closed_set! {
    /// Why a migration is refused.
    pub enum MigrationRefusal {
        /// The MigrationPolicy asks for what pods of ReplicaSets do not support (M1). A request that a mark on the node makes waits instead.
        PolicyNotSupported,
    }
}
