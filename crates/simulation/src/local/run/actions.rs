//! What a step does.

use fedrs_api::annotations;
use http::Method;
use serde_json::{Value, json};
use sim_cluster::{Status, kinds};
use tokio::time::{Duration, Instant};

use super::{
    super::{
        BUDGETS_PATH, NODES_PATH, PODS_PATH, QUOTAS_PATH, SETS_PATH,
        plan::{LocalAction, LocalFault, healthy_template},
    },
    runner::{Runner, Timer, node_name},
};
use crate::{
    run::{quota_of, requests},
    trace::Topic,
};

/// By this time watches that have ended are open again, however short they were.
const WATCHES_OPEN: Duration = Duration::from_secs(40);

impl Runner {
    /// Carries out a step.
    pub(super) async fn act(&mut self, action: &LocalAction) {
        self.recorder.trace(Topic::Step, action.to_string());
        match action {
            LocalAction::EditSet { set, spec } => {
                let path = format!("{SETS_PATH}/{set}");
                let patch = json!({ "spec": spec });
                self.request(Method::PATCH, &path, &patch).await;
            }
            LocalAction::DeleteSet { set, orphan } => {
                let policy = if *orphan { "Orphan" } else { "Background" };
                let options = json!({ "propagationPolicy": policy });
                let path = format!("{SETS_PATH}/{set}");
                self.request(Method::DELETE, &path, &options).await;
            }
            LocalAction::CreateSet { set } => self.create_set(set).await,
            LocalAction::EditPod { set, index, patch } => {
                if let Some(path) = self.pod_path(set, *index) {
                    self.request(Method::PATCH, &path, patch).await;
                }
            }
            LocalAction::DeletePod { set, index } => {
                if let Some(path) = self.pod_path(set, *index) {
                    self.request(Method::DELETE, &path, &Value::Null).await;
                }
            }
            LocalAction::ForceDeletePod { set, index } => {
                if let Some(path) = self.pod_path(set, *index) {
                    let at_once = json!({ "gracePeriodSeconds": 0 });
                    self.request(Method::DELETE, &path, &at_once).await;
                }
            }
            LocalAction::Migrate { .. }
            | LocalAction::CancelMigrations { .. }
            | LocalAction::Maintenance { .. }
            | LocalAction::ConfirmMigrations
            | LocalAction::Destroy { .. } => self.migrate(action).await,
            LocalAction::EvictPods { set, pods } => self.evict(set, *pods).await,
            LocalAction::CreatePod {
                set,
                suffix,
                is_controlled,
            } => {
                let controller = is_controlled.then(|| self.node_uid());
                let pod = strange_pod(set, suffix, controller.as_ref());
                self.request(Method::POST, PODS_PATH, &pod).await;
            }
            LocalAction::EditNode { node, patch } => {
                let name = node_name(*node);
                let path = format!("{NODES_PATH}/{name}");
                self.nodes.insert(name);
                self.request(Method::PATCH, &path, patch).await;
            }
            LocalAction::Node { node, fails } => {
                let name = node_name(*node);
                if *fails {
                    self.count("failed nodes");
                    self.cluster.fail_node(&name);
                } else {
                    self.cluster.recover_node(&name);
                }
                self.nodes.insert(name);
            }
            LocalAction::NodeObject { node, exists } => self.node_object(*node, *exists).await,
            LocalAction::Quota { pods } => self.quota(*pods).await,
            LocalAction::Budget { set, exists } => self.users_budget(set, *exists).await,
            LocalAction::Switch { fault, on } => self.switch(*fault, *on),
            fault => self.fault(fault).await,
        }
    }

    /// The uid of the first node.
    fn node_uid(&self) -> Value {
        let node = self.cluster.api().get(&kinds::NODES, "", &node_name(0));
        node.map(|node| node["metadata"]["uid"].clone())
            .unwrap_or_default()
    }

    fn pod_path(&self, set: &str, index: u32) -> Option<String> {
        let pods = self.pods(set);
        if pods.is_empty() {
            self.recorder
                .trace(Topic::Step, "(has no effect: there is no pod)");
            return None;
        }
        let pod = &pods[index as usize % pods.len()];
        Some(format!("{PODS_PATH}/{}", name(pod)))
    }

    /// Evicts pods through the API server, as far as it allows that.
    async fn evict(&mut self, set: &str, count: u32) {
        let pods = self.pods(set).into_iter();
        let live = pods.filter(|pod| pod["metadata"]["deletionTimestamp"].is_null());
        for pod in live.take(count as usize) {
            let name = name(&pod);
            let path = format!("{PODS_PATH}/{name}/eviction");
            let eviction = json!({
                "apiVersion": "policy/v1", "kind": "Eviction", "metadata": { "name": name },
            });
            let uid = pod["metadata"]["uid"].as_str().unwrap_or_default();
            let was_ready = self.recorder.observe(|observed| observed.is_ready(uid));
            if self.request(Method::POST, &path, &eviction).await {
                self.count("granted evictions");
                self.recorder.evicted(uid, was_ready);
            }
        }
    }

    async fn node_object(&mut self, node: u32, exists: bool) {
        if exists {
            self.add_node(node);
        } else {
            self.count("deleted nodes");
            let path = format!("{NODES_PATH}/{}", node_name(node));
            self.request(Method::DELETE, &path, &Value::Null).await;
        }
    }

    /// Limits the pods of the namespace, or does so no longer.
    async fn quota(&mut self, pods: Option<u32>) {
        let Some(pods) = pods else {
            let path = format!("{QUOTAS_PATH}/limit");
            self.request(Method::DELETE, &path, &Value::Null).await;
            return;
        };
        self.count("quotas");
        self.request(Method::POST, QUOTAS_PATH, &quota_of(pods))
            .await;
    }

    async fn users_budget(&self, set: &str, exists: bool) {
        let name = format!("users-{set}");
        if exists {
            let budget = json!({
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                "metadata": { "name": name },
                "spec": { "maxUnavailable": 1, "selector": { "matchLabels": { "app": set } } },
            });
            self.request(Method::POST, BUDGETS_PATH, &budget).await;
        } else {
            let path = format!("{BUDGETS_PATH}/{name}");
            self.request(Method::DELETE, &path, &Value::Null).await;
        }
    }

    /// Begins or ends a fault that lasts.
    fn switch(&mut self, fault: LocalFault, on: bool) {
        let changes = if on {
            self.faults.insert(fault)
        } else {
            self.faults.remove(&fault)
        };
        if !changes {
            self.recorder.trace(Topic::Step, "(has no effect)");
            return;
        }
        let what = fault.to_string();
        if on {
            self.count(&what);
        }
        if fault != LocalFault::NoControllerManager {
            self.recorder.observe(|observed| {
                observed.lag.put(&what, on);
                if !on {
                    observed.lag.put_until(Instant::now() + WATCHES_OPEN);
                }
            });
        }
        let faults = self.cluster.faults().clone();
        match fault {
            LocalFault::Unreachable => faults.set_unreachable(on),
            LocalFault::Hanging => faults.set_hanging(on),
            LocalFault::WatchesSilent => faults.set_watches_stalled(on),
            LocalFault::NoControllerManager if on => self.cluster.stop_controller_manager(),
            LocalFault::NoControllerManager => self.cluster.start_controller_manager(),
            silent => {
                if let Some(resource) = silent.silent_resource() {
                    faults.set_resource_stalled(resource, on);
                }
            }
        }
    }

    /// A fault of requests or of a controller.
    async fn fault(&mut self, action: &LocalAction) {
        let faults = self.cluster.faults().clone();
        match action {
            LocalAction::Slow { ms } => {
                let latency = Duration::from_millis(*ms);
                faults.set_latency(latency);
                self.recorder.observe(|observed| observed.lag.slow(latency));
            }
            LocalAction::Reject {
                resource,
                verb,
                times,
                code,
            } => {
                let status = Status::new(*code, "Injected", "injected");
                faults.refuse(requests(resource, verb), *times, status);
            }
            LocalAction::LoseResponses {
                resource,
                verb,
                times,
            } => faults.lose_responses(requests(resource, verb), *times),
            LocalAction::CutWatches => {
                faults.cut_watches();
                let until = Instant::now() + WATCHES_OPEN;
                self.recorder
                    .observe(|observed| observed.lag.put_until(until));
            }
            LocalAction::Compact => faults.compact(),
            LocalAction::Crash {
                process,
                write,
                after,
                down_ms,
            } => {
                let number = self.process(*process);
                self.down[number] = Duration::from_millis(*down_ms);
                if !self.processes.runs(number) {
                    let text = "(has no effect: it does not run)";
                    self.recorder.trace(Topic::Step, text);
                } else if *write == 0 {
                    self.crashed(number).await;
                } else {
                    self.processes.crash_at(number, *write, *after);
                }
            }
            LocalAction::Suspend { process, ms } => {
                let number = self.process(*process);
                self.processes.suspend(number, true);
                self.timers
                    .set(Duration::from_millis(*ms), Timer::Resume(number));
                self.count("suspended elections");
            }
            _ => {}
        }
    }

    /// The number of a process, from 0.
    fn process(&self, number: u32) -> usize {
        (number.max(1) as usize - 1) % self.processes.count()
    }

    /// All faults end, and users want what is possible.
    pub(super) async fn recover(&mut self) {
        self.recorder.trace(Topic::Phase, "everything recovers");
        for fault in std::mem::take(&mut self.faults) {
            self.faults.insert(fault);
            self.switch(fault, false);
        }
        self.cluster.faults().heal();
        self.recorder
            .observe(|observed| observed.lag.slow(Duration::ZERO));
        self.processes.crash_no_more();
        for number in 0..self.processes.count() {
            self.processes.suspend(number, false);
        }
        self.start_controllers();
        for node in 0..self.node_count {
            self.add_node(node);
        }
        self.replace_destroyed().await;
        for name in std::mem::take(&mut self.nodes) {
            // Nobody repairs a machine that is destroyed.
            if (self.recorder).observe(|observed| observed.destroyed.contains(&name)) {
                continue;
            }
            self.cluster.recover_node(&name);
            let patch = json!({
                "metadata": {
                    "labels": { annotations::EVICT: null },
                    "annotations": { annotations::MAINTENANCE: null },
                },
                "spec": { "unschedulable": null },
            });
            let path = format!("{NODES_PATH}/{name}");
            self.request(Method::PATCH, &path, &patch).await;
            self.keep_taints_of_kubernetes(&path, &name).await;
        }
        let budgets = (self.sets.iter()).map(|set| format!("{BUDGETS_PATH}/users-{}", set.name));
        let limits = budgets.chain([format!("{QUOTAS_PATH}/limit")]);
        let client = kube::Client::new(self.cluster.direct_service(), "default");
        for path in limits {
            // It may not exist.
            let _ = crate::request(&client, "DELETE", &path, &Value::Null).await;
        }
        self.remove_strange_pods().await;
        for set in self.existing_sets() {
            let patch = json!({ "spec": healthy_template(&set["spec"]) });
            let path = format!("{SETS_PATH}/{}", name(&set));
            self.request(Method::PATCH, &path, &patch).await;
        }
    }

    /// Nodes whose machines are destroyed are deleted, and there are as many as before.
    async fn replace_destroyed(&self) {
        let destroyed = (self.recorder).observe(|observed| observed.destroyed.clone());
        for (number, name) in (self.node_count..).zip(destroyed) {
            let path = format!("{NODES_PATH}/{name}");
            self.request(Method::DELETE, &path, &Value::Null).await;
            self.add_node(number);
        }
    }

    /// Removes pods of others that sets match: while they are counted, a PodDisruptionBudget lends less.
    async fn remove_strange_pods(&self) {
        for set in &self.sets {
            for pod in self.pods(&set.name) {
                let owners = pod["metadata"]["ownerReferences"].as_array();
                let mut owners = owners.into_iter().flatten();
                if owners.any(|owner| owner["kind"] == "Node") {
                    let path = format!("{PODS_PATH}/{}", name(&pod));
                    self.request(Method::DELETE, &path, &Value::Null).await;
                }
            }
        }
    }

    /// Removes the taint of an administrator from a node.
    async fn keep_taints_of_kubernetes(&self, path: &str, node: &str) {
        let Ok(object) = self.cluster.api().get(&kinds::NODES, "", node) else {
            return;
        };
        let taints = object["spec"]["taints"].as_array().into_iter().flatten();
        let kept: Vec<_> = taints
            .filter(|taint| taint["key"] != "node.kubernetes.io/out-of-service")
            .collect();
        let patch = json!({ "spec": { "taints": kept } });
        self.request(Method::PATCH, path, &patch).await;
    }
}

fn name(object: &Value) -> String {
    let name = object["metadata"]["name"].as_str();
    name.unwrap_or_default().to_owned()
}

/// A pod that the selector of a set matches, whose controller is the node of this uid, or nobody.
fn strange_pod(set: &str, suffix: &str, controller: Option<&Value>) -> Value {
    let mut pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": format!("{set}-{suffix}"), "labels": { "app": set } },
        "spec": { "containers": [{ "name": "main", "image": "web:strange" }] },
    });
    if let Some(uid) = controller {
        let name = node_name(0);
        pod["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "v1", "kind": "Node", "name": name, "uid": uid, "controller": true,
        }]);
    }
    pod
}
