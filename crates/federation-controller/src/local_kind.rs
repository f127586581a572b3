//! The kinds of federated sets on the host.

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
