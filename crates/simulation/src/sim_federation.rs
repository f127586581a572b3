//! A host, its members and the controller in this process, on embedded clusters and paused time.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, LazyLock,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use federation_controller::{
    Controller, Running,
    clock::Clock,
    config::Config,
    election::Fence,
    members::{MemberEvent, MemberSecrets},
    metrics::Metrics,
};
use fedrs_api::{SetKind, names};
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use serde_json::{Value, json};
use sim_cluster::SimCluster;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::{
    changes::ChangeWaiter,
    connect::{Interceptors, Routes, member_file},
    crash::{CrashPoint, CrashableService, Lifetime},
    pace::Pace,
    request::request,
    set_kind,
};

/// The host's name among the clusters.
pub const HOST: &str = "host";
/// The namespace of the sets.
pub(crate) const NAMESPACE: &str = "default";
/// The time at which every scenario starts.
pub(crate) const EPOCH: i64 = 1_800_000_000;

/// The clusters and the configuration of a federation.
#[derive(Clone, Debug)]
pub struct SimFederationSpec {
    /// The members.
    pub members: Vec<SimMemberSpec>,
    /// The controller's configuration.
    pub config: Config,
    /// The seed of all randomness.
    pub seed: u64,
}

/// One member cluster.
#[derive(Clone, Debug)]
pub struct SimMemberSpec {
    /// Its name.
    pub name: String,
    /// How many nodes it has.
    pub nodes: usize,
    /// How many pods each node can run.
    pub pods_per_node: u32,
}

impl Default for SimFederationSpec {
    fn default() -> Self {
        let member = |name: &str| SimMemberSpec {
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

/// A running federation.
pub struct SimFederation {
    host: SimCluster,
    members: BTreeMap<String, SimCluster>,
    controller: Option<Process>,
    events: mpsc::Sender<MemberEvent>,
    /// What wraps the controller's clients, by member.
    interceptors: Interceptors,
    /// Members whose kubeconfig is in a Secret on the host.
    pub(crate) joined: BTreeSet<String>,
    /// Members whose kubeconfig was removed.
    removed: BTreeSet<String>,
    /// The names of FederatedDeployments; all other sets are FederatedReplicaSets.
    deployments: BTreeSet<String>,
    spec: SimFederationSpec,
    clock: Clock,
    /// By how many seconds the clock of the controller's machine was moved.
    stepped: Arc<AtomicI64>,
}

/// A controller in this process.
struct Process {
    lifetime: Lifetime,
    cancel: CancellationToken,
    running: Running,
}

/// The parts of the controllers of one process.
#[derive(Clone)]
pub(crate) struct ControllerParts {
    pub(crate) host: Client,
    secrets: MemberSecrets,
    pub(crate) config: Config,
    pub(crate) clock: Clock,
    seed: u64,
}

impl ControllerParts {
    /// A controller whose writes pass through `fence`.
    pub(crate) fn controller(
        self,
        members: mpsc::Receiver<MemberEvent>,
        fence: Fence,
    ) -> Controller {
        Controller {
            host: self.host,
            members,
            secrets: self.secrets,
            config: self.config,
            clock: self.clock,
            seed: self.seed,
            metrics: Metrics::default().into(),
            fence,
        }
    }
}

impl Process {
    /// Ends it, and waits until it has ended.
    async fn ended(self) {
        self.cancel.cancel();
        self.running.joined().await;
    }
}

impl SimFederation {
    /// Starts the clusters and installs the CRDs.
    pub async fn start_clusters(spec: SimFederationSpec) -> Self {
        start_logging();
        let epoch = Timestamp::from_second(EPOCH).unwrap();
        let host = SimCluster::builder(HOST)
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
        let stepped = Arc::<AtomicI64>::default();
        let clock = Clock::new({
            let (stepped, pace) = (Arc::clone(&stepped), Pace::default());
            move || {
                pace.count(started.elapsed());
                let stepped = SignedDuration::from_secs(stepped.load(Ordering::Relaxed));
                epoch + started.elapsed() + stepped
            }
        });
        let (events, _) = mpsc::channel(1);
        let federation = Self {
            host,
            members,
            controller: None,
            events,
            interceptors: Interceptors::default(),
            joined: BTreeSet::new(),
            removed: BTreeSet::new(),
            deployments: BTreeSet::new(),
            spec,
            clock,
            stepped,
        };
        install_crds(&client(&federation.host)).await;
        federation
    }

    /// Starts the clusters and the controller.
    pub async fn start(spec: SimFederationSpec) -> Self {
        let mut federation = Self::start_clusters(spec).await;
        federation.start_controller().await;
        federation
    }

    /// Starts a federation of three members in which `replicas` of the set `web` run, evenly spread and free to be rebalanced.
    pub async fn running(replicas: u32) -> Self {
        let federation = Self::start(SimFederationSpec::default()).await;
        federation.run(replicas).await;
        federation
    }

    /// Creates the set `web`, evenly spread and free to be rebalanced, and waits until `replicas` of it are available.
    pub async fn run(&self, replicas: u32) {
        self.create(&frs("web", replicas, &even(true))).await;
        let all = u64::from(replicas);
        self.wait_until("all replicas are available", 30, async |federation| {
            federation.available("web") == all
        })
        .await;
    }

    /// Starts a controller: the first one, or another after [`stop_controller`](Self::stop_controller).
    pub async fn start_controller(&mut self) {
        self.start_controller_until(None).await;
    }

    /// Starts a controller that crashes at `crash`; [`wait_for_crash`](Self::wait_for_crash) waits for that.
    pub async fn start_controller_until(&mut self, crash: Option<CrashPoint>) {
        let all = self.member_names();
        self.start_controller_of(all.iter().map(String::as_str), crash)
            .await;
    }

    /// Starts a controller that knows only these members and crashes at `crash`.
    pub async fn start_controller_of(
        &mut self,
        members: impl Iterator<Item = &str>,
        crash: Option<CrashPoint>,
    ) {
        assert!(self.controller.is_none(), "one controller at a time");
        let (events, member_events) = mpsc::channel(64);
        self.events = events;
        let cancel = CancellationToken::new();
        let lifetime = Lifetime::until(crash);
        let controller = self
            .parts(&lifetime)
            .controller(member_events, Fence::open());
        let running = controller.start(cancel.clone()).await.unwrap();
        self.controller = Some(Process {
            lifetime,
            cancel,
            running,
        });
        for name in members {
            if !self.joined.contains(name) && !self.removed.contains(name) {
                self.add_member(name).await;
            }
        }
        self.events.send(MemberEvent::Complete).await.unwrap();
    }

    /// What a controller with this lifetime is made of.
    pub(crate) fn parts(&self, lifetime: &Lifetime) -> ControllerParts {
        ControllerParts {
            host: client_until_crash(&self.host, lifetime),
            secrets: self.secrets(lifetime),
            config: self.spec.config.clone(),
            clock: self.clock.clone(),
            seed: self.spec.seed,
        }
    }

    /// The lifetime of the running controller.
    fn lifetime(&self) -> Option<&Lifetime> {
        self.controller.as_ref().map(|process| &process.lifetime)
    }

    /// Shuts the controller down gracefully.
    pub async fn stop_controller(&mut self) {
        self.controller.take().unwrap().ended().await;
    }

    /// Kills the controller, if there is one: it sends nothing more.
    pub async fn kill_controller(&mut self) {
        if let Some(process) = self.controller.take() {
            process.lifetime.end();
            process.ended().await;
        }
    }

    /// Waits until the controller has crashed and removes it. Returns whether it crashed within `seconds`; if not, the
    /// controller is killed.
    pub async fn wait_for_crash(&mut self, seconds: u64) -> bool {
        let lifetime = self.lifetime().unwrap().clone();
        let crashed = tokio::time::timeout(Duration::from_secs(seconds), lifetime.ended()).await;
        self.kill_controller().await;
        crashed.is_ok()
    }

    /// Writes that the running controller has sent.
    pub fn writes(&self) -> u64 {
        self.lifetime().map_or(0, Lifetime::writes)
    }

    /// Writes that were rejected because their precondition failed.
    pub fn conflicts(&self) -> u64 {
        self.lifetime().map_or(0, Lifetime::conflicts)
    }

    /// Adds a member to the controller: the first time, or again after its kubeconfig changed.
    pub async fn add_member(&mut self, name: &str) {
        self.removed.remove(name);
        self.add_member_as(name, name).await;
    }

    /// Adds the member `cluster` to the controller under another name, `name`.
    pub async fn add_member_as(&mut self, name: &str, cluster: &str) {
        let event = member_file(name, cluster);
        self.events.send(event).await.unwrap();
    }

    /// Wraps the controller's client of the member `name` by `interceptor`, from its next kubeconfig on.
    pub fn intercept(
        &self,
        name: &str,
        interceptor: impl Fn(Client) -> Client + Send + Sync + 'static,
    ) {
        let mut all = self.interceptors.lock();
        all.insert(name.to_owned(), Box::new(interceptor));
    }

    /// Removes a member's kubeconfig.
    pub async fn remove_member(&mut self, name: &str) {
        self.removed.insert(name.to_owned());
        let name = name.to_owned();
        self.events.send(MemberEvent::Gone { name }).await.unwrap();
    }

    /// How the controller creates clients from kubeconfigs in Secrets.
    fn secrets(&self, lifetime: &Lifetime) -> MemberSecrets {
        let service = |(name, cluster): (&String, &SimCluster)| {
            (name.clone(), CrashableService::new(cluster, lifetime))
        };
        MemberSecrets {
            namespace: names::SYSTEM_NAMESPACE.to_owned(),
            connect: Arc::new(Routes {
                services: self.members.iter().map(service).collect(),
                interceptors: Arc::clone(&self.interceptors),
            }),
        }
    }

    /// The host cluster, to inject faults.
    pub fn host(&self) -> &SimCluster {
        &self.host
    }

    /// A member cluster, to inject faults.
    pub fn member(&self, name: &str) -> &SimCluster {
        &self.members[name]
    }

    /// The host by the name [`HOST`], or a member.
    pub fn cluster(&self, name: &str) -> &SimCluster {
        self.members.get(name).unwrap_or(&self.host)
    }

    /// The controller's configuration.
    pub(crate) fn config(&self) -> &Config {
        &self.spec.config
    }

    /// The names of all members, in order.
    pub fn member_names(&self) -> Vec<String> {
        self.members.keys().cloned().collect()
    }

    /// Follows the changes of all clusters from now on.
    pub fn change_waiter(&self) -> ChangeWaiter {
        ChangeWaiter::new(self.members.values().chain([&self.host]))
    }

    /// The current time of the federation.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The time of the controller's machine.
    pub(crate) fn machine_time(&self) -> Timestamp {
        self.clock.machine()
    }

    /// Moves the clock of the controller's machine by whole seconds, as a correction of a wrong clock does.
    pub fn step_clock(&self, by: SignedDuration) {
        self.stepped.fetch_add(by.as_secs(), Ordering::Relaxed);
    }

    /// Sends a request to the host as a user.
    pub async fn on_host(&self, method: &str, path: &str, body: &Value) -> kube::Result<Value> {
        request(&client(&self.host), method, path, body).await
    }

    /// Sends a request to a member as a user of that cluster.
    pub async fn on_member(
        &self,
        name: &str,
        method: &str,
        path: &str,
        body: &Value,
    ) -> kube::Result<Value> {
        request(&client(&self.members[name]), method, path, body).await
    }

    /// Has the set `name` be a FederatedDeployment from now on.
    pub fn deploys(&mut self, name: &str) {
        self.deployments.insert(name.to_owned());
    }

    /// The kind of the set `name`.
    pub(crate) fn kind_of(&self, name: &str) -> SetKind {
        if self.deployments.contains(name) {
            SetKind::FederatedDeployment
        } else {
            SetKind::FederatedReplicaSet
        }
    }

    /// The path of a set on the host.
    pub(crate) fn set_path(&self, name: &str) -> String {
        format!("{}/{name}", set_kind::collection(self.kind_of(name)))
    }

    /// The path of its local sets in the members.
    pub(crate) fn local_path(&self, name: &str) -> String {
        format!("{}/{name}", set_kind::local_collection(self.kind_of(name)))
    }

    /// Creates a set: a FederatedReplicaSet, unless its name is that of a FederatedDeployment.
    pub async fn create(&self, frs: &Value) {
        let kind = self.kind_of(frs["metadata"]["name"].as_str().unwrap_or_default());
        let mut set = frs.clone();
        set["kind"] = set_kind::name(kind).into();
        let path = set_kind::collection(kind);
        self.on_host("POST", &path, &set).await.unwrap();
    }

    /// Deletes the FederatedReplicaSet `name` as `kubectl delete` does without options.
    pub async fn delete(&self, name: &str) {
        let path = self.set_path(name);
        self.on_host("DELETE", &path, &Value::Null).await.unwrap();
    }

    /// Changes the FederatedReplicaSet `name` by a merge patch.
    pub async fn patch(&self, name: &str, patch: &Value) {
        let path = self.set_path(name);
        self.on_host("PATCH", &path, patch).await.unwrap();
    }

    /// Waits until `holds`, at most `seconds`; panics with the state of the federation if it never does.
    pub async fn wait_until(
        &self,
        what: &str,
        seconds: u64,
        mut holds: impl AsyncFnMut(&Self) -> bool,
    ) {
        let deadline = tokio::time::Instant::now() + Duration::from_secs(seconds);
        let mut changes = self.change_waiter();
        while !holds(self).await {
            let late = tokio::time::Instant::now() >= deadline;
            let state = if late {
                self.describe().await
            } else {
                String::new()
            };
            assert!(!late, "timed out after {seconds} s: {what}\n{state}");
            changes.next(deadline).await;
        }
    }
}

/// Advances the paused time by some minutes.
pub async fn minutes(count: u64) {
    tokio::time::sleep(Duration::from_secs(60 * count)).await;
}

/// `FEDRS_LOG=debug` prints the log of a failing scenario.
pub(crate) fn start_logging() {
    if let Ok(filter) = std::env::var("FEDRS_LOG") {
        // The scenarios of one process share the subscriber.
        let _ = tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_test_writer()
            .try_init();
    }
}

/// Installs the CRDs of fedrs on a host.
pub async fn install_crds(host: &Client) {
    /// Generated once: each run of a batch installs them.
    static CRDS: LazyLock<Vec<Value>> = LazyLock::new(|| {
        let crds = fedrs_api::crd::all().into_iter();
        crds.map(|crd| serde_json::to_value(crd).unwrap()).collect()
    });
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    for crd in CRDS.iter() {
        request(host, "POST", path, crd).await.unwrap();
    }
}

/// The collection of the scenarios' FederatedReplicaSets.
pub const FRS_PATH: &str = "/apis/fedrs.dev/v1alpha1/namespaces/default/federatedreplicasets";
/// The collection of the scenarios' FederatedDeployments.
pub const FDEPLOY_PATH: &str = "/apis/fedrs.dev/v1alpha1/namespaces/default/federateddeployments";

/// A client of an embedded cluster that works until the controller with this lifetime ends.
pub fn client_until_crash(cluster: &SimCluster, lifetime: &Lifetime) -> Client {
    Client::new(CrashableService::new(cluster, lifetime), "default")
}

/// A client of an embedded cluster, without a network.
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

/// A placement that spreads evenly over all clusters.
pub fn even(rebalance: bool) -> Value {
    json!({ "rebalance": rebalance, "clusters": { "*": { "weight": 1 } } })
}
