//! A host, three members, and discovery over them with snapshots on disk.

use std::{sync::Arc, time::Duration};

use control_plane::request;
use discovery::{
    Catalog, Discovery, DiscoveryMetrics, LoadedSnapshots, SnapshotDirectory, write_snapshots,
};
use fedrs_tests::install_crds;
use kube::Client;
use rand::{RngExt, rngs::StdRng, seq::IndexedRandom};
use serde_json::{Value, json};
use sim_cluster::{Object, SimCluster};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

const PODS: &str = "/api/v1/namespaces/default/pods";
const SETS: &str = "/apis/fedrs.dev/v1alpha1/namespaces/default/endpointsets";
const MEMBERS: [&str; 3] = ["eu", "us", "asia"];
/// How long answers wait for members that can't be listed.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct World {
    /// The host, and then the members.
    clusters: Vec<SimCluster>,
    running: Option<Running>,
    directory: TempDir,
    created: usize,
}

/// A process of the service.
struct Running {
    discovery: Discovery,
    snapshots: JoinHandle<()>,
    cancel: CancellationToken,
}

impl World {
    pub(crate) async fn start() -> Self {
        let host = SimCluster::builder("host").start();
        let user = user(&host);
        install_crds(&user).await;
        for (name, include) in [("serving", "Serving"), ("all", "All")] {
            let set = json!({
                "apiVersion": "fedrs.dev/v1alpha1", "kind": "EndpointSet", "metadata": { "name": name },
                "spec": { "source": { "selector": { "matchLabels": { "app": "web" } } }, "include": include },
            });
            request(&user, "POST", SETS, &set).await.unwrap();
        }
        let members = MEMBERS.map(|name| SimCluster::builder(name).nodes(2).start());
        let mut world = Self {
            clusters: [host].into_iter().chain(members).collect(),
            running: None,
            directory: tempfile::tempdir().unwrap(),
            created: 0,
        };
        world.run(LoadedSnapshots::default());
        world
    }

    fn run(&mut self, loaded: LoadedSnapshots) {
        let [host, members @ ..] = &self.clusters[..] else {
            panic!("there is a host");
        };
        let mut discovery = Discovery::start_from(loaded, &client(host), PATIENCE);
        for member in members {
            discovery.set_member(member.name(), &client(member));
        }
        discovery.members_known();
        let cancel = CancellationToken::new();
        let snapshots = tokio::spawn(write_snapshots(
            self.snapshots(),
            Arc::clone(discovery.catalog()),
            DiscoveryMetrics::default(),
            cancel.clone(),
        ));
        self.running = Some(Running {
            discovery,
            snapshots,
            cancel,
        });
    }

    fn snapshots(&self) -> SnapshotDirectory {
        SnapshotDirectory::new(self.directory.path().join("snapshots"))
    }

    /// Ends the service, which writes its last snapshots unless it crashes, and starts it again.
    pub(crate) async fn restart(&mut self, is_crash: bool) {
        self.end(is_crash).await;
        let loaded = self.snapshots().load();
        self.run(loaded);
    }

    async fn end(&mut self, is_crash: bool) {
        let running = self.running.take().unwrap();
        if is_crash {
            running.snapshots.abort();
        }
        running.cancel.cancel();
        let _ = running.snapshots.await;
        running.discovery.stop().await;
    }

    pub(crate) async fn stop(mut self) {
        self.end(true).await;
        for cluster in self.clusters {
            cluster.stop().await;
        }
    }

    pub(crate) fn catalog(&self) -> &Catalog {
        self.running.as_ref().unwrap().discovery.catalog()
    }

    /// The host, and then the members.
    pub(crate) fn clusters(&self) -> &[SimCluster] {
        &self.clusters
    }

    pub(crate) fn members(&self) -> &[SimCluster] {
        &self.clusters[1..]
    }

    /// All faults end.
    pub(crate) fn heal(&self) {
        for cluster in &self.clusters {
            cluster.faults().heal();
        }
    }

    /// A pod is created, which becomes ready.
    pub(crate) async fn create_pod(&mut self, rng: &mut StdRng) {
        let member = self.members().choose(rng).unwrap();
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": { "name": format!("web-{}", self.created), "labels": { "app": "web" } },
            "spec": { "containers": [{ "name": "main", "image": "web:1" }] },
        });
        request(&user(member), "POST", PODS, &pod).await.unwrap();
        self.created += 1;
    }

    /// A pod is deleted, with or without a grace period.
    pub(crate) async fn delete_pod(&self, rng: &mut StdRng) {
        let grace = rng.random_range(0..30);
        let options = json!({ "gracePeriodSeconds": grace });
        self.with_pod(rng, "DELETE", "", &options).await;
    }

    /// A pod stops being ready.
    pub(crate) async fn fail_pod(&self, rng: &mut StdRng) {
        let condition = json!({ "type": "Ready", "status": "False" });
        let status = json!({ "status": { "conditions": [condition] } });
        self.with_pod(rng, "PATCH", "/status", &status).await;
    }

    async fn with_pod(&self, rng: &mut StdRng, method: &str, subresource: &str, body: &Value) {
        let member = self.members().choose(rng).unwrap();
        if let Some(pod) = pods(member).choose(rng) {
            let name = pod["metadata"]["name"].as_str().unwrap();
            let path = format!("{PODS}/{name}{subresource}");
            // It may have gone at this moment.
            let _ = request(&user(member), method, &path, body).await;
        }
    }
}

/// The pods of a member, as it has them.
pub(crate) fn pods(member: &SimCluster) -> Vec<Object> {
    let kind = member.api().kind_of("v1", "Pod").unwrap();
    member.api().list(&kind, None)
}

/// A client that no fault concerns.
fn user(cluster: &SimCluster) -> Client {
    Client::new(cluster.direct_service(), "default")
}

fn client(cluster: &SimCluster) -> Client {
    Client::new(cluster.service(), "default")
}
