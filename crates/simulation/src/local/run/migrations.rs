//! What persons do with migrations, and what becomes of machines.

use http::Method;
use serde_json::{Value, json};
use sim_cluster::Object;

use super::{
    super::{MIGRATIONS_PATH, NAMESPACE, POLICIES_PATH, plan::LocalAction},
    runner::{Runner, node_name},
};

impl Runner {
    /// Creates the policy of all sets.
    pub(super) async fn create_policy(&self, spec: &Value) {
        let object = json!({
            "apiVersion": "fedrs.dev/v1alpha1", "kind": "MigrationPolicy", "metadata": { "name": "all" }, "spec": spec,
        });
        self.request(Method::POST, POLICIES_PATH, &object).await;
        self.recorder.observe(|observed| observed.set_policy(spec));
    }

    /// What a person does.
    pub(super) async fn migrate(&mut self, action: &LocalAction) {
        match action {
            LocalAction::Migrate {
                set,
                index,
                deadline_seconds,
            } => self.ask(set, *index, *deadline_seconds).await,
            LocalAction::CancelMigrations { set } => {
                let requests = self.requests().into_iter();
                let of_set = requests.filter(|of| text(&of["spec"]["podName"]).starts_with(set));
                for request in of_set {
                    let path = format!("{MIGRATIONS_PATH}/{}", text(&request["metadata"]["name"]));
                    let cancel = json!({ "spec": { "cancel": true } });
                    self.request(Method::PATCH, &path, &cancel).await;
                }
            }
            LocalAction::Destroy { node } => {
                let name = node_name(*node);
                self.count("destroyed machines");
                self.cluster.fail_node(&name);
                self.recorder
                    .observe(|observed| observed.destroyed.insert(name.clone()));
                self.nodes.insert(name);
            }
            _ => self.confirm().await,
        }
    }

    async fn ask(&mut self, set: &str, index: u32, deadline_seconds: Option<u64>) {
        let pods = self.pods(set);
        if pods.is_empty() {
            return;
        }
        let pod = &pods[index as usize % pods.len()];
        self.count("migration requests");
        let number = self.counts["migration requests"];
        let deadline = deadline_seconds.map(|seconds| {
            let seconds = i64::try_from(seconds).unwrap_or_default();
            let at = self.cluster.clock().now() + jiff::SignedDuration::from_secs(seconds);
            format!("{at:.0}")
        });
        let object = json!({
            "apiVersion": "fedrs.dev/v1alpha1", "kind": "MigrationRequest",
            "metadata": { "name": format!("person-{number}") },
            "spec": {
                "podName": pod["metadata"]["name"], "podUid": pod["metadata"]["uid"], "deadline": deadline,
            },
        });
        self.request(Method::POST, MIGRATIONS_PATH, &object).await;
    }

    /// Persons look at the machines of the pods that they are asked for, and confirm what is destroyed.
    pub(super) async fn confirm(&self) {
        for request in self.requests() {
            let status = &request["status"];
            let node = text(&status["node"]);
            let is_destroyed = self
                .recorder
                .observe(|observed| observed.destroyed.contains(&node));
            if status["phase"] != "HandsUp" || !is_destroyed {
                continue;
            }
            let confirmation = json!({ "confirmedBy": "jane", "machineIsDestroyed": true });
            let patch = json!({ "spec": { "confirmation": confirmation } });
            let path = format!("{MIGRATIONS_PATH}/{}", text(&request["metadata"]["name"]));
            self.request(Method::PATCH, &path, &patch).await;
        }
    }

    /// All MigrationRequests.
    pub(super) fn requests(&self) -> Vec<Object> {
        let api = self.cluster.api();
        let kind = api.kind_of("fedrs.dev/v1alpha1", "MigrationRequest");
        kind.map(|kind| api.list(&kind, Some(NAMESPACE)))
            .unwrap_or_default()
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
