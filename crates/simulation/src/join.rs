//! Members whose kubeconfig is in a Secret on the host, as `fedrs join` creates it.

use std::fmt::Write as _;

use base64::{Engine, engine::general_purpose::STANDARD};
use federation_controller::rbac::ControllerAccount;
use fedrs_api::{ClusterType, annotations, names};
use kube::{
    Api, Client,
    api::PostParams,
    core::{ApiResource, DynamicObject, GroupVersionKind},
};
use serde_json::{Value, json};

use crate::{SimFederation, connect::kubeconfig, sim_federation::client};

/// The collection of MemberClusters.
pub const MEMBERS_PATH: &str = "/apis/fedrs.dev/v1alpha1/memberclusters";
/// The collection of Secrets with kubeconfigs.
pub const SECRETS_PATH: &str = "/api/v1/namespaces/fedrs-system/secrets";

impl SimFederation {
    /// Creates the controller's ServiceAccount in the member with its RBAC rules, a Secret with a kubeconfig whose token
    /// expires after `seconds`, and a MemberCluster that references it. Returns the token.
    pub async fn join(&mut self, name: &str, seconds: i64) -> String {
        self.join_with(name, seconds, None).await
    }

    /// As [`join`](Self::join) with rights in these namespaces only, if there are any, which the MemberCluster lists.
    pub async fn join_with(
        &mut self,
        name: &str,
        seconds: i64,
        namespaces: Option<&[&str]>,
    ) -> String {
        let namespaces: Option<Vec<String>> =
            namespaces.map(|names| names.iter().map(|&name| name.to_owned()).collect());
        let account = ControllerAccount {
            namespaces: namespaces.clone(),
            ..ControllerAccount::usual(ClusterType::Member)
        };
        self.joined.insert(name.to_owned());
        let namespace = json!({ "metadata": { "name": names::SYSTEM_NAMESPACE } });
        // The first member creates it.
        let _ = self.on_host("POST", "/api/v1/namespaces", &namespace).await;
        let member = client(self.member(name));
        for manifest in account.manifests() {
            let object = manifest.to_value();
            // A cluster has the namespace default from the beginning.
            if object["kind"] != "Namespace" || object["metadata"]["name"] != "default" {
                create(&member, object).await;
            }
        }
        let token = self.token(name, seconds).await;
        self.apply_secret(name, &kubeconfig(name, &token)).await;
        let mut object = json!({
            "apiVersion": "fedrs.dev/v1alpha1",
            "kind": "MemberCluster",
            "metadata": { "name": name },
            "spec": { "secretRef": { "name": secret_name(name) } },
        });
        if let Some(names) = namespaces {
            object["spec"]["namespaces"] = json!({ "names": names });
        }
        self.on_host("POST", MEMBERS_PATH, &object).await.unwrap();
        token
    }

    /// A token of the controller's account in a member that expires after `seconds`.
    pub async fn token(&self, member: &str, seconds: i64) -> String {
        let path = format!("{}/token", account_path());
        let wanted = json!({
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": { "expirationSeconds": seconds },
        });
        let answer = self.on_member(member, "POST", &path, &wanted).await;
        let token = answer.unwrap()["status"]["token"].clone();
        token.as_str().unwrap().to_owned()
    }

    /// Revokes all tokens of the controller's account in a member: replaces the account by another one of the same
    /// name.
    pub async fn revoke_tokens(&self, member: &str) {
        let path = account_path();
        let account = self.on_member(member, "GET", &path, &Value::Null).await;
        let mut account = account.unwrap();
        let removed = self.on_member(member, "DELETE", &path, &Value::Null).await;
        removed.unwrap();
        let metadata = &account["metadata"];
        account["metadata"] =
            json!({ "name": metadata["name"], "namespace": metadata["namespace"] });
        create(&client(self.member(member)), account).await;
    }

    /// Creates or changes the Secret of the member `name`.
    pub async fn apply_secret(&self, name: &str, kubeconfig: &str) {
        let name = secret_name(name);
        let data = json!({ "kubeconfig": STANDARD.encode(kubeconfig) });
        let secret = json!({
            "metadata": { "name": name, "annotations": { annotations::RENEW_TOKEN: "true" } },
            "type": names::KUBECONFIG_TYPE,
            "data": data,
        });
        let created = self.on_host("POST", SECRETS_PATH, &secret).await;
        if created.is_err() {
            let path = format!("{SECRETS_PATH}/{name}");
            let patch = json!({ "data": data });
            self.on_host("PATCH", &path, &patch).await.unwrap();
        }
    }

    /// The kubeconfig in the Secret of the member `name`.
    pub async fn kubeconfig_of(&self, name: &str) -> String {
        let path = format!("{SECRETS_PATH}/{}", secret_name(name));
        let secret = self.on_host("GET", &path, &Value::Null).await.unwrap();
        let encoded = secret["data"]["kubeconfig"].as_str().unwrap();
        String::from_utf8(STANDARD.decode(encoded).unwrap()).unwrap()
    }

    /// Changes the MemberCluster `name` by a merge patch.
    pub async fn patch_member(&self, name: &str, patch: &Value) {
        let path = format!("{MEMBERS_PATH}/{name}");
        self.on_host("PATCH", &path, patch).await.unwrap();
    }

    /// The MemberCluster; null if it does not exist.
    pub async fn member_cluster(&self, name: &str) -> Value {
        let path = format!("{MEMBERS_PATH}/{name}");
        let found = self.on_host("GET", &path, &Value::Null).await;
        found.unwrap_or(Value::Null)
    }

    /// A condition of the MemberCluster `name`: `STATUS REASON: MESSAGE`; empty if it is absent.
    pub async fn member_condition(&self, name: &str, type_: &str) -> String {
        let object = self.member_cluster(name).await;
        let conditions = object["status"]["conditions"].as_array();
        let condition = conditions
            .into_iter()
            .flatten()
            .find(|condition| condition["type"] == type_);
        let mut words = String::new();
        if let Some(condition) = condition {
            let text = |field: &str| condition[field].as_str().unwrap_or_default();
            let _ = write!(
                words,
                "{} {}: {}",
                text("status"),
                text("reason"),
                text("message")
            );
        }
        words
    }
}

/// The controller's account in a member.
fn account_path() -> String {
    let ControllerAccount {
        namespace, name, ..
    } = ControllerAccount::usual(ClusterType::Member);
    format!("/api/v1/namespaces/{namespace}/serviceaccounts/{name}")
}

/// Creates an object of any kind.
pub(crate) async fn create(client: &Client, object: Value) {
    let object: DynamicObject = serde_json::from_value(object).unwrap();
    let kind = GroupVersionKind::try_from(object.types.as_ref().unwrap()).unwrap();
    let resource = ApiResource::from_gvk(&kind);
    let api = match &object.metadata.namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let created: kube::Result<DynamicObject> = api.create(&PostParams::default(), &object).await;
    created.unwrap();
}

/// The Secret of a member.
pub(crate) fn secret_name(member: &str) -> String {
    format!("member-{member}")
}
