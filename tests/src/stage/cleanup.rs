//! After a scenario: shared clusters become as they were.

use control_plane::request;
use fedrs_api::marks::KUBECONFIG_TYPE;
use futures::future::join_all;
use kube::Client;
use serde_json::{Value, json};

use super::{
    Clusters, Stage,
    commands::{MEMBERS, secrets},
    is_missing,
    rivals::lease_path,
};

/// What runs pods; before the pods themselves, so that none are made anew.
const WORKLOADS: [&str; 3] = [
    "/apis/apps/v1/namespaces/NAMESPACE/deployments",
    "/apis/apps/v1/namespaces/NAMESPACE/replicasets",
    "/api/v1/namespaces/NAMESPACE/pods",
];

impl Stage {
    /// Undoes all that the scenario did to clusters that outlive it, also where it failed. Namespaces may still be
    /// there for a while; what took room in them is gone.
    pub async fn tear_down(mut self) {
        self.kill_controller().await;
        if let Clusters::Real(it) = &mut self.clusters {
            it.mend().await;
        } else {
            return;
        }
        self.remove_lease().await;
        self.remove_sets().await;
        self.remove_members().await;
        self.wait_until("no pod of the scenario is left", 120, async |it| {
            let members = it.members.values();
            let left = join_all(members.map(|member| it.empty(member))).await;
            left.iter().sum::<usize>() == 0
        })
        .await;
        self.remove_namespaces().await;
    }

    /// Nobody has to wait until the lease of a killed controller runs out.
    async fn remove_lease(&self) {
        let removed = self.on_host("DELETE", &lease_path(), &Value::Null).await;
        assert!(removed.is_ok() || is_missing(&removed), "{removed:?}");
    }

    /// Removes the FederatedReplicaSets without waiting for a controller.
    async fn remove_sets(&self) {
        let list = self.on_host("GET", &self.frs_path(""), &Value::Null).await;
        let list = list.expect("FederatedReplicaSets can be listed");
        for frs in list["items"].as_array().into_iter().flatten() {
            let path = self.frs_path(frs["metadata"]["name"].as_str().unwrap_or_default());
            let free = json!({ "metadata": { "finalizers": null } });
            let background = json!({ "propagationPolicy": "Background" });
            for (method, body) in [("PATCH", free), ("DELETE", background)] {
                let answer = self.on_host(method, &path, &body).await;
                assert!(answer.is_ok() || is_missing(&answer), "{answer:?}");
            }
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

    /// Removes what takes room in a member, and answers how many pods there were. Pods go without their grace: whoever
    /// removes a namespace waits for half of the longest, and then looks again.
    async fn empty(&self, member: &Client) -> usize {
        let at_once = json!({ "gracePeriodSeconds": 0, "propagationPolicy": "Background" });
        let mut pods = 0;
        for path in WORKLOADS {
            let path = path.replace("NAMESPACE", &self.namespace);
            let removed = request(member, "DELETE", &path, &at_once).await;
            let removed = removed.expect("workloads can be deleted");
            let removed = removed["items"].as_array();
            pods = removed.expect("what was deleted is listed").len();
        }
        pods
    }

    /// Begins to remove the scenario's namespaces.
    async fn remove_namespaces(&self) {
        let path = format!("/api/v1/namespaces/{}", self.namespace);
        for client in self.all_clients() {
            let removed = request(&client, "DELETE", &path, &Value::Null).await;
            assert!(removed.is_ok() || is_missing(&removed), "{removed:?}");
        }
    }
}
