//! The kinds of federated sets and of their local workloads, which are all in apps/v1.

use fedrs_api::SetKind;

/// The path of all sets of this kind in `namespace`, or in all namespaces.
pub(crate) fn set_collection(set: SetKind, namespace: Option<&str>) -> String {
    let resource = match set {
        SetKind::FederatedReplicaSet => "federatedreplicasets",
        SetKind::FederatedDeployment => "federateddeployments",
    };
    let namespace = namespace.map(|name| format!("namespaces/{name}/"));
    let namespace = namespace.unwrap_or_default();
    format!("/apis/fedrs.dev/v1alpha1/{namespace}{resource}")
}

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
