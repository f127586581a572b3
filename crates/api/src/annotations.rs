//! Annotations that users set for fedrs, and that fedrs sets on objects.

/// On a FederatedReplicaSet: the preferences as JSON, as in Kubernetes Federation v1 (F2).
pub const PREFERENCES: &str = "federation.kubernetes.io/replica-set-preferences";
/// On the pod template of a local ReplicaSet, and so on its pods: a hash of the template, as 8 hexadecimal digits.
pub const TEMPLATE_HASH: &str = "fedrs.dev/template-hash";
/// On the Secret of a member, `"true"`: the kubeconfig holds a ServiceAccount token that may renew itself; the controller
/// renews it before it expires.
pub const RENEW_TOKEN: &str = "fedrs.dev/renew-token";
/// On a FederatedDeployment, and copied to its ControllerRevision: why its template changed, for people. `kubectl` shows it of
/// Deployments.
pub const CHANGE_CAUSE: &str = "kubernetes.io/change-cause";
/// On a pod of a LocalReplicaSet, as an annotation or a label, and on a node as a label: the pods have to leave their node (L18).
/// `Involuntary` if they can't stay there; `false` for no.
pub const EVICT: &str = "fedrs.dev/evict";
/// On a node: which Maintenance has marked it, as the JSON of a [`MaintenanceMark`](crate::MaintenanceMark) (M9, M15).
pub const MAINTENANCE: &str = "fedrs.dev/maintenance";
/// On a LocalReplicaSet, or the PodDisruptionBudget of an AvailabilitySet, followed by the name of an AvailabilitySet: how many of its pods
/// that one lets be unavailable, as the JSON of a [`DisruptionLimit`](crate::DisruptionLimit) (A1).
pub const AVAILABILITY_PREFIX: &str = "availability.fedrs.dev/";
/// On a pod template: when its pods are to be replaced, though nothing else in it changes. Set by `kubectl rollout restart`.
pub const RESTARTED_AT: &str = "kubectl.kubernetes.io/restartedAt";
/// On a LocalReplicaSet that `fedrs lrs rolling-update` brings up in place of another one: which, and to how many replicas.
pub const ROLLING_UPDATE: &str = "fedrs.dev/rolling-update";
/// On a pod of a local ReplicaSet or Deployment: since when clients are to leave it, because it is removed next
/// (`spec.drainSeconds`). EndpointSets leave it out.
pub const DRAINING: &str = "fedrs.dev/draining";
/// On a draining pod: the `pod-deletion-cost` that it had before.
pub const DELETION_COST_BEFORE: &str = "fedrs.dev/pod-deletion-cost";
/// On a pod: a ReplicaSet removes pods of a lower cost first.
pub const POD_DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// On the PodDisruptionBudget of a LocalReplicaSet: the replicas that the set had when it was written.
pub const REPLICAS: &str = "fedrs.dev/replicas";

/// On a pod: when it was last updated in place, and which of its containers are restarted by that (L12).
pub const IN_PLACE_UPDATE: &str = "fedrs.dev/in-place-update";
