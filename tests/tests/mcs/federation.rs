//! Two real control planes, and the controller over them.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use control_plane::{ControlPlaneSpec, Environment, EnvironmentSpec, NodeResources, request};
use controller_base::{clock::Clock, election::Fence, running::Running};
use kube::Client;
use mcs_controller::{McsController, McsMetrics};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::crds;

const SERVICES: &str = "/api/v1/namespaces/default/services";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
const EXPORTS: &str = "/apis/multicluster.x-k8s.io/v1alpha1/namespaces/default/serviceexports";
const IMPORTS: &str = "/apis/multicluster.x-k8s.io/v1alpha1/namespaces/default/serviceimports";
/// How long clusters and the controller may take for a change.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long the controller has to write what it should not.
const QUIET: Duration = Duration::from_secs(10);

/// The label of an imported EndpointSlice with its member.
const SOURCE: &str = "multicluster.kubernetes.io/source-cluster";
/// The label of a member's own EndpointSlice.
const OWN: &str = "kubernetes.io/service-name";

/// The control planes `a` and `b`, and the controller.
pub(crate) struct Federation {
    clients: BTreeMap<&'static str, Client>,
    cancel: CancellationToken,
    running: Running,
    _environment: Environment,
}

impl Federation {
    pub(crate) async fn start() -> Self {
        let member = |name: &str| ControlPlaneSpec {
            name: name.to_owned(),
            nodes: 1,
            resources: NodeResources::default(),
        };
        let spec = EnvironmentSpec {
            members: ["a", "b"].map(member).into(),
            audit: false,
        };
        let environment = Environment::start_temporary(&spec).await;
        let environment = environment.expect("the control planes start");
        let mut clients = BTreeMap::new();
        for (name, member) in ["a", "b"].into_iter().zip(&environment.members) {
            let client = member.client().await.expect("a client can be made");
            for crd in crds::all() {
                create(&client, crds::CRDS, &crd).await;
            }
            clients.insert(name, client);
        }
        let (cancel, running) = start_controller(&clients);
        Self {
            clients,
            cancel,
            running,
            _environment: environment,
        }
    }

    /// The controller ends, and the next one knows nothing of it. Returns when it has had time to write.
    pub(crate) async fn restart_controller(self) -> Self {
        self.cancel.cancel();
        self.running.joined().await;
        let (cancel, running) = start_controller(&self.clients);
        sleep(QUIET).await;
        Self {
            cancel,
            running,
            ..self
        }
    }

    /// Runs pods with a Service that selects them.
    pub(crate) async fn deploy(&self, name: &str, replicas: u32) {
        let labels = json!({ "app": "web" });
        let deployment = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web" },
            "spec": {
                "replicas": replicas, "selector": { "matchLabels": labels },
                "template": {
                    "metadata": { "labels": labels },
                    "spec": { "containers": [{ "name": "main", "image": "web:1" }] },
                },
            },
        });
        create(&self.clients[name], DEPLOYMENTS, &deployment).await;
        let service = json!({
            "apiVersion": "v1", "kind": "Service", "metadata": { "name": "web" },
            "spec": {
                "selector": labels,
                "ports": [{ "name": "http", "port": 80, "targetPort": 8080 }],
            },
        });
        create(&self.clients[name], SERVICES, &service).await;
        self.until_endpoints(name, replicas as usize).await;
    }

    pub(crate) async fn scale(&self, name: &str, replicas: u32) {
        let patch = json!({ "spec": { "replicas": replicas } });
        let path = format!("{DEPLOYMENTS}/web");
        let patched = request(&self.clients[name], "PATCH", &path, &patch).await;
        patched.expect("the cluster accepts it");
        self.until_endpoints(name, replicas as usize).await;
    }

    pub(crate) async fn export(&self, name: &str) {
        let export = json!({
            "apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ServiceExport",
            "metadata": { "name": "web" },
        });
        create(&self.clients[name], EXPORTS, &export).await;
    }

    pub(crate) async fn unexport(&self, name: &str) {
        let path = format!("{EXPORTS}/web");
        let deleted = request(&self.clients[name], "DELETE", &path, &Value::Null).await;
        deleted.expect("it existed");
    }

    pub(crate) async fn import(&self, name: &str) -> Option<Value> {
        let path = format!("{IMPORTS}/web");
        let found = request(&self.clients[name], "GET", &path, &Value::Null).await;
        found.ok()
    }

    pub(crate) async fn until_no_import(&self, name: &str) {
        let started = Instant::now();
        while self.import(name).await.is_some() {
            assert!(started.elapsed() < PATIENCE, "{name} still imports");
            sleep(Duration::from_millis(100)).await;
        }
    }

    async fn slices(&self, name: &str) -> Vec<Value> {
        let list = request(&self.clients[name], "GET", SLICES, &Value::Null).await;
        let list = list.expect("they can be listed");
        list["items"].as_array().cloned().unwrap_or_default()
    }

    /// The addresses of the Service `web` that a member has itself.
    async fn own(&self, name: &str) -> BTreeSet<String> {
        let slices = self.slices(name).await;
        let own = slices
            .iter()
            .filter(|slice| slice["metadata"]["labels"][OWN] == "web");
        own.flat_map(addresses).collect()
    }

    async fn until_endpoints(&self, name: &str, count: usize) {
        let started = Instant::now();
        while self.own(name).await.len() != count {
            let own = self.own(name).await;
            assert!(started.elapsed() < PATIENCE, "{name} has {own:?}");
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// Waits until a member has imported the endpoints of these members as they have them, and no others.
    pub(crate) async fn until_imports(&self, name: &str, sources: &[&str]) {
        let started = Instant::now();
        loop {
            let mut expected = BTreeMap::new();
            for &source in sources {
                expected.insert(source.to_owned(), self.own(source).await);
            }
            let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
            for slice in self.slices(name).await {
                if let Some(source) = slice["metadata"]["labels"][SOURCE].as_str() {
                    let of = found.entry(source.to_owned()).or_default();
                    of.extend(addresses(&slice));
                }
            }
            if found == expected {
                return;
            }
            let is_late = started.elapsed() > PATIENCE;
            assert!(!is_late, "{name} has imported {found:?}, not {expected:?}");
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// Waits until a condition of the export has this reason.
    pub(crate) async fn until_condition(&self, name: &str, of_type: &str, reason: &str) {
        let started = Instant::now();
        loop {
            let path = format!("{EXPORTS}/web");
            let export = request(&self.clients[name], "GET", &path, &Value::Null).await;
            let export = export.expect("it exists");
            let conditions = export["status"]["conditions"].as_array();
            let mut conditions = conditions.into_iter().flatten();
            if conditions.any(|one| one["type"] == of_type && one["reason"] == reason) {
                return;
            }
            let is_late = started.elapsed() > PATIENCE;
            assert!(!is_late, "{name}: not {of_type} {reason}: {export}");
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// The versions of what the controller has written, by name.
    pub(crate) async fn versions(&self, name: &str) -> BTreeMap<String, String> {
        sleep(QUIET).await;
        let mut objects = self.slices(name).await;
        objects.extend(self.import(name).await);
        let versions = objects.iter().map(|object| {
            let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
            (text("name").to_owned(), text("resourceVersion").to_owned())
        });
        versions.collect()
    }
}

fn start_controller(clients: &BTreeMap<&'static str, Client>) -> (CancellationToken, Running) {
    let cancel = CancellationToken::new();
    let controller = McsController {
        patience: PATIENCE,
        clock: Clock::system(),
        seed: 7,
        metrics: McsMetrics::default(),
        fence: Fence::open(),
    };
    let (running, mut members) = controller.start(&cancel);
    for (name, client) in clients {
        members.add(name);
        members.set(name, client);
    }
    members.complete();
    (cancel, running)
}

async fn create(client: &Client, path: &str, object: &Value) {
    let started = Instant::now();
    // A CRD is served a moment after it was created.
    while let Err(error) = request(client, "POST", path, object).await {
        assert!(started.elapsed() < PATIENCE, "{path}: {error}");
        sleep(Duration::from_millis(100)).await;
    }
}

fn addresses(slice: &Value) -> Vec<String> {
    let endpoints = slice["endpoints"].as_array().into_iter().flatten();
    let ready = endpoints.filter(|endpoint| endpoint["conditions"]["ready"] == true);
    let addresses = ready.filter_map(|endpoint| endpoint["addresses"][0].as_str());
    addresses.map(str::to_owned).collect()
}
