//! Names that others see: labels, annotations and finalizers that fedrs puts on objects, on the host and in members (F40).

/// The API version of fedrs's own kinds.
pub const API_VERSION: &str = "fedrs.dev/v1alpha1";
/// On a local set and its pod template: the name of the FederatedReplicaSet it belongs to.
/// Local sets and pods are watched by this label together with [`FEDERATION`].
pub const SET: &str = "fedrs.dev/replica-set";
/// On a local set and its pod template: the federation that owns it (F40), so that two can share a member.
pub const FEDERATION: &str = "fedrs.dev/federation";
/// On a local set: the member cluster's name in the federation (F40, the document's cluster id).
pub const MEMBER: &str = "fedrs.dev/member-cluster";
/// Annotation on a local set's pod template, and so on its pods: which template they were made from, as 8 hexadecimal digits.
pub const TEMPLATE: &str = "fedrs.dev/template-hash";
/// Finalizer on a FederatedReplicaSet: its local sets are released or deleted before it goes (F5).
pub const FINALIZER: &str = "fedrs.dev/members";
/// Finalizer on the object that records a foreground deletion (F5).
pub const CASCADE_FINALIZER: &str = "fedrs.dev/cascade";
/// The document's annotation with preferences as JSON (F2).
pub const PREFERENCES_ANNOTATION: &str = "federation.kubernetes.io/replica-set-preferences";
/// The field manager of every write of the controller.
pub const FIELD_MANAGER: &str = "fedrs";
/// The name of the controller's Lease on the host, of its account and of that one's roles. What there is once for each
/// federation, or for each host in a member, has `-` and that one's name behind it.
pub const CONTROLLER: &str = "fedrs-controller";
/// The namespace of the controller on the host, and of its ServiceAccount in members, unless told otherwise.
pub const SYSTEM_NAMESPACE: &str = "fedrs-system";
/// The type of a member's Secret. The controller asks for Secrets of this type alone, and never sees any other.
pub const KUBECONFIG_TYPE: &str = "fedrs.dev/kubeconfig";
/// The key of a member's Secret under which its kubeconfig is.
pub const KUBECONFIG_KEY: &str = "kubeconfig";
/// On a MemberCluster and its Secret: the uid of the cluster's kube-system namespace, which tells it from all others.
pub const CLUSTER_ID: &str = "fedrs.dev/cluster-id";
/// On a member's Secret, `"true"`: the kubeconfig's token is one of a ServiceAccount that may renew it; the controller does
/// so before it expires.
pub const RENEW_TOKEN: &str = "fedrs.dev/renew-token";
