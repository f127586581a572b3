//! Labels that fedrs sets on objects in the member clusters (F40) and on the host.

/// On a local ReplicaSet and its pod template: the name of the federated object it belongs to. The controller watches local
/// workloads and pods by this label together with [`FEDERATION`].
pub const REPLICA_SET: &str = "fedrs.dev/replica-set";
/// On a local ReplicaSet and its pod template: the federation that owns it, so that two federations can share a member.
pub const FEDERATION: &str = "fedrs.dev/federation";
/// On a local ReplicaSet: the name of its member cluster in the federation.
pub const MEMBER_CLUSTER: &str = "fedrs.dev/member-cluster";
/// On a MemberCluster and its Secret: the uid of the cluster's kube-system namespace, which identifies the cluster.
pub const CLUSTER_ID: &str = "fedrs.dev/cluster-id";
/// On a ControllerRevision of the host: the name of the FederatedDeployment whose template it has (L2).
pub const FEDERATED_DEPLOYMENT: &str = "fedrs.dev/federated-deployment";

/// On a PodDisruptionBudget in a member: the name of the AvailabilitySet whose budget it lends (A1).
pub const AVAILABILITY_SET: &str = "fedrs.dev/availability-set";
/// On a pod, `"false"`: no AvailabilitySet counts it (A1).
pub const ENABLED: &str = "fedrs.dev/enabled";

/// On a ControllerRevision: the name of the LocalReplicaSet whose template it has (L2).
pub const LOCAL_REPLICA_SET: &str = "fedrs.dev/local-replica-set";
/// On pods of a LocalReplicaSet: the hash of the template that they have. Kubernetes' own label for that.
pub const REVISION_HASH: &str = "controller-revision-hash";
/// On pods of a LocalReplicaSet: the account whose quota they use (L1).
pub const ACCOUNT: &str = "fedrs.dev/account";
/// On nodes: the segment that they belong to (L1).
pub const NODE_SEGMENT: &str = "fedrs.dev/node-segment";
/// On pods of a LocalReplicaSet, followed by `-` and a hash of the constraint's key: the pod's slot. No two pods of one slot
/// run on nodes with one value of the key (L1).
pub const SLOT: &str = "fedrs.dev/slot";
