//! Condition types and reasons of fedrs's objects, and the one way to build a condition.
//!
//! `Reconciling` and `Stalled` follow kstatus: they are present only while they are true.

use std::fmt::Display;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use crate::closed_set::closed_set;

closed_set! {
    /// Condition types of a FederatedReplicaSet (F6) and a FederatedDeployment. The first three are always present, of a
    /// FederatedDeployment the first three and its own two; the others only while they are true.
    pub enum ConditionType {
        /// Whether the spec and its preferences are valid (F4), and not all members reject the template or the workload.
        Accepted,
        /// Whether every replica has a cluster that can run it (F18).
        Placed,
        /// Whether the spec is valid and every replica is placed and available.
        Ready,
        /// kstatus: the controller still works towards the desired state.
        Reconciling,
        /// kstatus: the controller can't make progress until a person changes something.
        Stalled,
        /// Of a FederatedDeployment, as of a Deployment: whether at least `spec.replicas` less `maxUnavailable` are available.
        Available,
        /// Of a FederatedDeployment, as of a Deployment: whether its rollout makes progress, or is complete.
        Progressing,
        /// A member has a local workload of the same name that belongs to another owner (F29, F40).
        NameConflict,
        /// The selector matches pods of another set of the namespace.
        SelectorOverlap,
        /// Replicas can't leave a cluster, because their replacements are not ready (F20).
        MoveBlocked,
        /// Scheduled pods have not become ready for ten minutes.
        NotBecomingReady,
        /// Another writer keeps changing a local workload (F29).
        Contended,
        /// Pods run another template than the current one.
        TemplateOutdated,
        /// `spec.paused`, of a FederatedDeployment `spec.stopped`, stops every change in the members.
        Paused,
    }
}

closed_set! {
    /// Reasons of the conditions of a FederatedReplicaSet.
    pub enum ConditionReason {
        /// `Accepted`: the spec and its preferences are valid.
        Valid,
        /// `Accepted`, `Placed`, `Ready`, `Stalled`: the spec or its preferences are invalid.
        InvalidSpec,
        /// `Accepted`, `Stalled`: every member rejects the pod template.
        TemplateRejected,
        /// `Placed`: every replica has a cluster.
        AllReplicasPlaced,
        /// `Placed`, `Reconciling`: replicas are on their way to their clusters.
        Rescheduling,
        /// `Placed`, `Ready`, `Reconciling`: no cluster can run some of the replicas.
        InsufficientCapacity,
        /// `Placed`, `Ready`, `Reconciling`: the placement leaves no member cluster for some of the replicas.
        NoMatchingCluster,
        /// `Placed`, `Ready`, `Reconciling`: no member cluster that the placement selects takes the namespace.
        NamespaceNotTaken,
        /// `Placed`, `Ready`, `Reconciling`: members that were just added have not answered yet.
        WaitingForMembers,
        /// `Reconciling`: the state of a member with replicas is unknown.
        MemberUnknown,
        /// `Accepted`, `Stalled`: every member rejects the local workload. `Reconciling`: some do.
        WorkloadRejected,
        /// `Ready`: every replica is available.
        AllReplicasAvailable,
        /// `Ready`, `Reconciling`: replicas are not available yet.
        ReplicasUnavailable,
        /// `Available`: enough replicas are available.
        MinimumReplicasAvailable,
        /// `Available`: fewer replicas are available than the strategy allows.
        MinimumReplicasUnavailable,
        /// `Progressing`: all clusters have the current revision.
        RolloutComplete,
        /// `Progressing`, `Ready`, `Reconciling`: clusters are being updated.
        RollingOut,
        /// `Progressing`, `Ready`: `spec.paused` stops the rollout.
        RolloutPaused,
        /// `Progressing`, `Ready`, `Reconciling`: a step is complete, and the next one begins after a while.
        Soaking,
        /// `Progressing`, `Ready`, `Reconciling`: the next step needs an approval.
        WaitingForApproval,
        /// `Progressing`, `Ready`, `Stalled`: no pod became updated and available for `progressDeadlineSeconds`.
        ProgressDeadlineExceeded,
        /// `Progressing`, `Ready`, `Stalled`: no pod became updated and available, and the revision before is rolled out again.
        RolledBack,
        /// `NameConflict`: the local workload belongs to another owner.
        OwnedByAnother,
        /// `SelectorOverlap`: the selectors of two sets match each other's pods.
        OverlappingSelector,
        /// `MoveBlocked`: replacements can't run or are not ready.
        ReplacementsNotReady,
        /// `NotBecomingReady`: no pod has become ready for ten minutes.
        NoProgress,
        /// `Contended`: another writer keeps changing the local workload.
        ExternalWriter,
        /// `TemplateOutdated`: pods were created from another template, or adopted.
        OutdatedPods,
        /// `Paused`: `spec.paused` is true.
        Paused,
        /// `Paused`: `spec.stopped` of a FederatedDeployment is true.
        Stopped,
    }
}

closed_set! {
    /// Condition types of a LocalReplicaSet. The first four are always present, the others only while they are true.
    pub enum LocalConditionType {
        /// Whether the spec is valid.
        Accepted,
        /// Whether at least `spec.replicas` less `maxUnavailable` are available.
        Available,
        /// Whether an update makes progress, or is complete.
        Progressing,
        /// Whether the spec is valid and every replica is available, of the current template unless the set does not update pods.
        Ready,
        /// kstatus: the controller still works towards the desired state.
        Reconciling,
        /// kstatus: the controller can't make progress until a person changes something.
        Stalled,
        /// As of a ReplicaSet: pods can't be created or removed.
        ReplicaFailure,
        /// Pods that have failed use the budget, so that no available pod is updated or evicted (L14).
        BudgetUsedByFailures,
        /// An eviction is not finished after `evictionTimeoutSeconds` (L19).
        EvictionBlocked,
        /// The containers of pods that are being removed are not known to have stopped in time, and a person has to confirm that they have
        /// (M11).
        PodsNotStopped,
        /// The selector matches pods of another set of the namespace (C5).
        SelectorOverlap,
        /// The set has no PodDisruptionBudget, or not the one that it should have: evictions through the API server may exceed its
        /// budget, or be rejected (L20).
        DisruptionBudgetOutdated,
        /// The MigrationPolicy that the set names does not exist or is invalid: running pods do not move before their deadlines (M1).
        MigrationPolicyUnknown,
        /// Migrations of its pods may need a person, or a webhook was named, and nobody is notified of them (M8).
        NotificationsMissing,
        /// Fields are set that have no effect (L5).
        FieldsWithoutEffect,
        /// `spec.paused` stops updates, or `spec.stopped` every change (L8).
        Paused,
    }
}

closed_set! {
    /// Reasons of the conditions of a LocalReplicaSet.
    pub enum LocalReason {
        /// `Accepted`: the spec is valid.
        Valid,
        /// `Accepted`, `Ready`, `Stalled`: the spec is invalid.
        InvalidSpec,
        /// `Available`: enough pods are available.
        MinimumReplicasAvailable,
        /// `Available`: fewer pods are available than the strategy allows.
        MinimumReplicasUnavailable,
        /// `Progressing`: all pods have the current template.
        RolloutComplete,
        /// `Progressing`, `Ready`, `Reconciling`: pods are being updated.
        RollingOut,
        /// `Progressing`: `spec.updateMode` is `Never`, and pods of earlier templates stay.
        UpdatesDisabled,
        /// `Progressing`, `Ready`: `spec.paused` stops the update.
        RolloutPaused,
        /// `Progressing`, `Ready`, `Stalled`: no pod became updated and available for `progressDeadlineSeconds`.
        ProgressDeadlineExceeded,
        /// `Ready`: every replica is available.
        AllReplicasAvailable,
        /// `Ready`, `Reconciling`: pods are not available yet.
        ReplicasUnavailable,
        /// `Reconciling`: pods are created or removed.
        Scaling,
        /// `Reconciling`: pods are evicted.
        Evicting,
        /// `ReplicaFailure`: the API server rejects new pods.
        FailedCreate,
        /// `ReplicaFailure`: the API server rejects the removal of pods.
        FailedDelete,
        /// `BudgetUsedByFailures`: pods have failed.
        PodsFailed,
        /// `EvictionBlocked`: the budget is in use.
        WaitingForBudget,
        /// `EvictionBlocked`: the replacement does not become available.
        ReplacementUnavailable,
        /// `PodsNotStopped`: the policy waits for a person.
        ConfirmationNeeded,
        /// `SelectorOverlap`: the selectors of two sets match each other's pods.
        OverlappingSelector,
        /// `MigrationPolicyUnknown`: there is no such MigrationPolicy, or it is invalid.
        NoValidMigrationPolicy,
        /// `NotificationsMissing`: a person may have to confirm something, and no webhook is named.
        NoWebhook,
        /// `NotificationsMissing`: the controller's configuration does not allow the host of the webhook.
        WebhookNotAllowed,
        /// `DisruptionBudgetOutdated`: another PodDisruptionBudget matches the pods. Two would fail every eviction.
        OtherDisruptionBudget,
        /// `DisruptionBudgetOutdated`: the API server rejects the PodDisruptionBudget.
        FailedDisruptionBudget,
        /// `FieldsWithoutEffect`: `minAvailable` or `maxSurge` is set.
        NotSupported,
        /// `Paused`: `spec.paused` is true.
        Paused,
        /// `Paused`: `spec.stopped` is true.
        Stopped,
    }
}

closed_set! {
    /// Condition types of a MemberCluster.
    pub enum MemberConditionType {
        /// Whether the API server answers the liveness probe.
        Ready,
        /// Whether the controller's view of the cluster is current.
        Synced,
        /// Whether no replica is left in a cluster that is drained; absent while it is not drained.
        Drained,
    }
}

closed_set! {
    /// Reasons of the conditions of a MemberCluster.
    pub enum MemberReason {
        /// `Ready`: the API server answers the liveness probe.
        Healthy,
        /// `Ready`: the cluster has not been probed yet.
        NotProbed,
        /// `Ready`: liveness probes fail, but fewer in a row than the failure threshold.
        ProbeFailing,
        /// `Ready`: the API server can't be reached.
        Unreachable,
        /// `Ready`: the API server rejects the credentials.
        Unauthorized,
        /// `Ready`: no member cluster answers, so that the controller is disconnected rather than the cluster lost.
        ControllerDisconnected,
        /// `Ready`: the API server answers again, and no node has reported since.
        NodesUnconfirmed,
        /// `Ready`: the API server answers, and none of the cluster's nodes is ready.
        NoReadyNodes,
        /// `Ready`: the API server answers again, but not yet for long enough to remove replicas elsewhere.
        Stabilizing,
        /// `Ready`: the cluster has neither a kubeconfig file nor a Secret any more.
        Removed,
        /// `Ready`: the Secret that `spec.secretRef` names does not exist.
        SecretMissing,
        /// `Ready`: the kubeconfig can't be used.
        InvalidKubeconfig,
        /// `Ready`: the cluster has both a kubeconfig file and a Secret.
        DuplicateSource,
        /// `Synced`: local workloads and pods are watched.
        Synced,
        /// `Synced`: local workloads and pods have not been listed yet.
        NotSynced,
        /// `Synced`: the watch is down, the view is from an earlier time.
        Stale,
        /// `Synced`: the responses of the cluster exceed a limit on bytes, pages or objects.
        Degraded,
        /// `Synced`: the controller does not watch the cluster any more.
        NotWatched,
        /// `Drained`: no replica is left in the cluster.
        Drained,
        /// `Drained`: replicas are left in the cluster.
        Draining,
        /// `Drained`: the state of the cluster is unknown.
        Unknown,
    }
}

closed_set! {
    /// Condition types of a Maintenance. The first three are always present.
    pub enum MaintenanceConditionType {
        /// Whether the spec is valid, and names members only.
        Accepted,
        /// Whether nodes match.
        NodesFound,
        /// Whether all of its clusters answer and accept the marks.
        MembersReachable,
        /// Nodes have the mark of another Maintenance; present only while it is true.
        NodesHeld,
        /// Pods are left in clusters where nobody moves them; present only while it is true.
        PodsNotAsked,
    }
}

closed_set! {
    /// Reasons of the conditions of a Maintenance.
    pub enum MaintenanceReason {
        /// `Accepted`: the spec is valid.
        Valid,
        /// `Accepted`: the spec is invalid.
        InvalidSpec,
        /// `Accepted`: `spec.clusters` names a cluster that is no member.
        UnknownCluster,
        /// `NodesFound`: nodes match.
        NodesMatch,
        /// `NodesFound`: no node matches.
        NoNodes,
        /// `NodesFound`: no node matches in the clusters that answer. `MembersReachable`: clusters do not answer.
        MembersUnreachable,
        /// `NodesFound`, `MembersReachable`: the nodes are not looked at: the spec is not accepted, or the work is over.
        NotObserved,
        /// `MembersReachable`: all clusters answer.
        AllReachable,
        /// `MembersReachable`: clusters reject the marks.
        MarksRejected,
        /// `NodesHeld`: nodes have the mark of another Maintenance.
        MarkedByAnother,
        /// `PodsNotAsked`: clusters have no MigrationRequests, as no controller of LocalReplicaSets is there.
        NoMigrationRequests,
    }
}

closed_set! {
    /// Condition types of an AvailabilitySet. The first four are always present.
    pub enum AvailabilityConditionType {
        /// Whether the spec is valid.
        Accepted,
        /// Whether the set can be available with this budget and so many pods (A1).
        Satisfiable,
        /// Whether the set is available (A1).
        Available,
        /// Whether all members answer.
        MembersReachable,
        /// Pods can be evicted beyond the budget, or not at all; present only while that is so.
        EvictionsNotLimited,
    }
}

closed_set! {
    /// Reasons of the conditions of an AvailabilitySet.
    pub enum AvailabilityReason {
        /// `Accepted`: the spec is valid.
        Valid,
        /// `Accepted`, `Satisfiable`, `Available`: the spec is invalid.
        InvalidSpec,
        /// `Satisfiable`: the set can be available.
        CanBeAvailable,
        /// `Satisfiable`: fewer than 3 pods are enabled.
        TooFewPods,
        /// `Satisfiable`: the set has 20 pods or more, and its budget is below 5 % of them.
        BudgetTooSmall,
        /// `Available`: at most as many pods as the budget says are unreachable.
        WithinBudget,
        /// `Available`: more pods are unreachable.
        BudgetExceeded,
        /// `Available`: the set can't be available, see `Satisfiable`.
        NotSatisfiable,
        /// `Satisfiable`, `Available`: members have not been seen yet, and no pod is known.
        NotObserved,
        /// `MembersReachable`: all members answer.
        AllReachable,
        /// `MembersReachable`: members do not answer.
        MembersUnreachable,
        /// `MembersReachable`: members reject requests, or their answers can't be read.
        RequestsRejected,
        /// `EvictionsNotLimited`: PodDisruptionBudgets of others match the pods.
        OtherDisruptionBudget,
        /// `EvictionsNotLimited`: other AvailabilitySets select some of the pods, and have a PodDisruptionBudget that can't hold for all.
        OverlappingSets,
        /// `EvictionsNotLimited`: a member has pods of LocalReplicaSets and others, which get no PodDisruptionBudget.
        MixedControllers,
    }
}

closed_set! {
    /// Condition types of an EndpointSet. The first two are always present.
    pub enum EndpointConditionType {
        /// Whether the spec is valid.
        Accepted,
        /// Whether new requests may be sent to some endpoint, and each port exists.
        Ready,
        /// Changes in member clusters may be missing; present only while it is true.
        MembersStale,
        /// Answers leave out endpoints in clusters that are lost; present only while it is true.
        EndpointsOmitted,
    }
}

closed_set! {
    /// Reasons of the conditions of an EndpointSet.
    pub enum EndpointReason {
        /// `Accepted`: the spec is valid.
        Valid,
        /// `Accepted`, `Ready`: the spec is invalid.
        InvalidSpec,
        /// `Ready`: new requests may be sent to some endpoint.
        EndpointsReady,
        /// `Ready`: the set that `spec.source` names does not exist.
        SourceNotFound,
        /// `Ready`: the source has no pods.
        NoPods,
        /// `Ready`: no Service has a load balancer with an address.
        LoadBalancerNotFound,
        /// `Ready`: no pod has a container port of this name, or no load balancer such a port.
        PortNotFound,
        /// `Ready`: there are pods, and new requests may be sent to none of them.
        NoReadyEndpoints,
        /// `Ready`: there is no endpoint, but not all members are known.
        WaitingForMembers,
        /// `MembersStale`: the watches of members are down.
        WatchDown,
        /// `EndpointsOmitted`: replicas run in other clusters in place of those there.
        ClusterLost,
    }
}

closed_set! {
    /// The status of a condition.
    pub enum ConditionStatus {
        /// The condition holds.
        True,
        /// The condition does not hold.
        False,
        /// It is not known whether the condition holds.
        Unknown,
    }
}

impl From<bool> for ConditionStatus {
    fn from(holds: bool) -> Self {
        if holds { Self::True } else { Self::False }
    }
}

/// The condition of `type_` in `conditions`.
pub fn find<T: Display>(conditions: &[Condition], type_: T) -> Option<&Condition> {
    let type_ = type_.to_string();
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// Whether the condition of `type_` is true.
pub fn is_true<T: Display>(conditions: &[Condition], type_: T) -> bool {
    find(conditions, type_)
        .is_some_and(|condition| condition.status == ConditionStatus::True.as_str())
}

/// What a decision says about one condition: a condition without its times and generation.
#[derive(Clone, Debug)]
pub struct NewCondition<T, R> {
    /// The condition type.
    pub type_: T,
    /// Whether the condition holds.
    pub status: ConditionStatus,
    /// Why, for machines.
    pub reason: R,
    /// Why, for people.
    pub message: String,
}

impl<T: Display, R: Display> NewCondition<T, R> {
    /// A condition that holds or not, and why.
    pub fn new(
        type_: T,
        status: impl Into<ConditionStatus>,
        reason: R,
        message: impl Into<String>,
    ) -> Self {
        Self {
            type_,
            status: status.into(),
            reason,
            message: message.into(),
        }
    }

    /// The condition at `now`, decided for the object's `generation`. Keeps the transition time of `previous` unless the
    /// status changes.
    pub fn into_condition(
        self,
        previous: &[Condition],
        generation: Option<i64>,
        now: Timestamp,
    ) -> Condition {
        let type_ = self.type_.to_string();
        let status = self.status.as_str();
        let same = find(previous, &type_).filter(|condition| condition.status == status);
        Condition {
            last_transition_time: same.map_or(Time(now), |condition| {
                condition.last_transition_time.clone()
            }),
            type_,
            status: status.to_owned(),
            reason: self.reason.to_string(),
            message: self.message,
            observed_generation: generation,
        }
    }
}
