//! What a client that resolves the EndpointSet of the story finds, while clusters come and go.

use std::{collections::BTreeMap, time::Duration};

use discovery::{Discovery, Lookup, SetKey};
use kube::Client;
use tokio::time::{Instant, sleep};

use super::{
    operator::POLL_PERIOD,
    snapshot::{ClusterSnapshot, SetSnapshot},
    story::{MEMBERS, NAMESPACE, STEP_TIMEOUT, WEB},
};
use crate::{embedded::EmbeddedClusters, host::HostArgs};

/// How long answers wait for members at the start.
const PATIENCE: Duration = Duration::from_secs(30);

/// The service of EndpointSets, as `fedrs discovery` runs it, without its ways to ask.
pub(crate) struct Endpoints(Discovery);

/// Endpoints that serve, by cluster.
pub(crate) type Serving = BTreeMap<String, u64>;

impl Endpoints {
    /// Watches the host and the members, with the kubeconfigs of the controller.
    pub(crate) async fn start(host: &Client, clusters: &EmbeddedClusters) -> anyhow::Result<Self> {
        let mut discovery = Discovery::start(host, PATIENCE);
        for member in MEMBERS {
            let file = clusters.directory().member_file(member.name);
            let client = HostArgs::of(file).controller_client().await?;
            discovery.set_member(member.name, &client);
        }
        discovery.members_known();
        Ok(Self(discovery))
    }

    pub(crate) async fn stop(self) {
        self.0.stop().await;
    }

    /// Waits until as many endpoints of [`WEB`] serve in each cluster as `set` has replicas there.
    ///
    /// # Errors
    /// Those that serve instead, after the timeout.
    pub(crate) async fn follow(&self, set: &SetSnapshot) -> Result<Serving, Serving> {
        let replicas = |cluster: &ClusterSnapshot| {
            let desired = cluster.desired.unwrap_or(0);
            (desired > 0).then(|| (cluster.name.clone(), desired))
        };
        let expected: Serving = set.clusters.iter().filter_map(replicas).collect();
        let deadline = Instant::now() + STEP_TIMEOUT;
        while self.serving() != expected {
            if Instant::now() >= deadline {
                return Err(self.serving());
            }
            sleep(POLL_PERIOD).await;
        }
        Ok(expected)
    }

    fn serving(&self) -> Serving {
        let mut serving = Serving::new();
        if let Lookup::Found(snapshot) = self.0.catalog().lookup(&key()) {
            for endpoint in snapshot.ready() {
                *serving.entry(endpoint.cluster().to_owned()).or_default() += 1;
            }
        }
        serving
    }
}

fn key() -> SetKey {
    SetKey::new(NAMESPACE, WEB)
}
