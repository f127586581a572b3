//! After a scenario: shared clusters become as they were.

use std::time::Duration;

use control_plane::request;
use fedrs_api::names::KUBECONFIG_TYPE;
use futures::future::join_all;
use kube::Client;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::{
    Clusters, LOOK, Stage,
    client::client,
    clusters::Shared,
    commands::{MEMBERS, secrets},
    rivals::lease_path,
    run_prefix,
    spec::is_missing,
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

/// How long the last namespaces may take to go.
const TO_GO: Duration = Duration::from_secs(120);

impl Shared {
    /// Waits until no namespace of this run's scenarios is left in any cluster; answers what holds them up, if that is
    /// not so in time.
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
                let held = held_up(&list, &run_prefix());
                left.extend(held.iter().map(|it| format!("{name}: {it}")));
            }
            if left.is_empty() {
                return Ok(());
            }
            if Instant::now() >= deadline {
                return Err(format!("left behind:\n{}", left.join("\n")));
            }
            sleep(LOOK).await;
        }
    }
}

/// The namespaces that begin with `prefix`, and what holds them up.
fn held_up(namespaces: &Value, prefix: &str) -> Vec<String> {
    let all = namespaces["items"].as_array().into_iter().flatten();
    let named = all.filter_map(|it| Some((it, it["metadata"]["name"].as_str()?)));
    let words = |(namespace, name): (&Value, &str)| {
        let conditions = namespace["status"]["conditions"].as_array();
        let holding = conditions.into_iter().flatten();
        let holding = holding.filter(|it| it["status"] == "True");
        let why: Vec<_> = holding.filter_map(|it| it["message"].as_str()).collect();
        format!("{name}: {}", why.join("; "))
    };
    let left = named.filter(|(_, name)| name.starts_with(prefix));
    left.map(words).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_that_stay_are_told_with_what_holds_them_up() {
        let namespace = |name: &str, conditions: Value| json!({ "metadata": { "name": name }, "status": { "conditions": conditions } });
        let held = json!([
            { "status": "False", "message": "All content successfully deleted" },
            { "status": "True", "message": "Some content has finalizers" },
        ]);
        let list = json!({ "items": [
            namespace("default", json!(null)),
            namespace("scenario-7-1", held),
            namespace("scenario-77-1", json!([])),
        ] });
        assert_eq!(
            held_up(&list, "scenario-7-"),
            ["scenario-7-1: Some content has finalizers"]
        );
    }
}
