//! The accounts of the controllers, and of discovery, on local clusters: the ServiceAccounts of the manifests, with exactly their permissions.
//!
//! ```text
//! deploy/kustomize, config/.../*.yaml --kubectl apply--> ServiceAccounts --TokenRequest--> kubeconfigs of the controllers
//! ```

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use control_plane::{ControlPlane, Environment, Program, Programs, request};
use fedrs_api::names::{CONTROLLER, SYSTEM_NAMESPACE};
use kube::Client;
use serde_json::{Value, json};

use super::client::client;

/// The lifetime of a token in seconds: longer than any run.
const TOKEN_SECONDS: u64 = 6 * 3600;

/// What is applied on the host, after the deployment of the controller.
const HOST_MANIFESTS: [&str; 2] = [
    "config/discovery/rbac-writer.yaml",
    "config/discovery/rbac-authorizer.yaml",
];

/// What is applied in each member.
const MEMBER_MANIFESTS: [&str; 5] = [
    "config/rbac/member.yaml",
    "config/replica-set-controller/crd/fedrs.dev_localreplicasets.yaml",
    "config/replica-set-controller/crd/fedrs.dev_migrationpolicies.yaml",
    "config/replica-set-controller/crd/fedrs.dev_migrationrequests.yaml",
    "config/replica-set-controller/rbac.yaml",
];

/// Creates the accounts: installs the deployment on the host (which has no nodes, so that no pod of it runs) with the account of
/// discovery, and the rules of both controllers in each member, with the CRD of LocalReplicaSets.
pub(super) fn make(control_planes: &Environment, programs: &Programs) -> Result<(), String> {
    let host = repository().join("deploy/kustomize/overlays/one");
    apply(programs, &control_planes.host, "--kustomize", &host)?;
    for manifest in HOST_MANIFESTS {
        let manifest = repository().join(manifest);
        apply(programs, &control_planes.host, "--filename", &manifest)?;
    }
    for member in &control_planes.members {
        for manifest in MEMBER_MANIFESTS {
            let manifest = repository().join(manifest);
            apply(programs, member, "--filename", &manifest)?;
        }
    }
    Ok(())
}

/// A kubeconfig like `route`, with a new token of the `account` in the cluster that `direct` reaches.
pub(super) async fn kubeconfig(account: &str, direct: &str, route: &str) -> String {
    let spec = json!({ "expirationSeconds": TOKEN_SECONDS });
    let token = token(&client(direct).await, (SYSTEM_NAMESPACE, account), &spec).await;
    with_user(route, &json!({ "token": token }))
}

/// A new token of the account in a namespace, by a TokenRequest with this spec.
pub(super) async fn token(
    cluster: &Client,
    (namespace, account): (&str, &str),
    spec: &Value,
) -> String {
    let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token");
    let wanted = json!({
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": spec,
    });
    let answer = request(cluster, "POST", &path, &wanted).await;
    let answer = answer.expect("the account can be given a token");
    let token = answer["status"]["token"].as_str();
    token.expect("the answer has it").to_owned()
}

/// The ID of a kubeconfig's token, as in audit logs.
pub(super) fn credential(kubeconfig: &str) -> String {
    let kubeconfig: Value = serde_json::from_str(kubeconfig).expect("ours are JSON");
    let token = kubeconfig["users"][0]["user"]["token"].as_str();
    let claims = token
        .and_then(|token| token.split('.').nth(1))
        .unwrap_or_default();
    let claims = URL_SAFE_NO_PAD
        .decode(claims)
        .expect("a token of an API server");
    let claims: Value = serde_json::from_slice(&claims).expect("a token of an API server");
    format!("JTI={}", claims["jti"].as_str().unwrap_or_default())
}

/// The kubeconfig with `user` as its only user.
pub(super) fn with_user(kubeconfig: &str, user: &Value) -> String {
    let mut kubeconfig: Value = serde_json::from_str(kubeconfig).expect("ours are JSON");
    kubeconfig["users"] = json!([{ "name": CONTROLLER, "user": user }]);
    for context in kubeconfig["contexts"].as_array_mut().into_iter().flatten() {
        context["context"]["user"] = CONTROLLER.into();
    }
    kubeconfig.to_string()
}

/// The root of the repository.
fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn apply(
    programs: &Programs,
    cluster: &ControlPlane,
    kind: &str,
    source: &Path,
) -> Result<(), String> {
    let output = Command::new(programs.path(Program::Kubectl))
        .env("KUBECONFIG", cluster.directory().join("admin.yaml"))
        .args(["apply", "--server-side", "--validate=strict", kind])
        .arg(source)
        .output()
        .map_err(|error| format!("kubectl: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    Err(format!(
        "{}: kubectl apply of {}: {errors}",
        cluster.name(),
        source.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kubeconfig_has_one_user() {
        let admin = json!({
            "clusters": [{ "name": "a", "cluster": { "server": "https://127.0.0.11:6443" } }],
            "users": [{ "name": "admin", "user": { "client-key-data": "secret" } }],
            "contexts": [{ "name": "a", "context": { "cluster": "a", "user": "admin" } }],
        });
        let read: Value =
            serde_json::from_str(&with_user(&admin.to_string(), &json!({ "token": "t" }))).unwrap();
        assert_eq!(
            read["users"],
            json!([{ "name": CONTROLLER, "user": { "token": "t" } }])
        );
        assert_eq!(read["contexts"][0]["context"]["user"], CONTROLLER);
        assert_eq!(read["clusters"], admin["clusters"]);
    }
}
