//! The embedded host and members in real time, and a controller whose writes are counted.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use anyhow::Context;
use federation_controller::{
    Controller, Readiness, Running,
    clock::Clock,
    config::Config,
    election::Fence,
    members::{MemberEvent, MemberSecrets, directory},
    metrics::Metrics,
};
use fedrs_api::{SetKind, names};
use fedrs_tests::{AdministratorClients, install_crds, member_file};
use jiff::Timestamp;
use kube::{Client, client::ClientBuilder, config::KubeConfigOptions};
use serde_json::Value;
use sim_cluster::{Server, SimCluster, kinds};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{args::SettleArgs, writes::WriteLog};

/// Pods that a node of a member can run, as kubelets have it.
const PODS_PER_NODE: usize = 110;
/// The seed of uids and pauses; any number.
const SEED: u64 = 1;

/// A member is lost after this time without a response.
const GRACE_PERIOD: Duration = Duration::from_secs(5);
/// How long a returned member has to be healthy, after its nodes have reported.
pub(super) const STABILIZATION_WINDOW: Duration = Duration::from_secs(20);

/// The host and the members.
pub(super) struct Clusters {
    host: Cluster,
    members: Vec<Cluster>,
    writes: WriteLog,
    set_kind: SetKind,
}

/// A cluster, with an HTTPS server if there is one.
struct Cluster {
    sim: SimCluster,
    server: Option<Server>,
}

/// A running controller. The channel of member events stays open as long as it runs.
pub(super) struct RunningController {
    running: Running,
    cancel: CancellationToken,
    _members: mpsc::Sender<MemberEvent>,
}

impl Clusters {
    /// Starts the clusters and installs the CRDs. Each member has capacity for two replicas of every set: one may be lost.
    pub(super) async fn start(args: &SettleArgs) -> anyhow::Result<Self> {
        // One node more than necessary, so that no pod is unschedulable.
        let nodes = (2 * args.sets).div_ceil(PODS_PER_NODE) + 1;
        let host = Cluster::start("host", 0, args.https).await?;
        let mut members = Vec::new();
        for number in 1..=args.members {
            members.push(Cluster::start(&format!("member-{number}"), nodes, args.https).await?);
        }
        let clusters = Self {
            host,
            members,
            writes: WriteLog::default(),
            set_kind: args.set_kind(),
        };
        install_crds(&clusters.user().await?).await;
        Ok(clusters)
    }

    /// The writes of the controller.
    pub(super) fn writes(&self) -> &WriteLog {
        &self.writes
    }

    /// A client of the host whose writes are not recorded.
    pub(super) async fn user(&self) -> anyhow::Result<Client> {
        self.host.client(&WriteLog::default()).await
    }

    /// Starts a controller with all members.
    pub(super) async fn start_controller(&self) -> anyhow::Result<RunningController> {
        let (events, members) = mpsc::channel(self.members.len() + 1);
        let mut clients = BTreeMap::new();
        for member in &self.members {
            let name = member.sim.name();
            clients.insert(name.to_owned(), member.client(&self.writes).await?);
            events.send(member_file(name, name)).await?;
        }
        events.send(MemberEvent::Complete).await?;
        let controller = Controller {
            host: self.host.client(&self.writes).await?,
            members,
            secrets: MemberSecrets {
                namespace: names::SYSTEM_NAMESPACE.to_owned(),
                connect: Arc::new(AdministratorClients(clients)),
            },
            config: Config {
                lost_grace_period: Some(GRACE_PERIOD),
                stabilization_window: STABILIZATION_WINDOW,
                ..Config::default()
            },
            clock: Clock::system(),
            seed: SEED,
            metrics: Metrics::default().into(),
            fence: Fence::open(),
        };
        let cancel = CancellationToken::new();
        let running = controller.start(cancel.clone()).await;
        Ok(RunningController {
            running: running.context("the controller was cancelled")?,
            cancel,
            _members: events,
        })
    }

    /// The number of members that are ready and synced.
    pub(super) fn members_ready(&self) -> usize {
        let is_ready = |member: &Value| {
            let conditions = member["status"]["conditions"].as_array();
            let is_true = |condition: &Value| condition["status"] == "True";
            conditions.is_some_and(|all| !all.is_empty() && all.iter().all(is_true))
        };
        self.on_host("MemberCluster", is_ready)
    }

    /// The number of members that were lost, and have to be healthy for a while.
    pub(super) fn stabilizing(&self) -> usize {
        let is_stabilizing = |member: &Value| {
            let conditions = member["status"]["conditions"].as_array();
            let is_reason = |condition: &Value| condition["reason"] == "Stabilizing";
            conditions.is_some_and(|all| all.iter().any(is_reason))
        };
        self.on_host("MemberCluster", is_stabilizing)
    }

    /// The number of local sets in all members.
    pub(super) fn local_sets(&self) -> usize {
        self.members.iter().map(|of| self.sets_in(of).len()).sum()
    }

    fn sets_in(&self, member: &Cluster) -> Vec<Arc<Value>> {
        let kind = match self.set_kind {
            SetKind::FederatedReplicaSet => &kinds::REPLICA_SETS,
            SetKind::FederatedDeployment => &kinds::DEPLOYMENTS,
        };
        member.sim.api().list(kind, None)
    }

    /// Ends or restores the connection to the last member.
    pub(super) fn set_last_unreachable(&self, unreachable: bool) {
        if let Some(last) = self.members.last() {
            last.sim.faults().set_unreachable(unreachable);
        }
    }

    /// `spec.replicas` of all local sets in each member.
    pub(super) fn requested(&self) -> Vec<u64> {
        let of = |member: &Cluster| {
            let sets = self.sets_in(member);
            let replicas = |set: &Value| set["spec"]["replicas"].as_u64();
            sets.iter().filter_map(|set| replicas(set)).sum()
        };
        self.members.iter().map(of).collect()
    }

    /// The number of ready pods in all members, and in all but the last.
    pub(super) fn ready_pods(&self) -> (usize, usize) {
        let is_ready = |pod: &Value| {
            let conditions = pod["status"]["conditions"].as_array();
            let is_ready =
                |condition: &Value| condition["type"] == "Ready" && condition["status"] == "True";
            conditions.is_some_and(|all| all.iter().any(is_ready))
        };
        let of = |member: &Cluster| {
            let pods = member.sim.api().list(&kinds::PODS, None);
            pods.iter().filter(|pod| is_ready(pod)).count()
        };
        let of_each: Vec<usize> = self.members.iter().map(of).collect();
        let all = of_each.iter().sum();
        (all, all - of_each.last().unwrap_or(&0))
    }

    /// The number of sets whose status has this number of ready replicas.
    pub(super) fn ready_statuses(&self, replicas: usize) -> usize {
        self.on_host(self.set_kind.as_str(), |frs| {
            frs["status"]["readyReplicas"] == replicas
        })
    }

    /// The resource version of the last change of the host, and of the last change of a local set in each member: the
    /// heartbeats of nodes change a member all the time.
    pub(super) fn versions(&self) -> Vec<u64> {
        let last_set = |member: &Cluster| {
            let sets = self.sets_in(member);
            let version = |set: &Value| set["metadata"]["resourceVersion"].as_str()?.parse().ok();
            sets.iter().filter_map(|set| version(set)).max()
        };
        let host = Some(self.host.sim.api().revision());
        let members = self.members.iter().map(last_set);
        std::iter::once(host)
            .chain(members)
            .map(Option::unwrap_or_default)
            .collect()
    }

    fn on_host(&self, kind: &str, counts: impl Fn(&Value) -> bool) -> usize {
        let api = self.host.sim.api();
        let Some(kind) = api.kind_of("fedrs.dev/v1alpha1", kind) else {
            return 0;
        };
        let objects = api.list(&kind, None);
        objects.iter().filter(|object| counts(object)).count()
    }

    /// Stops all clusters.
    pub(super) async fn stop(self) {
        for cluster in std::iter::once(self.host).chain(self.members) {
            if let Some(server) = cluster.server {
                server.stop().await;
            }
            cluster.sim.stop().await;
        }
    }
}

impl RunningController {
    /// Whether the controller is ready.
    pub(super) fn readiness(&self) -> Readiness {
        self.running.readiness()
    }

    /// Stops the controller and waits for its tasks.
    pub(super) async fn stop(self) {
        self.cancel.cancel();
        self.running.joined().await;
    }
}

impl Cluster {
    async fn start(name: &str, nodes: usize, https: bool) -> anyhow::Result<Self> {
        let pods = u32::try_from(PODS_PER_NODE).context("too many pods per node")?;
        let sim = SimCluster::builder(name)
            .nodes(nodes)
            .node_resources("64", "256Gi", pods)
            .seed(SEED)
            .epoch(Timestamp::now())
            .start();
        let server = if https {
            Some(sim.serve(None).await?)
        } else {
            None
        };
        Ok(Self { sim, server })
    }

    /// A client as the controller uses them, without retries. Its writes are recorded in `writes`.
    async fn client(&self, writes: &WriteLog) -> anyhow::Result<Client> {
        let recorder = writes.recorder(self.sim.name());
        let Some(server) = &self.server else {
            let service = tower::Layer::layer(&recorder, self.sim.service());
            return Ok(Client::new(service, "default"));
        };
        let kubeconfig = kube::config::Kubeconfig::from_yaml(&server.kubeconfig().to_yaml())?;
        let options = KubeConfigOptions::default();
        let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await?;
        directory::harden(&mut config);
        let builder = ClientBuilder::try_from(config)?;
        Ok(builder.with_layer(&recorder).build())
    }
}
