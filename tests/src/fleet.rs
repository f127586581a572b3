//! A host and its members, with the controller that works on them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use control_plane::request;
use federation_controller::{
    Controller, Running,
    clock::Clock,
    config::Config,
    election::Fence,
    members::{MemberEvent, MemberSecrets},
    metrics::Metrics,
};
use fedrs_api::names;
use jiff::Timestamp;
use kube::Client;
use serde_json::{Value, json};
use sim_cluster::SimCluster;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::{
    changes::Looks,
    connect::Routes,
    link::{CrashPoint, Life, Link},
};

/// When every scenario begins.
const EPOCH: i64 = 1_800_000_000;

/// What a fleet is made of.
#[derive(Clone, Debug)]
pub struct FleetSpec {
    /// The members.
    pub members: Vec<MemberSpec>,
    /// The controller's configuration.
    pub config: Config,
    /// Everything random comes from it.
    pub seed: u64,
}

/// One member cluster.
#[derive(Clone, Debug)]
pub struct MemberSpec {
    /// Its name.
    pub name: String,
    /// How many nodes it has.
    pub nodes: usize,
    /// How many pods a node can run.
    pub pods_per_node: u32,
}

impl Default for FleetSpec {
    fn default() -> Self {
        let member = |name: &str| MemberSpec {
            name: name.to_owned(),
            nodes: 3,
            pods_per_node: 110,
        };
        Self {
            members: ["a", "b", "c"].map(member).into(),
            config: Config::default(),
            seed: 1,
        }
    }
}

/// A running fleet.
pub struct Fleet {
    host: SimCluster,
    members: BTreeMap<String, SimCluster>,
    controller: Option<(Running, CancellationToken, Life)>,
    events: mpsc::Sender<MemberEvent>,
    /// Members whose kubeconfig is in a Secret of the host.
    pub(crate) joined: BTreeSet<String>,
    /// Members without a kubeconfig.
    removed: BTreeSet<String>,
    spec: FleetSpec,
    clock: Clock,
}

impl Fleet {
    /// Starts the clusters and installs the CRDs.
    pub async fn start_clusters(spec: FleetSpec) -> Self {
        log_if_asked();
        let epoch = Timestamp::from_second(EPOCH).unwrap();
        let host = SimCluster::builder("host")
            .nodes(0)
            .seed(spec.seed)
            .epoch(epoch)
            .start();
        let mut members = BTreeMap::new();
        for member in &spec.members {
            let cluster = SimCluster::builder(&member.name)
                .nodes(member.nodes)
                .node_resources("64", "256Gi", member.pods_per_node)
                .seed(spec.seed)
                .epoch(epoch)
                .start();
            members.insert(member.name.clone(), cluster);
        }
        let started = tokio::time::Instant::now();
        let clock = Clock::new(move || epoch + started.elapsed());
        let (events, _) = mpsc::channel(1);
        let fleet = Self {
            host,
            members,
            controller: None,
            events,
            joined: BTreeSet::new(),
            removed: BTreeSet::new(),
            spec,
            clock,
        };
        for crd in fedrs_api::crd::all() {
            let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
            fleet
                .on_host("POST", path, &serde_json::to_value(crd).unwrap())
                .await
                .unwrap();
        }
        fleet
    }

    /// Starts the clusters and the controller.
    pub async fn start(spec: FleetSpec) -> Self {
        let mut fleet = Self::start_clusters(spec).await;
        fleet.start_controller().await;
        fleet
    }

    /// A fleet of three members in which `replicas` of the set `web` run, evenly spread, and may be moved.
    pub async fn running(replicas: u32) -> Self {
        let fleet = Self::start(FleetSpec::default()).await;
        fleet.run(replicas).await;
        fleet
    }

    /// Makes the set `web`, evenly spread and free to be moved, and waits until `replicas` of it run.
    pub async fn run(&self, replicas: u32) {
        self.create(&frs("web", replicas, &even(true))).await;
        let all = u64::from(replicas);
        self.wait_until("all run", 30, async |it| it.available("web") == all)
            .await;
    }

    /// Starts a controller: a first one, or another after [`stop_controller`](Self::stop_controller).
    pub async fn start_controller(&mut self) {
        self.start_controller_until(None).await;
    }

    /// Starts a controller that crashes at `crash`; [`bury_controller`](Self::bury_controller) waits for that.
    pub async fn start_controller_until(&mut self, crash: Option<CrashPoint>) {
        let all = self.member_names();
        self.start_controller_of(all.iter().map(String::as_str), crash)
            .await;
    }

    /// Starts a controller that knows only these members, and crashes at `crash`.
    pub(crate) async fn start_controller_of(
        &mut self,
        members: impl Iterator<Item = &str>,
        crash: Option<CrashPoint>,
    ) {
        let life = Life::until(crash);
        assert!(self.controller.is_none(), "one controller at a time");
        let (events, told) = mpsc::channel(64);
        self.events = events;
        let cancel = CancellationToken::new();
        let controller = Controller {
            host: linked(&self.host, &life),
            members: told,
            secrets: self.secrets(&life),
            config: self.spec.config.clone(),
            clock: self.clock.clone(),
            seed: self.spec.seed,
            metrics: Metrics::default().into(),
            fence: Fence::open(),
        };
        let running = controller.start(cancel.clone()).await.unwrap();
        self.controller = Some((running, cancel, life));
        for name in members {
            if !self.joined.contains(name) && !self.removed.contains(name) {
                self.add_member(name).await;
            }
        }
        self.events.send(MemberEvent::Complete).await.unwrap();
    }

    /// Ends the controller in order.
    pub async fn stop_controller(&mut self) {
        let (running, cancel, _) = self.controller.take().unwrap();
        cancel.cancel();
        running.joined().await;
    }

    /// Ends the controller without a word, if there is one.
    pub(crate) async fn kill_controller(&mut self) {
        if let Some((running, cancel, life)) = self.controller.take() {
            life.end();
            cancel.cancel();
            running.joined().await;
        }
    }

    /// Waits until the controller has crashed, and clears it away. Answers whether it crashed within `seconds`;
    /// if not it is stopped.
    pub async fn bury_controller(&mut self, seconds: u64) -> bool {
        let (running, cancel, life) = self.controller.take().unwrap();
        let crashed = tokio::time::timeout(Duration::from_secs(seconds), life.ended()).await;
        life.end();
        cancel.cancel();
        running.joined().await;
        crashed.is_ok()
    }

    /// Writes that the running controller has sent.
    pub fn writes(&self) -> u64 {
        self.controller
            .as_ref()
            .map_or(0, |(_, _, life)| life.writes())
    }

    /// Of these: changes of an object that was no longer as expected.
    pub fn conflicts(&self) -> u64 {
        self.controller
            .as_ref()
            .map_or(0, |(_, _, life)| life.conflicts())
    }

    /// Tells the controller of a member: the first time, or again after its kubeconfig changed.
    pub async fn add_member(&mut self, name: &str) {
        self.removed.remove(name);
        self.add_member_as(name, name).await;
    }

    /// Tells the controller of the member `cluster` under the name `name`, beside what it is told already.
    pub async fn add_member_as(&mut self, name: &str, cluster: &str) {
        let (_, _, life) = self.controller.as_ref().unwrap();
        let client = linked(&self.members[cluster], life);
        let event = MemberEvent::Present {
            name: name.to_owned(),
            client,
        };
        self.events.send(event).await.unwrap();
    }

    /// Takes a member's kubeconfig away.
    pub async fn remove_member(&mut self, name: &str) {
        self.removed.insert(name.to_owned());
        self.events
            .send(MemberEvent::Gone {
                name: name.to_owned(),
            })
            .await
            .unwrap();
    }

    /// How the controller makes clients of kubeconfigs in Secrets.
    fn secrets(&self, life: &Life) -> MemberSecrets {
        let link = |(name, cluster): (&String, &SimCluster)| (name.clone(), link(cluster, life));
        MemberSecrets {
            namespace: names::SYSTEM_NAMESPACE.to_owned(),
            connect: Arc::new(Routes(self.members.iter().map(link).collect())),
        }
    }

    /// The host cluster itself, for faults.
    pub fn host(&self) -> &SimCluster {
        &self.host
    }

    /// A member cluster itself, for faults.
    pub fn member(&self, name: &str) -> &SimCluster {
        &self.members[name]
    }

    /// All members' names, in order.
    pub fn member_names(&self) -> Vec<String> {
        self.members.keys().cloned().collect()
    }

    /// Looks at all clusters from now on.
    pub(crate) fn looks(&self) -> Looks {
        let names = self.member_names();
        let members = names.iter().map(|name| self.member(name));
        Looks::at(members.chain([self.host()]))
    }

    /// The time in the fleet.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// A request to the host as a user makes it.
    pub async fn on_host(&self, method: &str, path: &str, body: &Value) -> kube::Result<Value> {
        request(&client(&self.host), method, path, body).await
    }

    /// A request to a member as its own user makes it.
    pub async fn on_member(
        &self,
        name: &str,
        method: &str,
        path: &str,
        body: &Value,
    ) -> kube::Result<Value> {
        request(&client(&self.members[name]), method, path, body).await
    }

    /// Creates a FederatedReplicaSet.
    pub async fn create(&self, frs: &Value) {
        self.on_host("POST", FRS_PATH, frs).await.unwrap();
    }

    /// Deletes the FederatedReplicaSet `name` as kubectl does without options.
    pub async fn delete(&self, name: &str) {
        let path = format!("{FRS_PATH}/{name}");
        self.on_host("DELETE", &path, &Value::Null).await.unwrap();
    }

    /// Changes the FederatedReplicaSet `name` by a merge patch.
    pub async fn patch(&self, name: &str, patch: &Value) {
        self.on_host("PATCH", &format!("{FRS_PATH}/{name}"), patch)
            .await
            .unwrap();
    }

    /// Waits until `holds`, at most `seconds`; panics with what the fleet held if it never does.
    pub async fn wait_until(
        &self,
        what: &str,
        seconds: u64,
        mut holds: impl AsyncFnMut(&Self) -> bool,
    ) {
        let deadline = tokio::time::Instant::now() + Duration::from_secs(seconds);
        let mut looks = self.looks();
        while !holds(self).await {
            let late = tokio::time::Instant::now() >= deadline;
            let state = if late {
                self.describe().await
            } else {
                String::new()
            };
            assert!(!late, "not within {seconds} s: {what}\n{state}");
            looks.next(deadline).await;
        }
    }
}

/// Lets minutes of paused time go by.
pub async fn minutes(count: u64) {
    tokio::time::sleep(Duration::from_secs(60 * count)).await;
}

/// `FEDRS_LOG=debug` shows what a failing scenario did.
fn log_if_asked() {
    if let Ok(filter) = std::env::var("FEDRS_LOG") {
        // The scenarios of one process share it.
        let _ = tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_test_writer()
            .try_init();
    }
}

/// Where the scenarios' FederatedReplicaSets are.
pub(crate) const FRS_PATH: &str =
    "/apis/fedrs.dev/v1alpha1/namespaces/default/federatedreplicasets";

/// A client of an embedded cluster for a controller with this life.
pub fn linked(cluster: &SimCluster, life: &Life) -> Client {
    Client::new(link(cluster, life), "default")
}

fn link(cluster: &SimCluster, life: &Life) -> Link {
    Link {
        life: life.clone(),
        service: cluster.service(),
    }
}

/// A client of an embedded cluster, without network.
pub(crate) fn client(cluster: &SimCluster) -> Client {
    Client::new(cluster.service(), "default")
}

/// A FederatedReplicaSet in the namespace `default`.
pub fn frs(name: &str, replicas: u32, placement: &Value) -> Value {
    json!({
        "apiVersion": "fedrs.dev/v1alpha1",
        "kind": "FederatedReplicaSet",
        "metadata": { "name": name, "namespace": "default" },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": { "app": name } },
            "template": {
                "metadata": { "labels": { "app": name } },
                "spec": { "containers": [{ "name": "main", "image": "registry.example/main:1" }] },
            },
            "placement": placement,
        },
    })
}

/// Preferences that spread evenly over all clusters.
pub fn even(rebalance: bool) -> Value {
    json!({ "rebalance": rebalance, "clusters": { "*": { "weight": 1 } } })
}
