//! After a scenario: shared clusters become as they were.

use control_plane::request;
use serde_json::{Value, json};

use fedrs_api::marks::KUBECONFIG_TYPE;

use super::{
    Clusters, Stage,
    commands::{MEMBERS, secrets},
    is_missing,
    rivals::LEASE,
};

impl Stage {
    /// Undoes all that the scenario did to clusters that outlive it, also where it failed.
    pub async fn tear_down(mut self) {
        self.kill_controller().await;
        if let Clusters::Embedded(_) = self.clusters {
            return;
        }
        for member in self.member_names() {
            let is_local =
                matches!(&self.clusters, Clusters::Real(it) if it.shared.local.is_some());
            if is_local {
                self.cut_off(&member, false);
            }
        }
        self.remove_lease().await;
        self.remove_sets().await;
        self.remove_members().await;
        self.remove_namespaces().await;
    }

    /// Nobody has to wait until the lease of a killed controller runs out.
    async fn remove_lease(&self) {
        let removed = self.on_host("DELETE", LEASE, &Value::Null).await;
        assert!(removed.is_ok() || is_missing(&removed), "{removed:?}");
    }

    /// Removes the FederatedReplicaSets without waiting for a controller.
    async fn remove_sets(&self) {
        let list = self.on_host("GET", &self.frs_path(""), &Value::Null).await;
        let list = list.unwrap_or(Value::Null);
        for frs in list["items"].as_array().into_iter().flatten() {
            let path = self.frs_path(frs["metadata"]["name"].as_str().unwrap_or_default());
            let free = json!({ "metadata": { "finalizers": null } });
            let background = json!({ "propagationPolicy": "Background" });
            let _ = self.on_host("DELETE", &path, &background).await;
            let _ = self.on_host("PATCH", &path, &free).await;
        }
    }

    /// Removes the MemberClusters, and the Secrets of those that have one.
    async fn remove_members(&self) {
        let removed = self.on_host("DELETE", MEMBERS, &Value::Null).await;
        removed.expect("MemberClusters can be deleted");
        let kubeconfigs = format!("{}?fieldSelector=type%3D{}", secrets(), KUBECONFIG_TYPE);
        let removed = self.on_host("DELETE", &kubeconfigs, &Value::Null).await;
        removed.expect("Secrets can be deleted");
    }

    /// Removes the namespaces, and waits until the members' are gone: their pods take room.
    async fn remove_namespaces(&self) {
        let path = format!("/api/v1/namespaces/{}", self.namespace);
        for client in self.all_clients() {
            let _ = request(&client, "DELETE", &path, &Value::Null).await;
        }
        self.wait_until("the scenario's namespaces are gone", 120, async |it| {
            for member in it.member_names() {
                if !is_missing(&it.on_member(&member, "GET", &path, &Value::Null).await) {
                    return false;
                }
            }
            true
        })
        .await;
    }
}
