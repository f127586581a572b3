//! The informer of one member cluster: one task that lists and watches its local workloads and pods, probes it, and reads
//! its version and nodes.
//!
//! Deployments and LocalReplicaSets are watched from the first [`watch`](crate::MemberView::watch) of them on. Until then there is
//! no request for them.
//!
//! The five parts share the task, so that they never run at the same time: none reads what another one is changing, and a
//! simulation is repeatable.

use std::{sync::Arc, time::Duration};

use fedrs_api::{LocalKind, labels};
use futures::{FutureExt, future};
use kube::Client;
use reflector::{
    ClientReceiver, ClientSender, Collection, Reflector, ReflectorSettings, Versioned,
    client_channel,
};
use serde::de::DeserializeOwned;
use tokio::{
    sync::{Notify, watch},
    task::JoinHandle,
    time::sleep,
};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, info_span};
use xxhash_rust::xxh3::xxh3_64;

use crate::{
    change::ChangeHandler,
    cluster_store::{ClusterStore, WatchScope},
    cluster_version::{self, ClusterVersionSettings},
    deployment::DeploymentObject,
    handlers::{LocalWorkload, NodeHandler, Notifier, WatchHandler},
    local_replica_set::LocalReplicaSetObject,
    metrics::{ClusterMetrics, InformerMetrics, PODS},
    node_leases::{self, NodeLeaseSettings},
    pod::PodObject,
    probe::{self, FailureStreak, ProbeSettings},
    replica_set::ReplicaSetObject,
    store::{Clock, HealthChange, MemberStore, Watch},
};

/// A failing watch becomes stale without any event, so the sync state is checked periodically.
const SYNC_CHECK_PERIOD: Duration = Duration::from_secs(5);

/// How a member cluster is watched.
#[derive(Clone, Debug)]
pub struct InformerSettings {
    /// Lists and watches.
    pub reflector: ReflectorSettings,
    /// The liveness probe (F33).
    pub probe: ProbeSettings,
    /// A watch that fails for longer makes the view stale (F39). Default 30 s.
    pub stale_after: Duration,
    /// How often the version is read.
    pub cluster_version: ClusterVersionSettings,
    /// How the nodes of a returned member are confirmed.
    pub node_leases: NodeLeaseSettings,
}

impl Default for InformerSettings {
    fn default() -> Self {
        Self {
            reflector: ReflectorSettings::default(),
            probe: ProbeSettings::default(),
            stale_after: Duration::from_secs(30),
            cluster_version: ClusterVersionSettings::default(),
            node_leases: NodeLeaseSettings::default(),
        }
    }
}

/// An informer of one member cluster.
#[derive(Debug)]
pub struct MemberInformer {
    /// What is known of the member.
    pub store: Arc<ClusterStore>,
    /// Replaces the client.
    pub client: ClientSender,
    /// Changes which namespaces are watched.
    pub scope: watch::Sender<WatchScope>,
    /// Ends when cancelled; a panic in it has to end the process.
    pub task: JoinHandle<()>,
}

impl MemberInformer {
    /// Starts to watch `scope` of `cluster`: the objects with the labels of `federation` (F40), until `cancel`.
    ///
    /// Call it within a tokio runtime. Turn off the client's own retry. `seed` decides the jitter.
    #[expect(
        clippy::too_many_arguments,
        reason = "each is one thing the caller alone decides"
    )]
    pub fn spawn(
        cluster: impl Into<Arc<str>>,
        client: Client,
        federation: &str,
        scope: WatchScope,
        handler: Arc<dyn ChangeHandler>,
        settings: InformerSettings,
        metrics: &InformerMetrics,
        clock: Clock,
        seed: u64,
        cancel: CancellationToken,
    ) -> Self {
        let cluster = cluster.into();
        let store = Arc::new(ClusterStore::new(clock, settings.stale_after));
        let span = info_span!("informer", %cluster);
        for resource in [LocalKind::ReplicaSet.resource(), PODS] {
            metrics.of_watch(&cluster, resource);
        }
        let cluster_metrics = metrics.of_cluster(&cluster);
        let notifier = Notifier {
            cluster,
            store: Arc::clone(&store),
            handler,
        };
        let (sender, clients) = client_channel(client);
        store.set_scope(&scope);
        let (scope, scopes) = watch::channel(scope);
        let informer = Informer {
            notifier,
            scopes,
            selector: selector(federation),
            settings,
            metrics: metrics.clone(),
            cluster_metrics,
            seed,
            cancel,
        };
        Self {
            store,
            client: sender,
            scope,
            task: tokio::spawn(informer.run(clients).instrument(span)),
        }
    }
}

/// Selects the objects of `federation` that belong to a federated object.
fn selector(federation: &str) -> String {
    format!(
        "{}={federation},{}",
        labels::FEDERATION,
        labels::REPLICA_SET
    )
}

/// What the objects of a watch are called in paths, and in metrics.
fn resource(watch: Watch) -> &'static str {
    match watch {
        Watch::Workloads(kind) => kind.resource(),
        Watch::Pods => PODS,
    }
}

/// The task of a [`MemberInformer`].
struct Informer {
    notifier: Notifier,
    scopes: watch::Receiver<WatchScope>,
    selector: String,
    settings: InformerSettings,
    metrics: InformerMetrics,
    cluster_metrics: ClusterMetrics,
    seed: u64,
    cancel: CancellationToken,
}

impl Informer {
    /// Watches the cluster that the latest client reaches, until cancelled.
    async fn run(self, mut clients: ClientReceiver) {
        // The streak continues with another client, which must not reset the grace period of an unreachable member.
        let mut failures = FailureStreak::default();
        loop {
            let accepted = clients.accept();
            tokio::select! {
                biased;
                () = clients.replaced() => {
                    self.notifier.store.invalidate();
                    self.notifier.check_sync_state();
                }
                () = self.watch(accepted, &mut failures) => return,
            }
        }
    }

    /// Watches one cluster, until cancelled.
    async fn watch(&self, clients: ClientReceiver, failures: &mut FailureStreak) {
        let seed = |part| self.seed.wrapping_add(part);
        let healthy = Notify::new();
        let scoped = self.watch_scope(&clients);
        let probe = probe::run(
            clients.clone(),
            self.settings.probe.clone(),
            self.notifier.store.clock(),
            seed(2),
            failures,
            |health, latency| {
                let histogram = &self.cluster_metrics.probe_latency;
                histogram.observe(latency.as_secs_f64());
                if self.notifier.set_health(&health) != HealthChange::Unchanged {
                    healthy.notify_one();
                }
            },
        );
        let nodes = Reflector::new(clients.clone(), Collection::all("/api/v1/nodes"))
            .settings(self.settings.reflector.clone())
            .seed(seed(4))
            .relist_on(Arc::clone(&self.notifier.store.relist_nodes));
        let nodes = nodes.run(NodeHandler::new(self.notifier.clone()));
        let confirmation = node_leases::run(
            clients.clone(),
            self.settings.node_leases.clone(),
            &self.notifier,
        );
        let version = cluster_version::run(
            clients.clone(),
            self.settings.cluster_version.clone(),
            &self.notifier.store,
            &healthy,
            seed(3),
        );
        // Boxed, as they are together larger than a task's stack frame should be.
        let of_nodes = future::join3(nodes, confirmation, version);
        let all = future::join4(scoped, probe, of_nodes, self.check_sync_state());
        self.cancel.run_until_cancelled(Box::pin(all)).await;
    }

    /// Watches the workloads and pods of the latest scope, without an end.
    async fn watch_scope(&self, clients: &ClientReceiver) {
        let mut scopes = self.scopes.clone();
        loop {
            let scope = scopes.borrow_and_update().clone();
            let stores = self.notifier.store.set_scope(&scope).into_iter();
            let watches = stores.map(|(namespace, store)| {
                let namespace = namespace.as_deref();
                let reflector = |watch| self.reflector(clients, watch, namespace, &store);
                let [replica_sets, deployments, local_replica_sets] =
                    LocalKind::ALL.map(|kind| reflector(Watch::Workloads(kind)));
                let handler = self.handler(Watch::Workloads(LocalKind::ReplicaSet), &store);
                let replica_sets = replica_sets.run::<ReplicaSetObject, _>(handler);
                let pods = reflector(Watch::Pods);
                let pods = pods.run::<PodObject, _>(self.handler(Watch::Pods, &store));
                let others = future::join(
                    self.watch_asked_for::<DeploymentObject>(deployments, Arc::clone(&store)),
                    self.watch_asked_for::<LocalReplicaSetObject>(local_replica_sets, store),
                );
                future::join3(replica_sets, pods, others)
            });
            // Without namespaces they end at once.
            let watches = future::join_all(watches).then(|_| future::pending::<()>());
            self.notifier.check_sync_state();
            tokio::select! {
                biased;
                Ok(()) = scopes.changed() => {}
                () = watches => {}
            }
        }
    }

    /// Watches the workloads of a kind as soon as somebody asks for it. Until then it takes nothing but its parameters.
    async fn watch_asked_for<T: LocalWorkload + Versioned + DeserializeOwned + Send + 'static>(
        &self,
        reflector: Reflector,
        store: Arc<MemberStore>,
    ) {
        let Some(asked_for) = self.notifier.store.asked_for(T::KIND) else {
            return;
        };
        let mut asked_for = asked_for.subscribe();
        if asked_for.wait_for(Option::is_some).await.is_ok() {
            let handler = self.handler(Watch::Workloads(T::KIND), &store);
            Box::pin(reflector.run::<T, _>(handler)).await;
        }
    }

    /// A reflector of the objects of a kind in `namespace`, or in all namespaces, which `store` keeps.
    fn reflector(
        &self,
        clients: &ClientReceiver,
        watch: Watch,
        namespace: Option<&str>,
        store: &MemberStore,
    ) -> Reflector {
        let (group, part) = match watch {
            Watch::Workloads(LocalKind::ReplicaSet) => ("/apis/apps/v1", 0),
            Watch::Pods => ("/api/v1", 1),
            Watch::Workloads(LocalKind::Deployment) => ("/apis/apps/v1", 5),
            Watch::Workloads(LocalKind::LocalReplicaSet) => ("/apis/fedrs.dev/v1alpha1", 6),
        };
        let resource = resource(watch);
        let (path, seed) = match namespace {
            None => (format!("{group}/{resource}"), part),
            Some(namespace) => (
                format!("{group}/namespaces/{namespace}/{resource}"),
                xxh3_64(namespace.as_bytes()).wrapping_add(part),
            ),
        };
        let collection = Collection::with_labels(path, &*self.selector);
        Reflector::new(clients.clone(), collection)
            .settings(self.settings.reflector.clone())
            .seed(self.seed.wrapping_add(seed))
            .relist_on(Arc::clone(store.relist_of(watch)))
            .confirm_on(Arc::clone(store.confirmation_of(watch)))
    }

    /// Stores what a watch shows in `store`.
    fn handler(&self, watch: Watch, store: &Arc<MemberStore>) -> WatchHandler {
        let cluster = &self.notifier.cluster;
        WatchHandler {
            watch,
            store: Arc::clone(store),
            notifier: self.notifier.clone(),
            metrics: self.metrics.of_watch(cluster, resource(watch)),
        }
    }

    async fn check_sync_state(&self) {
        loop {
            sleep(SYNC_CHECK_PERIOD).await;
            self.notifier.check_sync_state();
            let staleness = self.notifier.store.staleness();
            self.cluster_metrics.staleness.set(staleness.as_secs_f64());
        }
    }
}

#[cfg(test)]
#[path = "informer_tests.rs"]
mod tests;
