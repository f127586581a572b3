//! A real cluster and an embedded one with the same nodes and settings.

use std::path::{Path, PathBuf};

use control_plane::{ControlPlaneSpec, Environment, EnvironmentSpec, NodeResources, Program};
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use tokio::sync::Mutex;

use sim_cluster::{ClusterBuilder, NodeSpec, Server, Settings, SimCluster};

/// The name of both clusters, and the prefix of their nodes' names.
const NAME: &str = "pair";
/// How many nodes each cluster has.
const NODES: usize = 2;

/// One of the two clusters.
pub(crate) struct PairedCluster {
    /// `real` or `embedded`.
    pub(crate) name: &'static str,
    is_real: bool,
    /// A client of the administrator.
    pub(crate) admin: Client,
    /// A client without credentials: requests carry their own, or none.
    pub(crate) anonymous: Client,
    /// The administrator's kubeconfig.
    pub(crate) kubeconfig: PathBuf,
}

/// A real cluster and an embedded one.
pub(crate) struct ClusterPair {
    /// The reference.
    pub(crate) real: PairedCluster,
    /// The cluster under test.
    pub(crate) embedded: PairedCluster,
    /// A directory that is deleted with the process.
    pub(crate) directory: PathBuf,
    /// kubectl of the real cluster's version.
    pub(crate) kubectl: PathBuf,
    environment: Mutex<Environment>,
    cluster: SimCluster,
    _server: Server,
}

impl ClusterPair {
    /// Starts both clusters.
    ///
    /// # Errors
    /// If one of the clusters can't start.
    pub(crate) async fn start() -> Result<Self, String> {
        let spec = EnvironmentSpec {
            members: vec![ControlPlaneSpec {
                name: NAME.to_owned(),
                nodes: u32::try_from(NODES).expect("few nodes"),
                resources: NodeResources::default(),
            }],
            audit: false,
        };
        let environment = Environment::start_temporary(&spec)
            .await
            .map_err(|error| error.to_string())?;
        let cluster = embedded();
        let server = cluster
            .serve(None)
            .await
            .map_err(|error| error.to_string())?;
        let directory = environment.directory().to_owned();
        let file = directory.join("embedded.yaml");
        server
            .write_kubeconfig(&file)
            .map_err(|error| error.to_string())?;
        let real = directory.join(format!("members/{NAME}.yaml"));
        Ok(Self {
            real: PairedCluster::new("real", &real).await?,
            embedded: PairedCluster::new("embedded", &file).await?,
            directory,
            kubectl: control_plane::Programs::pinned()
                .map_err(|error| error.to_string())?
                .path(Program::Kubectl),
            environment: Mutex::new(environment),
            cluster,
            _server: server,
        })
    }

    /// Lets a node of one cluster fail, or recovers it.
    ///
    /// # Errors
    /// If the real cluster can't be reached.
    pub(crate) async fn lose_node(
        &self,
        side: &PairedCluster,
        number: u32,
        is_lost: bool,
    ) -> Result<(), String> {
        let node = format!("{NAME}-node-{number}");
        if side.is_real {
            let environment = self.environment.lock().await;
            let lost = environment.members[0].set_node_lost(&node, is_lost).await;
            return lost.map_err(|error| error.to_string());
        }
        if is_lost {
            self.cluster.fail_node(&node);
        } else {
            self.cluster.recover_node(&node);
        }
        Ok(())
    }

    /// Compacts the history of one cluster: all older resource versions are gone.
    ///
    /// # Errors
    /// If the real cluster can't be compacted.
    pub(crate) async fn compact(&self, side: &PairedCluster) -> Result<(), String> {
        if side.is_real {
            let mut environment = self.environment.lock().await;
            let compacted = environment.members[0].compact().await;
            return compacted.map_err(|error| error.to_string());
        }
        self.cluster.faults().compact();
        Ok(())
    }
}

/// The embedded cluster, with the timeouts and the nodes of the real one.
fn embedded() -> SimCluster {
    let capacity = NodeResources::default();
    let settings = Settings {
        node_grace: std::time::Duration::from_secs(20),
        start_time: std::time::Duration::ZERO,
        stop_time: std::time::Duration::ZERO,
        ..Settings::default()
    };
    let builder = SimCluster::builder(NAME)
        .epoch(jiff::Timestamp::now())
        .settings(settings);
    let nodes = (1..=NODES).map(|number| {
        NodeSpec::new(format!("{NAME}-node-{number}"))
            .label("control-plane.dev/managed", "true")
            .capacity("cpu", &capacity.cpu)
            .capacity("memory", &capacity.memory)
            .capacity("pods", &capacity.pods.to_string())
    });
    nodes.fold(builder, ClusterBuilder::node).start()
}

impl PairedCluster {
    async fn new(name: &'static str, file: &Path) -> Result<Self, String> {
        let fail = |what: &dyn std::fmt::Display| format!("{}: {what}", file.display());
        let mut kubeconfig = Kubeconfig::read_from(file).map_err(|error| fail(&error))?;
        let admin = client(kubeconfig.clone())
            .await
            .map_err(|error| fail(&error))?;
        for user in &mut kubeconfig.auth_infos {
            user.auth_info = Some(kube::config::AuthInfo::default());
        }
        let anonymous = client(kubeconfig).await.map_err(|error| fail(&error))?;
        Ok(Self {
            name,
            is_real: name == "real",
            admin,
            anonymous,
            kubeconfig: file.to_owned(),
        })
    }
}

async fn client(kubeconfig: Kubeconfig) -> Result<Client, String> {
    let options = KubeConfigOptions::default();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .map_err(|error| error.to_string())?;
    config.default_retry = false;
    Client::try_from(config).map_err(|error| error.to_string())
}
