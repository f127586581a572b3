//! What persons do with migrations, and what becomes of machines.

use fedrs_api::{AwaitedAction, annotations};
use http::Method;
use serde_json::{Value, json};
use sim_cluster::{Object, kinds};

use super::{
    super::{MIGRATIONS_PATH, NAMESPACE, NODES_PATH, PODS_PATH, POLICIES_PATH, plan::LocalAction},
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
            LocalAction::Maintenance { node, seconds } => {
                let name = node_name(*node);
                let mark = seconds.map(|seconds| self.mark(seconds));
                let patch = json!({
                    "metadata": {
                        "labels": { annotations::EVICT: mark.as_ref().map(|_| "Maintenance") },
                        "annotations": { annotations::MAINTENANCE: mark },
                    },
                    "spec": { "unschedulable": mark.as_ref().map(|_| true) },
                });
                self.count("maintenances");
                self.nodes.insert(name.clone());
                let path = format!("{NODES_PATH}/{name}");
                self.request(Method::PATCH, &path, &patch).await;
            }
            _ => self.confirm().await,
        }
    }

    /// What the controller on the host writes to a node that is away for so long from now on.
    fn mark(&self, seconds: u32) -> String {
        let now = self.cluster.clock().now();
        let until = now + jiff::SignedDuration::from_secs(seconds.into());
        json!({ "name": "rack", "uid": "rack", "until": format!("{until:.0}"), "durationSeconds": seconds }).to_string()
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

    /// Persons do what MigrationRequests wait for: they look at machines, shut pods down, confirm and start them.
    pub(super) async fn confirm(&mut self) {
        for request in self.requests() {
            let status = &request["status"];
            let awaits = status["awaits"].as_str();
            let Some(awaits) = awaits.and_then(AwaitedAction::parse) else {
                continue;
            };
            let node = text(&status["node"]);
            let is_destroyed = self
                .recorder
                .observe(|observed| observed.destroyed.contains(&node));
            if awaits != AwaitedAction::ConfirmDestroyed || is_destroyed {
                self.count(&format!("persons: {awaits}"));
            }
            let stopped = |is_destroyed: bool| json!({ "confirmation": { "confirmedBy": "jane", "machineIsDestroyed": is_destroyed } });
            let spec = match awaits {
                AwaitedAction::ConfirmDestroyed if !is_destroyed => continue,
                AwaitedAction::ShutDown if !is_destroyed => {
                    let path = format!("{PODS_PATH}/{}", text(&request["spec"]["podName"]));
                    let uid = json!({ "preconditions": { "uid": status["podUid"] } });
                    self.request(Method::DELETE, &path, &uid).await;
                    continue;
                }
                AwaitedAction::Start => {
                    self.start_pod(&text(&status["newPod"])).await;
                    continue;
                }
                AwaitedAction::ShutDown
                | AwaitedAction::ConfirmStopped
                | AwaitedAction::ConfirmDestroyed => stopped(is_destroyed),
                AwaitedAction::ConfirmActivation => json!({ "activationConfirmedBy": "jane" }),
                AwaitedAction::ConfirmShutdown => json!({ "shutdownConfirmedBy": "jane" }),
            };
            let path = format!("{MIGRATIONS_PATH}/{}", text(&request["metadata"]["name"]));
            let patch = json!({ "spec": spec });
            self.request(Method::PATCH, &path, &patch).await;
        }
    }

    /// Persons start all pods that are not: also those whose requests have ended.
    pub(super) async fn start_all(&self) {
        for pod in self.cluster.api().list(&kinds::PODS, Some(NAMESPACE)) {
            if pod["spec"]["schedulingGates"].is_array() {
                self.start_pod(&text(&pod["metadata"]["name"])).await;
            }
        }
    }

    async fn start_pod(&self, pod: &str) {
        let path = format!("{PODS_PATH}/{pod}");
        let patch = json!({ "spec": { "schedulingGates": [] } });
        self.request(Method::PATCH, &path, &patch).await;
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
