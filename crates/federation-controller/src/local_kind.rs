//! The kinds of local workloads, which are all in apps/v1.

use fedrs_api::SetKind;

/// The kind of the workload that a set has in each member.
pub(crate) fn local_kind(set: SetKind) -> &'static str {
    match set {
        SetKind::FederatedReplicaSet => "ReplicaSet",
        SetKind::FederatedDeployment => "Deployment",
    }
}

/// The name of this kind in paths.
pub(crate) fn local_resource(set: SetKind) -> &'static str {
    match set {
        SetKind::FederatedReplicaSet => "replicasets",
        SetKind::FederatedDeployment => "deployments",
    }
}
