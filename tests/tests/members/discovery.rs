//! The account of discovery in a member: the controller renews its token, which discovery can't.

use base64::{Engine, engine::general_purpose::STANDARD};
use discovery::rbac::joined_manifests;
use fedrs_api::names;
use fedrs_tests::{SECRETS_PATH, SimFederation, kubeconfig, minutes};
use serde_json::{Value, json};

use super::joined;

const SECRET: &str = "discovery-a";

/// What `fedrs join --with-discovery` creates for the member `a`, whose token expires after `seconds`.
async fn add_discovery(federation: &SimFederation, seconds: i64) {
    let (namespace, account) = (names::SYSTEM_NAMESPACE, names::DISCOVERY);
    for manifest in joined_manifests(namespace, account, names::CONTROLLER) {
        let object = manifest.to_value();
        let rbac = "/apis/rbac.authorization.k8s.io/v1";
        let path = match object["kind"].as_str().unwrap() {
            "Namespace" => continue,
            "ServiceAccount" => format!("/api/v1/namespaces/{namespace}/serviceaccounts"),
            "ClusterRole" => format!("{rbac}/clusterroles"),
            "ClusterRoleBinding" => format!("{rbac}/clusterrolebindings"),
            "Role" => format!("{rbac}/namespaces/{namespace}/roles"),
            "RoleBinding" => format!("{rbac}/namespaces/{namespace}/rolebindings"),
            kind => panic!("{kind}"),
        };
        federation
            .on_member("a", "POST", &path, &object)
            .await
            .unwrap();
    }
    let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token");
    let request = json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
        "spec": { "expirationSeconds": seconds },
    });
    let response = federation.on_member("a", "POST", &path, &request).await;
    let token = response.unwrap()["status"]["token"].clone();
    let text = kubeconfig("a", token.as_str().unwrap());
    let secret = json!({
        "metadata": { "name": SECRET, "annotations": { "fedrs.dev/renew-token": "true" } },
        "type": names::KUBECONFIG_TYPE, "data": { "kubeconfig": STANDARD.encode(text) },
    });
    federation
        .on_host("POST", SECRETS_PATH, &secret)
        .await
        .unwrap();
    let reference = json!({ "spec": { "discoverySecretRef": { "name": SECRET } } });
    federation.patch_member("a", &reference).await;
}

/// The kubeconfig in the Secret.
async fn stored(federation: &SimFederation) -> String {
    let path = format!("{SECRETS_PATH}/{SECRET}");
    let secret = federation.on_host("GET", &path, &Value::Null).await;
    secret.unwrap()["data"]["kubeconfig"].to_string()
}

#[tokio::test(start_paused = true)]
async fn the_token_of_discovery_is_renewed_also_after_that_of_the_controller_changed() {
    // The controller renews both after ten minutes.
    let federation = joined(12, 1200).await;
    add_discovery(&federation, 1200).await;
    let first = stored(&federation).await;
    minutes(9).await;
    assert_eq!(stored(&federation).await, first);
    minutes(3).await;
    let second = stored(&federation).await;
    assert_ne!(second, first);
    // The controller has another client by now.
    minutes(12).await;
    assert_ne!(stored(&federation).await, second);
    let reasons = federation.event_reasons("a").await;
    assert_eq!(reasons, ["TokenRenewed"; 4], "two of each");
}

#[tokio::test(start_paused = true)]
async fn a_token_of_discovery_that_expired_without_a_controller_is_renewed() {
    let mut federation = joined(12, 24 * 3600).await;
    add_discovery(&federation, 1200).await;
    let first = stored(&federation).await;
    federation.stop_controller().await;
    minutes(60).await;
    assert_eq!(stored(&federation).await, first);
    federation.start_controller().await;
    minutes(2).await;
    assert_ne!(stored(&federation).await, first);
    let path = format!("{SECRETS_PATH}/{SECRET}");
    federation
        .on_host("DELETE", &path, &Value::Null)
        .await
        .unwrap();
    minutes(30).await;
    let reasons = federation.event_reasons("a").await;
    assert_eq!(
        reasons,
        ["TokenRenewed"],
        "one that is deleted is left alone"
    );
}
