//! A host and its members in real time, with a controller whose writes are counted.

use anyhow::Context;
use control_plane::request;
use federation_controller::{
    Controller, Readiness, Running,
    clock::Clock,
    config::Config,
    election::Fence,
    members::{MemberEvent, MemberSecrets, directory},
    metrics::Metrics,
};
use jiff::Timestamp;
use kube::{Client, client::ClientBuilder, config::KubeConfigOptions};
use serde_json::Value;
use sim_cluster::{Server, SimCluster, kinds};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{SettleArgs, writes::Ledger};

/// Pods that a node of a member can run, as kubelets have it.
const PODS_PER_NODE: usize = 110;
/// Decides uids and pauses; any number will do.
const SEED: u64 = 1;

/// The clusters, and the controller over them.
pub(super) struct Fleet {
    host: Cluster,
    members: Vec<Cluster>,
    ledger: Ledger,
}

/// A cluster, and its HTTPS server if it has one.
struct Cluster {
    sim: SimCluster,
    server: Option<Server>,
}

/// A running controller; its members' channel stays open as long as it runs.
pub(super) struct RunningController {
    running: Running,
    cancel: CancellationToken,
    _members: mpsc::Sender<MemberEvent>,
}

impl Fleet {
    /// Starts the clusters and installs the CRDs. Each member has room for a replica of every set.
    pub(super) async fn start(args: &SettleArgs) -> anyhow::Result<Self> {
        // A node more than is needed, so that no pod waits for a place.
        let nodes = args.sets.div_ceil(PODS_PER_NODE) + 1;
        let host = Cluster::start("host", 0, args.https).await?;
        let mut members = Vec::new();
        for number in 1..=args.members {
            members.push(Cluster::start(&format!("member-{number}"), nodes, args.https).await?);
        }
        let fleet = Self {
            host,
            members,
            ledger: Ledger::default(),
        };
        for crd in fedrs_api::crd::all() {
            let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
            let crd = serde_json::to_value(crd).context("a CRD is plain data")?;
            request(&fleet.user().await?, "POST", path, &crd).await?;
        }
        Ok(fleet)
    }

    /// What the controller has written.
    pub(super) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// A client of the host whose writes are not the controller's.
    pub(super) async fn user(&self) -> anyhow::Result<Client> {
        self.host.client(&Ledger::default()).await
    }

    /// Starts a controller with all members.
    pub(super) async fn start_controller(&self) -> anyhow::Result<RunningController> {
        let (events, members) = mpsc::channel(self.members.len() + 1);
        for member in &self.members {
            let event = MemberEvent::Present {
                name: member.sim.name().to_owned(),
                client: member.client(&self.ledger).await?,
            };
            events.send(event).await?;
        }
        events.send(MemberEvent::Complete).await?;
        let controller = Controller {
            host: self.host.client(&self.ledger).await?,
            members,
            secrets: MemberSecrets::default(),
            config: Config::default(),
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

    /// Members that the controller has found to be ready and has a current view of.
    pub(super) fn members_ready(&self) -> usize {
        let is_ready = |member: &Value| {
            let conditions = member["status"]["conditions"].as_array();
            let holds = |it: &Value| it["status"] == "True";
            conditions.is_some_and(|all| !all.is_empty() && all.iter().all(holds))
        };
        self.on_host("MemberCluster", is_ready)
    }

    /// Local sets over all members.
    pub(super) fn local_sets(&self) -> usize {
        let of = |member: &Cluster| member.sim.api().list(&kinds::REPLICA_SETS, None).len();
        self.members.iter().map(of).sum()
    }

    /// Ready pods over all members.
    pub(super) fn ready_pods(&self) -> usize {
        let is_ready = |pod: &Value| {
            let conditions = pod["status"]["conditions"].as_array();
            let says_so = |it: &Value| it["type"] == "Ready" && it["status"] == "True";
            conditions.is_some_and(|all| all.iter().any(says_so))
        };
        let of = |member: &Cluster| {
            let pods = member.sim.api().list(&kinds::PODS, None);
            pods.iter().filter(|pod| is_ready(pod)).count()
        };
        self.members.iter().map(of).sum()
    }

    /// FederatedReplicaSets whose status tells that `replicas` are ready.
    pub(super) fn told_ready(&self, replicas: usize) -> usize {
        self.on_host("FederatedReplicaSet", |frs| {
            frs["status"]["readyReplicas"] == replicas
        })
    }

    /// The versions of the last change of the host and, by local sets alone, of the members: their nodes'
    /// heartbeats go on for ever.
    pub(super) fn versions(&self) -> Vec<u64> {
        let last_set = |member: &Cluster| {
            let sets = member.sim.api().list(&kinds::REPLICA_SETS, None);
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

    /// Ends all clusters.
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
    /// Whether it can do its work.
    pub(super) fn readiness(&self) -> Readiness {
        self.running.readiness()
    }

    /// Ends it in order.
    pub(super) async fn stop(self) {
        self.cancel.cancel();
        self.running.joined().await;
    }
}

impl Cluster {
    async fn start(name: &str, nodes: usize, https: bool) -> anyhow::Result<Self> {
        let pods = u32::try_from(PODS_PER_NODE).context("a node's pods")?;
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

    /// A client as the controller has them: no retry of its own. Its writes go into `ledger`.
    async fn client(&self, ledger: &Ledger) -> anyhow::Result<Client> {
        let recorder = ledger.recorder(self.sim.name());
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
