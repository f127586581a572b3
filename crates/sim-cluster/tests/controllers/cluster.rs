//! A cluster under test: an API with controllers, objects in short, and waiting for a condition on paused time.

use std::time::Duration;

use serde_json::{Value, json};
use sim_cluster::{
    Api, ClusterBuilder, DeleteOptions, Kind, NodeSpec, Object, Propagation, Settings, SimCluster,
    WriteOptions, kinds,
};
use tokio::time::Instant;

/// No scenario takes longer, in simulated time.
const DEADLINE: Duration = Duration::from_hours(1);

pub(crate) struct Cluster {
    pub api: Api,
    pub(crate) sim: SimCluster,
}

impl Cluster {
    /// Nodes `node-1`, `node-2`, ... with capacity for `pods` each.
    pub(crate) async fn new(nodes: usize, pods: u32) -> Self {
        Self::with(nodes, pods, Settings::default()).await
    }

    pub(crate) async fn with(nodes: usize, pods: u32, settings: Settings) -> Self {
        let epoch = "2026-11-01T12:00:00Z".parse().unwrap();
        let builder = SimCluster::builder("test").seed(7).epoch(epoch);
        let builder = builder.settings(settings);
        let specs = (1..=nodes).map(|number| NodeSpec::new(format!("node-{number}")).pods(pods));
        let sim = specs.fold(builder, ClusterBuilder::node).start();
        let api = sim.api().clone();
        let cluster = Self { api, sim };
        cluster
            .until("the nodes are ready", |c| c.ready_nodes() == nodes)
            .await;
        cluster
    }

    pub(crate) fn fail_node(&self, node: &str) {
        self.sim.fail_node(node);
    }

    pub(crate) fn recover_node(&self, node: &str) {
        self.sim.recover_node(node);
    }

    pub(crate) fn add_node(&self, node: &NodeSpec) {
        self.create(&kinds::NODES, node.to_object());
    }

    fn ready_nodes(&self) -> usize {
        let nodes = self.api.list(&kinds::NODES, None);
        nodes
            .iter()
            .filter(|node| condition(node, "Ready")["status"] == "True")
            .count()
    }

    pub(crate) fn create(&self, kind: &Kind, object: Value) -> Object {
        let given = object["metadata"]["namespace"]
            .as_str()
            .unwrap_or("default");
        let namespace = if kind.namespaced {
            given.to_owned()
        } else {
            String::new()
        };
        self.api
            .create(kind, &namespace, object, &WriteOptions::default())
            .unwrap()
    }

    pub(crate) fn create_set(&self, name: &str, replicas: usize) -> Object {
        self.create(&kinds::REPLICA_SETS, set(name, replicas))
    }

    pub(crate) fn set(&self, name: &str) -> Object {
        self.api.get(&kinds::REPLICA_SETS, "default", name).unwrap()
    }

    pub(crate) fn edit(&self, kind: &Kind, name: &str, change: impl FnOnce(&mut Value)) {
        let namespace = if kind.namespaced { "default" } else { "" };
        self.api
            .modify(kind, None, namespace, name, change)
            .unwrap();
    }

    pub(crate) fn scale(&self, name: &str, replicas: usize) {
        self.edit(&kinds::REPLICA_SETS, name, |set| {
            set["spec"]["replicas"] = json!(replicas);
        });
    }

    pub(crate) fn delete(&self, kind: &Kind, name: &str, propagation: Option<Propagation>) {
        let namespace = if kind.namespaced { "default" } else { "" };
        self.api
            .delete(
                kind,
                namespace,
                name,
                &DeleteOptions {
                    propagation,
                    ..DeleteOptions::default()
                },
            )
            .unwrap();
    }

    pub(crate) fn exists(&self, kind: &Kind, name: &str) -> bool {
        let namespace = if kind.namespaced { "default" } else { "" };
        self.api.get(kind, namespace, name).is_ok()
    }

    /// All pods of `default`, by name.
    pub(crate) fn pods(&self) -> Vec<Object> {
        self.api.list(&kinds::PODS, Some("default"))
    }

    pub(crate) fn pod(&self, name: &str) -> Object {
        self.api.get(&kinds::PODS, "default", name).unwrap()
    }

    pub(crate) fn ready_pods(&self) -> usize {
        self.pods()
            .iter()
            .filter(|pod| is_ready(pod) && pod["metadata"]["deletionTimestamp"].is_null())
            .count()
    }

    pub(crate) fn pods_on(&self, node: &str) -> usize {
        self.pods()
            .iter()
            .filter(|pod| pod["spec"]["nodeName"] == node)
            .count()
    }

    /// The reasons of the events about the object of this name.
    pub(crate) fn events(&self, about: &str) -> Vec<String> {
        let events = self.api.list(&kinds::EVENTS, Some("default"));
        let about = events
            .iter()
            .filter(|event| event["involvedObject"]["name"] == about);
        about
            .map(|event| event["reason"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Waits until `holds`, looking after every change.
    pub(crate) async fn until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + DEADLINE;
        let mut changes = self.api.changes();
        while !holds(self) {
            let waited = tokio::time::timeout_at(deadline, changes.next()).await;
            assert!(
                waited.is_ok(),
                "never came true: {what}\n{:#?}",
                self.summary()
            );
        }
    }

    /// Lets simulated time pass.
    pub(crate) async fn pass(&self, seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }

    fn summary(&self) -> Vec<String> {
        let sets = self.api.list(&kinds::REPLICA_SETS, None);
        let nodes = self.api.list(&kinds::NODES, None);
        let all = sets.iter().chain(nodes.iter()).cloned().chain(self.pods());
        all.map(|object| {
            format!(
                "{} {} {}",
                object["kind"], object["metadata"]["name"], object["status"]
            )
        })
        .collect()
    }
}

pub(crate) fn set(name: &str, replicas: usize) -> Value {
    json!({
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": pod_spec()},
        },
    })
}

pub(crate) fn pod_spec() -> Value {
    json!({
        "containers": [{"name": "main", "image": "app:1", "resources": {"requests": {"cpu": "100m"}}}],
        "restartPolicy": "Always", "terminationGracePeriodSeconds": 30,
        "tolerations": [
            {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
            {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
        ],
    })
}

pub(crate) fn condition(object: &Value, kind: &str) -> Value {
    let conditions = object["status"]["conditions"].as_array();
    conditions
        .into_iter()
        .flatten()
        .find(|c| c["type"] == kind)
        .cloned()
        .unwrap_or_default()
}

pub(crate) fn is_ready(pod: &Value) -> bool {
    condition(pod, "Ready")["status"] == "True"
}

pub(crate) fn name(object: &Value) -> String {
    object["metadata"]["name"].as_str().unwrap().to_owned()
}

pub(crate) fn owner(object: &Value) -> &str {
    object["metadata"]["ownerReferences"][0]["uid"]
        .as_str()
        .unwrap_or_default()
}
