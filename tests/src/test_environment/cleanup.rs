//! Cleanup after a scenario: restores shared clusters.

use std::time::Duration;

use control_plane::request;
use fedrs_api::names::KUBECONFIG_TYPE;
use futures::future::join_all;
use kube::Client;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::{
    Clusters, POLL_INTERVAL, TestEnvironment,
    client::client,
    clusters::Shared,
    commands::{MEMBERS, secrets},
    run_prefix,
    spec::is_missing,
    standby::lease_path,
};

/// Workloads that create pods come before the pods themselves, so that no pod is recreated.
const WORKLOADS: [&str; 4] = [
    "/apis/fedrs.dev/v1alpha1/namespaces/NAMESPACE/localreplicasets",
    "/apis/apps/v1/namespaces/NAMESPACE/deployments",
    "/apis/apps/v1/namespaces/NAMESPACE/replicasets",
    "/api/v1/namespaces/NAMESPACE/pods",
];

impl TestEnvironment {
    /// Reverts everything that the scenario changed in shared clusters, also if it failed. Namespaces may still be
    /// terminating for a while; nothing in them uses capacity any more.
    pub async fn tear_down(mut self) {
        self.kill_controller().await;
        self.remove_local_controllers().await;
        if let Clusters::Real(real) = &mut self.clusters {
            real.revert_faults().await;
        } else {
            return;
        }
        self.remove_lease().await;
        self.remove_sets().await;
        self.remove_members().await;
        self.wait_until("no pod of the scenario is left", 120, async |env| {
            let members = env.members.values();
            let left = join_all(members.map(|member| env.empty(member))).await;
            left.iter().sum::<usize>() == 0
        })
        .await;
        self.remove_namespaces().await;
    }

    /// Deletes the Lease, so that nobody waits until the lease of a killed controller expires.
    async fn remove_lease(&self) {
        let removed = self.on_host("DELETE", &lease_path(), &Value::Null).await;
        assert!(removed.is_ok() || is_missing(&removed), "{removed:?}");
    }

    /// Removes the sets without waiting for a controller.
    async fn remove_sets(&self) {
        let list = self.frs_path("");
        let found = self.on_host("GET", &list, &Value::Null).await;
        let found = found.unwrap_or_else(|error| panic!("{list}: {error}"));
        for object in found["items"].as_array().into_iter().flatten() {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            let path = format!("{list}/{name}");
            let free = json!({ "metadata": { "finalizers": null } });
            let background = json!({ "propagationPolicy": "Background" });
            for (method, body) in [("PATCH", free), ("DELETE", background)] {
                let answer = self.on_host(method, &path, &body).await;
                assert!(answer.is_ok() || is_missing(&answer), "{answer:?}");
            }
        }
    }

    /// Deletes the MemberClusters, and the Secrets with their kubeconfigs.
    async fn remove_members(&self) {
        let removed = self.on_host("DELETE", MEMBERS, &Value::Null).await;
        removed.expect("MemberClusters can be deleted");
        let kubeconfigs = format!("{}?fieldSelector=type%3D{}", secrets(), KUBECONFIG_TYPE);
        let removed = self.on_host("DELETE", &kubeconfigs, &Value::Null).await;
        removed.expect("Secrets can be deleted");
    }

    /// Deletes the workloads of the scenario in a member. Returns how many pods there were. Pods are deleted without a grace
    /// period: a namespace's deletion waits for half of the longest one before it looks again.
    async fn empty(&self, member: &Client) -> usize {
        let at_once = json!({ "gracePeriodSeconds": 0, "propagationPolicy": "Background" });
        let mut pods = 0;
        for path in WORKLOADS {
            let path = path.replace("NAMESPACE", &self.namespace);
            let removed = request(member, "DELETE", &path, &at_once).await;
            if is_missing(&removed) {
                // A cluster of somebody else without LocalReplicaSets.
                continue;
            }
            let removed = removed.expect("workloads can be deleted");
            let removed = removed["items"].as_array();
            let removed = removed.expect("what was deleted is listed");
            pods = removed.len();
            // The controller that would remove them is gone.
            let held = removed
                .iter()
                .filter(|pod| !pod["metadata"]["finalizers"].is_null());
            for pod in held {
                let name = pod["metadata"]["name"].as_str().unwrap_or_default();
                let free = json!({ "metadata": { "finalizers": null } });
                let freed = request(member, "PATCH", &format!("{path}/{name}"), &free).await;
                assert!(freed.is_ok() || is_missing(&freed), "{freed:?}");
            }
        }
        pods
    }

    /// Starts the deletion of the scenario's namespaces.
    async fn remove_namespaces(&self) {
        let path = format!("/api/v1/namespaces/{}", self.namespace);
        for client in self.all_clients() {
            let removed = request(&client, "DELETE", &path, &Value::Null).await;
            assert!(removed.is_ok() || is_missing(&removed), "{removed:?}");
        }
    }
}

/// How long the deletion of the last namespaces may take.
const TO_GO: Duration = Duration::from_secs(120);

impl Shared {
    /// Waits until no cluster has a namespace of this run's scenarios. Returns what blocks their deletion if they do not
    /// disappear in time.
    pub async fn cleared(&self) -> Result<(), String> {
        let mut clusters = vec![("the host", client(&self.host).await)];
        for (name, route) in &self.members {
            clusters.push((name, client(&route.direct).await));
        }
        let deadline = Instant::now() + TO_GO;
        loop {
            let mut left = Vec::new();
            for (name, cluster) in &clusters {
                let list = request(cluster, "GET", "/api/v1/namespaces", &Value::Null).await;
                let list = list.map_err(|error| format!("namespaces of {name}: {error}"))?;
                let blocked = blocked_namespaces(&list, &run_prefix());
                left.extend(blocked.iter().map(|line| format!("{name}: {line}")));
            }
            if left.is_empty() {
                return Ok(());
            }
            if Instant::now() >= deadline {
                return Err(format!("namespaces that still exist:\n{}", left.join("\n")));
            }
            sleep(POLL_INTERVAL).await;
        }
    }
}

/// The namespaces whose names start with `prefix`, and what blocks their deletion.
fn blocked_namespaces(namespaces: &Value, prefix: &str) -> Vec<String> {
    let all = namespaces["items"].as_array().into_iter().flatten();
    let named =
        all.filter_map(|namespace| Some((namespace, namespace["metadata"]["name"].as_str()?)));
    let words = |(namespace, name): (&Value, &str)| {
        let conditions = namespace["status"]["conditions"].as_array();
        let holding = conditions.into_iter().flatten();
        let holding = holding.filter(|condition| condition["status"] == "True");
        let why: Vec<_> = holding
            .filter_map(|condition| condition["message"].as_str())
            .collect();
        format!("{name}: {}", why.join("; "))
    };
    let left = named.filter(|(_, name)| name.starts_with(prefix));
    left.map(words).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminating_namespaces_are_reported_with_what_blocks_them() {
        let namespace = |name: &str, conditions: Value| json!({ "metadata": { "name": name }, "status": { "conditions": conditions } });
        let blocked = json!([
            { "status": "False", "message": "All content successfully deleted" },
            { "status": "True", "message": "Some content has finalizers" },
        ]);
        let list = json!({ "items": [
            namespace("default", json!(null)),
            namespace("scenario-7-1", blocked),
            namespace("scenario-77-1", json!([])),
        ] });
        assert_eq!(
            blocked_namespaces(&list, "scenario-7-"),
            ["scenario-7-1: Some content has finalizers"]
        );
    }
}
