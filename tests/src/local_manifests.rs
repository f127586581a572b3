//! Installs what the controller of LocalReplicaSets needs in a cluster, as `kubectl apply` of its manifests does.

use control_plane::request;
use federation_controller::rbac::Manifest;
use kube::Client;
use local_controller::rbac;
use serde_json::{Value, json};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// Creates the CRDs and the objects that grant the controller its permissions, unless they exist.
pub(crate) async fn install(client: &Client) {
    let crds = fedrs_api::crd::local().into_iter().map(|crd| json!(crd));
    let manifests = rbac::manifests(None, None);
    let manifests = manifests.iter().map(Manifest::to_value);
    for object in crds.chain(manifests) {
        match request(client, "POST", &collection(&object), &object).await {
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            answer => _ = answer.expect("an administrator can install it"),
        }
    }
}

fn collection(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let namespace = text(&object["metadata"]["namespace"]);
    match text(&object["kind"]).as_str() {
        "CustomResourceDefinition" => {
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions".to_owned()
        }
        "Namespace" => "/api/v1/namespaces".to_owned(),
        "ServiceAccount" => format!("/api/v1/namespaces/{namespace}/serviceaccounts"),
        "ClusterRole" => format!("{RBAC}/clusterroles"),
        "ClusterRoleBinding" => format!("{RBAC}/clusterrolebindings"),
        "Role" => format!("{RBAC}/namespaces/{namespace}/roles"),
        "RoleBinding" => format!("{RBAC}/namespaces/{namespace}/rolebindings"),
        kind => panic!("no manifest has a {kind}"),
    }
}
