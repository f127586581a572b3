//! Wires the parts together: a watch for each kind of the host, and of each member.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use controller_base::listing::Listing;
use fedrs_api::SetKind;
use jiff::Timestamp;
use kube::Client;
use rand::{RngExt, SeedableRng, rngs::StdRng};
use reflector::{Collection, Reflector};
use tokio::task::JoinHandle;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    catalog::Catalog,
    handlers::{ENDPOINT_SETS, Nodes, Pods, Services, Sets, Sources, sources},
    kept::LoadedSnapshots,
};

const PODS_PATH: &str = "/api/v1/pods";
const NODES_PATH: &str = "/api/v1/nodes";
const SERVICES_PATH: &str = "/api/v1/services";
const ENDPOINT_SETS_PATH: &str = "/apis/fedrs.dev/v1alpha1/endpointsets";

/// The service without its ways to ask: it watches the host and the members.
#[derive(Debug)]
pub struct Discovery {
    catalog: Arc<Catalog>,
    tasks: TaskTracker,
    cancel: CancellationToken,
    /// The watches of each member.
    members: BTreeMap<String, [JoinHandle<()>; 3]>,
    /// The jitter of each watch is another one.
    seeds: StdRng,
}

impl Discovery {
    /// Watches the host. For members that can't be listed, answers wait for `patience` at most.
    #[must_use]
    pub fn start(host: &Client, patience: Duration) -> Self {
        Self::start_from(LoadedSnapshots::default(), host, patience)
    }

    /// As [`start`](Self::start), with what snapshots have: it counts as listed, and is stale until it is. Answers have the
    /// endpoints of members of which there is a snapshot and no kubeconfig, as of those whose kubeconfig is removed.
    #[must_use]
    pub fn start_from(loaded: LoadedSnapshots, host: &Client, patience: Duration) -> Self {
        Self::start_seeded(loaded, host, patience, rand::random())
    }

    /// As [`start_from`](Self::start_from), with the seed of the jitter, which is random otherwise: the same seed gives the same
    /// pauses on a simulated clock.
    #[must_use]
    pub fn start_seeded(
        loaded: LoadedSnapshots,
        host: &Client,
        patience: Duration,
        seed: u64,
    ) -> Self {
        let kinds = SetKind::ALL.map(sources);
        let catalog = Catalog::waiting_for(kinds.into_iter().chain([ENDPOINT_SETS]));
        catalog.load(loaded);
        let mut discovery = Self {
            catalog: Arc::clone(&catalog),
            tasks: TaskTracker::new(),
            cancel: CancellationToken::new(),
            members: BTreeMap::new(),
            seeds: StdRng::seed_from_u64(seed),
        };
        let sets = Sets {
            catalog: Arc::clone(&catalog),
            listing: Listing::default(),
        };
        let reflector = discovery.reflector(host, ENDPOINT_SETS_PATH);
        discovery.spawn(reflector.run(sets));
        for kind in SetKind::ALL {
            let handler = Sources {
                catalog: Arc::clone(&catalog),
                kind,
                listing: Listing::default(),
            };
            let reflector = discovery.reflector(host, path_of(kind));
            discovery.spawn(reflector.run(handler));
        }
        discovery.spawn(async move {
            tokio::time::sleep(patience).await;
            catalog.give_up();
        });
        discovery
    }

    fn reflector(&mut self, client: &Client, path: &str) -> Reflector {
        let seed = self.seeds.random();
        Reflector::new(client.clone(), Collection::all(path)).seed(seed)
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        let cancel = self.cancel.clone();
        self.tasks.spawn(async move {
            cancel.run_until_cancelled(task).await;
        })
    }

    /// What can be looked up.
    #[must_use]
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// There is such a member, which answers wait for at first.
    pub fn add_member(&self, name: &str) {
        let member: Arc<str> = name.into();
        self.catalog.update(|state| state.add_member(&member));
    }

    /// Watches a member with this client from now on.
    pub fn set_member(&mut self, name: &str, client: &Client) {
        self.add_member(name);
        let member: Arc<str> = name.into();
        let pods = Pods {
            catalog: Arc::clone(&self.catalog),
            member: Arc::clone(&member),
        };
        let nodes = Nodes {
            catalog: Arc::clone(&self.catalog),
            member: Arc::clone(&member),
        };
        let services = Services {
            catalog: Arc::clone(&self.catalog),
            member: Arc::clone(&member),
            listing: Listing::default(),
        };
        self.end_member(name);
        let of_pods = self.reflector(client, PODS_PATH);
        let of_nodes = self.reflector(client, NODES_PATH);
        let of_services = self.reflector(client, SERVICES_PATH);
        let tasks = [
            self.spawn(of_pods.run(pods)),
            self.spawn(of_nodes.run(nodes)),
            self.spawn(of_services.run(services)),
        ];
        self.members.insert(name.to_owned(), tasks);
    }

    /// Does not watch a member any longer. Its endpoints stay, marked as stale: its kubeconfig may be missing by mistake.
    pub fn end_member(&mut self, name: &str) {
        if let Some(tasks) = self.members.remove(name) {
            tasks.iter().for_each(JoinHandle::abort);
            let now = Timestamp::now();
            self.catalog.update(|state| {
                state.stale(name, now, true);
                state.refresh_services(name, |services| services.stale(now, true));
            });
        }
    }

    /// All members have been set that had a kubeconfig at the start.
    pub fn members_known(&self) {
        self.catalog.members_known();
    }

    /// Ends all watches.
    pub async fn stop(self) {
        self.cancel.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

fn path_of(kind: SetKind) -> &'static str {
    match kind {
        SetKind::FederatedReplicaSet => "/apis/fedrs.dev/v1alpha1/federatedreplicasets",
        SetKind::FederatedDeployment => "/apis/fedrs.dev/v1alpha1/federateddeployments",
    }
}
