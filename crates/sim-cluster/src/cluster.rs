//! One running cluster: its API, its controllers, its faults, and its HTTPS servers.
//!
//! builder -> standard objects -> nodes -> controllers -> handle -> `stop`

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use jiff::Timestamp;
use serde_json::{Value, json};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::api::{Api, WriteOptions};
use crate::authorization;
use crate::clock::Clock;
use crate::controllers::{self, Controllers, NodeSpec, Settings};
use crate::faults::Faults;
use crate::http::Handler;
use crate::resources::{Kind, kinds};
use crate::server::Server;
use crate::service::ApiService;
use crate::status::Status;
use crate::store::{LOG_CAPACITY, Snapshot};

/// The default start of a cluster's time: fixed, so that runs can be compared.
const DEFAULT_EPOCH: &str = "2026-01-01T00:00:00Z";

/// The description of a cluster; [`ClusterBuilder::start`] starts it.
#[derive(Clone, Debug)]
pub struct ClusterBuilder {
    name: String,
    nodes: usize,
    node_capacity: Vec<(String, String)>,
    specified_nodes: Vec<NodeSpec>,
    seed: u64,
    epoch: Timestamp,
    settings: Settings,
    log_capacity: usize,
}

/// A running cluster. Dropping it stops it; [`SimCluster::stop`] also waits until it has stopped.
#[derive(Debug)]
pub struct SimCluster {
    name: String,
    api: Api,
    faults: Faults,
    service: ApiService,
    controllers: Controllers,
}

impl SimCluster {
    /// A builder for a cluster of this name. By default it has no nodes.
    pub fn builder(name: impl Into<String>) -> ClusterBuilder {
        ClusterBuilder {
            name: name.into(),
            nodes: 0,
            node_capacity: Vec::new(),
            specified_nodes: Vec::new(),
            seed: 0,
            epoch: DEFAULT_EPOCH.parse().expect("the constant is a time"),
            settings: Settings::default(),
            log_capacity: LOG_CAPACITY,
        }
    }

    /// The cluster's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The API without HTTP, without latency and without faults.
    pub fn api(&self) -> &Api {
        &self.api
    }

    /// The cluster's clock.
    pub fn clock(&self) -> &Clock {
        self.api.clock()
    }

    /// The switches that inject faults.
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// The API as a tower service, for `kube::Client::new(service, "default")`. Requests without a token are the administrator's.
    pub fn service(&self) -> ApiService {
        self.service.clone()
    }

    /// The API as a tower service that is not subject to the injected faults.
    pub fn direct_service(&self) -> ApiService {
        let faults = Faults::new(self.api.clone());
        ApiService::new(Handler::new(self.api.clone(), faults.clone()), faults)
    }

    /// Serves the API over HTTPS on `address`, or on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// If the address can't be bound.
    pub async fn serve(&self, address: Option<SocketAddr>) -> io::Result<Server> {
        let address = address.unwrap_or((Ipv4Addr::LOCALHOST, 0).into());
        Server::start(
            &self.name,
            address,
            self.service(),
            self.api.clone(),
            self.faults.clone(),
        )
        .await
    }

    /// Adds a node, which is ready at once.
    ///
    /// # Errors
    /// The API's rejection, if the node exists or is invalid.
    pub fn add_node(&self, node: &NodeSpec) -> Result<(), Status> {
        let options = WriteOptions::default();
        self.api
            .create(&kinds::NODES, "", node.to_object(), &options)?;
        Ok(())
    }

    /// Injects a fault: stops the node's kubelet. The status of its pods no longer changes, and after
    /// [`Settings::node_grace`] the node becomes unreachable.
    pub fn fail_node(&self, node: &str) {
        self.controllers.fail_node(node);
    }

    /// Starts the node's kubelet again.
    pub fn recover_node(&self, node: &str) {
        self.controllers.recover_node(node);
    }

    /// Injects a fault: stops the kube-controller-manager. API server, scheduler and kubelets continue: no pod is created or
    /// replaced, and no status of a `ReplicaSet` changes.
    pub fn stop_controller_manager(&self) {
        self.controllers.set_manager_stopped(true);
    }

    /// Starts the kube-controller-manager again.
    pub fn start_controller_manager(&self) {
        self.controllers.set_manager_stopped(false);
    }

    /// Injects a fault: API server, controllers, nodes and pods lose power together. The stored objects stay as they are.
    pub fn lose_power(&self) {
        self.faults.set_unreachable(true);
        self.controllers.cut_power();
    }

    /// Ends a loss of power for API server and controllers. No node is back: pods still say that they are ready until the
    /// nodes become unreachable. [`recover_node`](Self::recover_node) starts a node, which restarts its containers.
    pub fn restore_power(&self) {
        self.controllers.restore_power();
        self.faults.set_unreachable(false);
    }

    /// A backup of all objects.
    pub fn snapshot(&self) -> Snapshot {
        self.api.with_state(|state| state.store.snapshot())
    }

    /// Restores a backup and starts the API server again: objects and resource versions are the earlier ones, and open
    /// watches break. Definitions must be the same as then.
    pub fn restore(&self, snapshot: &Snapshot) {
        self.api.with_state(|state| state.store.restore(snapshot));
        self.faults.break_watches();
    }

    /// Stops the cluster: controllers stop, requests and open watches fail. Servers are stopped by their own handles.
    pub async fn stop(self) {
        self.faults.set_unreachable(true);
        self.controllers.shutdown().await;
    }
}

impl ClusterBuilder {
    /// The number of nodes, named `<cluster>-node-<n>` from 1.
    #[must_use]
    pub fn nodes(mut self, count: usize) -> Self {
        self.nodes = count;
        self
    }

    /// The capacity of each of these nodes: CPU and memory as quantities, and the number of pods.
    #[must_use]
    pub fn node_resources(mut self, cpu: &str, memory: &str, pods: u32) -> Self {
        let capacity = [
            ("cpu", cpu.to_owned()),
            ("memory", memory.to_owned()),
            ("pods", pods.to_string()),
        ];
        self.node_capacity = capacity
            .into_iter()
            .map(|(resource, quantity)| (resource.to_owned(), quantity))
            .collect();
        self
    }

    /// Adds a node with a specification of its own.
    #[must_use]
    pub fn node(mut self, node: NodeSpec) -> Self {
        self.specified_nodes.push(node);
        self
    }

    /// The seed of uids, generated names and all else that is random. It is combined with the cluster's name, so that no two
    /// clusters have a uid in common. Default 0.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// The start of the cluster's time. Default: the first of January 2026.
    #[must_use]
    pub fn epoch(mut self, epoch: Timestamp) -> Self {
        self.epoch = epoch;
        self
    }

    /// The latencies and grace periods of controllers and kubelets.
    #[must_use]
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// The most changes of each kind from which a watch can resume. Default 8,192; changes older than 75 seconds are
    /// dropped, but for the last hundred.
    #[must_use]
    pub fn log_capacity(mut self, changes: usize) -> Self {
        self.log_capacity = changes;
        self
    }

    /// Starts the cluster.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn start(self) -> SimCluster {
        let clock = Clock::starting_at(self.epoch);
        let seed = xxh3_64_with_seed(self.name.as_bytes(), self.seed);
        let api = Api::new(clock, seed, self.log_capacity);
        let server = api.as_manager("kube-apiserver");
        for (kind, namespace, object) in standard_objects() {
            server
                .create(kind, namespace, object, &WriteOptions::default())
                .expect("standard objects are valid and new");
        }
        let faults = Faults::new(api.clone());
        let cluster = SimCluster {
            service: ApiService::new(Handler::new(api.clone(), faults.clone()), faults.clone()),
            controllers: controllers::spawn(&api, self.settings.clone()),
            name: self.name.clone(),
            api,
            faults,
        };
        for node in self.all_nodes() {
            cluster
                .add_node(&node)
                .expect("nodes are valid and have different names");
        }
        cluster
    }

    fn all_nodes(self) -> Vec<NodeSpec> {
        let numbered = (1..=self.nodes).map(|number| {
            let node = NodeSpec::new(format!("{}-node-{number}", self.name));
            let capacity = self.node_capacity.iter();
            capacity.fold(node, |node, (resource, quantity)| {
                node.capacity(resource, quantity)
            })
        });
        numbered
            .chain(self.specified_nodes.iter().cloned())
            .collect()
    }
}

/// The objects that every cluster has from the start.
fn standard_objects() -> Vec<(&'static Kind, &'static str, Value)> {
    let mut objects: Vec<(&'static Kind, &'static str, Value)> = Vec::new();
    for namespace in ["default", "kube-node-lease", "kube-public", "kube-system"] {
        objects.push((
            &kinds::NAMESPACES,
            "",
            json!({"metadata": {"name": namespace}}),
        ));
    }
    for (name, value, about) in [
        ("system-cluster-critical", 2_000_000_000, "cluster"),
        ("system-node-critical", 2_000_001_000, "node"),
    ] {
        let description = format!(
            "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary \
             ({about})."
        );
        objects.push((
            &kinds::PRIORITY_CLASSES,
            "",
            json!({"metadata": {"name": name}, "value": value, "description": description}),
        ));
    }
    objects.extend(authorization::standard_objects());
    objects.push((
        &kinds::SERVICES,
        "default",
        json!({
            "metadata": {"name": "kubernetes", "labels": {"component": "apiserver", "provider": "kubernetes"}},
            "spec": {
                "clusterIP": "10.96.0.1", "type": "ClusterIP",
                "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}],
            },
        }),
    ));
    objects
}
