//! Embedded clusters as a host and its members: started, served over HTTPS on loopback, reached with kubeconfig files.
//!
//! ```text
//! sizes --> SimCluster each --> HTTPS server each --> kubeconfig each, in the directory
//! ```
//!
//! The clusters know nothing of fedrs: a client can't tell them from other clusters.

use anyhow::Context;
use futures::future::join_all;
use jiff::Timestamp;
use sim_cluster::{Api, NodeSpec, Server, Settings, SimCluster, WriteOptions};

use super::directory::KubeconfigDirectory;
use crate::seed::random_seed;

/// How large a member is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemberSize<'a> {
    /// The member's name.
    pub(crate) name: &'a str,
    /// The number of its nodes.
    pub(crate) nodes: u32,
    /// The number of pods that each node can run.
    pub(crate) pods_per_node: u32,
}

/// One cluster and the server of its API.
struct Served {
    cluster: SimCluster,
    server: Server,
}

/// A running host and its members.
pub(crate) struct EmbeddedClusters {
    directory: KubeconfigDirectory,
    host: Served,
    members: Vec<Served>,
}

impl EmbeddedClusters {
    /// Starts the host and one cluster for each of `members`, and writes their kubeconfigs.
    pub(crate) async fn start(
        directory: KubeconfigDirectory,
        members: &[MemberSize<'_>],
        settings: &Settings,
    ) -> anyhow::Result<Self> {
        let host = Served::start("host", Vec::new(), settings).await?;
        let mut served = Vec::new();
        for member in members {
            served.push(Served::start(member.name, member.nodes(), settings).await?);
        }
        for member in &served {
            let kubeconfig = member.server.kubeconfig().to_yaml();
            directory.write_member(member.cluster.name(), &kubeconfig)?;
        }
        directory.write_host(&host.server.kubeconfig().to_yaml())?;
        Ok(Self {
            directory,
            host,
            members: served,
        })
    }

    /// Installs the CRDs of fedrs on the host, as `fedrs crds | kubectl apply -f -` does.
    pub(crate) fn install_crds(&self) -> anyhow::Result<()> {
        let api = self.host().as_manager("fedrs");
        let kind = api
            .kind_of("apiextensions.k8s.io/v1", "CustomResourceDefinition")
            .context("the embedded host does not serve CustomResourceDefinitions")?;
        for crd in fedrs_api::crd::all() {
            let object = serde_json::to_value(&crd)?;
            api.create(&kind, "", object, &WriteOptions::default())
                .map_err(|status| anyhow::anyhow!("the embedded host rejects a CRD: {status}"))?;
        }
        Ok(())
    }

    /// The directory of the kubeconfigs.
    pub(crate) fn directory(&self) -> &KubeconfigDirectory {
        &self.directory
    }

    /// The host's API, in this process.
    pub(crate) fn host(&self) -> &Api {
        self.host.cluster.api()
    }

    /// The members, in the order in which they were started.
    pub(crate) fn members(&self) -> impl Iterator<Item = &SimCluster> {
        self.members.iter().map(|member| &member.cluster)
    }

    /// The member `name`.
    pub(crate) fn member(&self, name: &str) -> &SimCluster {
        let mut members = self.members();
        let found = members.find(|member| member.name() == name);
        found.expect("callers name members that were started")
    }

    /// Stops all clusters. The kubeconfigs stay: the next run in the directory replaces them.
    pub(crate) async fn stop(self) {
        let all = self.members.into_iter().chain([self.host]);
        join_all(all.map(Served::stop)).await;
    }
}

impl MemberSize<'_> {
    fn nodes(&self) -> Vec<NodeSpec> {
        (1..=self.nodes)
            .map(|number| NodeSpec::new(format!("{}-{number}", self.name)).pods(self.pods_per_node))
            .collect()
    }
}

impl Served {
    async fn start(name: &str, nodes: Vec<NodeSpec>, settings: &Settings) -> anyhow::Result<Self> {
        let builder = SimCluster::builder(name)
            .epoch(Timestamp::now())
            // Other uids in each run: no client takes an object of an earlier run for one of this run.
            .seed(random_seed())
            .settings(settings.clone());
        let cluster = nodes
            .into_iter()
            .fold(builder, sim_cluster::ClusterBuilder::node)
            .start();
        let server = cluster
            .serve(None)
            .await
            .with_context(|| format!("failed to serve cluster {name} on 127.0.0.1"))?;
        Ok(Self { cluster, server })
    }

    async fn stop(self) {
        self.server.stop().await;
        self.cluster.stop().await;
    }
}
