//! Embedded clusters as a host and its members: started, served over HTTPS on loopback, reached by files.
//!
//! ```text
//! sizes --> SimCluster each --> HTTPS server each --> kubeconfig each, in the folder
//! ```
//!
//! fedrs itself isn't here: a client of these clusters can't tell them from others.

use anyhow::Context;
use futures::future::join_all;
use jiff::Timestamp;
use sim_cluster::{Api, Faults, NodeSpec, Server, Settings, SimCluster, WriteOptions};

use super::folder::Folder;

/// How large a member is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemberSize<'a> {
    /// The member's name.
    pub(crate) name: &'a str,
    /// How many nodes it has.
    pub(crate) nodes: u32,
    /// How many pods each of them can run.
    pub(crate) pods_per_node: u32,
}

/// One cluster and the server it is reached by.
struct Served {
    cluster: SimCluster,
    server: Server,
}

/// A host and its members, running.
pub(crate) struct Fleet {
    folder: Folder,
    host: Served,
    members: Vec<Served>,
}

impl Fleet {
    /// Starts the host and one cluster for each of `members`, and writes their kubeconfigs.
    pub(crate) async fn start(
        folder: Folder,
        members: &[MemberSize<'_>],
        settings: &Settings,
    ) -> anyhow::Result<Self> {
        let host = Served::start("host", Vec::new(), settings).await?;
        let mut served = Vec::new();
        for member in members {
            served.push(Served::start(member.name, member.nodes(), settings).await?);
        }
        for member in &served {
            folder.write_member(member.cluster.name(), &member.server.kubeconfig().to_yaml())?;
        }
        folder.write_host(&host.server.kubeconfig().to_yaml())?;
        Ok(Self {
            folder,
            host,
            members: served,
        })
    }

    /// Installs the CRDs of fedrs on the host, as `fedrs crds | kubectl apply -f -` does.
    pub(crate) fn install_crds(&self) -> anyhow::Result<()> {
        let api = self.host().as_manager("fedrs");
        let kind = api
            .kind_of("apiextensions.k8s.io/v1", "CustomResourceDefinition")
            .context("the embedded host knows no CustomResourceDefinitions")?;
        for crd in fedrs_api::crd::all() {
            let object = serde_json::to_value(&crd)?;
            api.create(&kind, "", object, &WriteOptions::default())
                .map_err(|status| anyhow::anyhow!("the embedded host refuses a CRD: {status}"))?;
        }
        Ok(())
    }

    /// Where the kubeconfigs are.
    pub(crate) fn folder(&self) -> &Folder {
        &self.folder
    }

    /// The host's API, in this process.
    pub(crate) fn host(&self) -> &Api {
        self.host.cluster.api()
    }

    /// The members' names and APIs, in this process, in the order they were started.
    pub(crate) fn members(&self) -> impl Iterator<Item = (&str, &Api)> {
        self.members
            .iter()
            .map(|it| (it.cluster.name(), it.cluster.api()))
    }

    /// The API of the member `name`, in this process.
    pub(crate) fn member(&self, name: &str) -> &Api {
        self.named(name).cluster.api()
    }

    /// The faults of the member `name`.
    pub(crate) fn faults(&self, name: &str) -> &Faults {
        self.named(name).cluster.faults()
    }

    fn named(&self, name: &str) -> &Served {
        let found = self.members.iter().find(|it| it.cluster.name() == name);
        found.expect("only members that were started are asked for")
    }

    /// Ends all clusters. The kubeconfigs stay: the next run in the folder replaces them.
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
            .seed(seed())
            .settings(settings.clone());
        let cluster = nodes
            .into_iter()
            .fold(builder, sim_cluster::ClusterBuilder::node)
            .start();
        let server = cluster
            .serve(None)
            .await
            .with_context(|| format!("cluster {name} can't be served on 127.0.0.1"))?;
        Ok(Self { cluster, server })
    }

    async fn stop(self) {
        self.server.stop().await;
        self.cluster.stop().await;
    }
}

/// Uids are other ones in each run: nothing of an earlier run is taken for this one's.
fn seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(())
}
