//! Wires the parts together: tasks, each named, cancellable and joined; a panic in one ends all.

use availability::AvailabilityController;
use std::sync::Arc;

use cluster_informer::InformerSettings;
use controller_base::{
    calls,
    clock::Clock,
    election::Fence,
    event_recorder::EventRecorder,
    list_progress::ListState,
    readiness::Readiness,
    running::Running,
    watchdog::{Watchdog, Watched},
};
use dashmap::DashSet;
use fedrs_api::SetKind;
use kube::Client;
use maintenance::MaintenanceController;
use reflector::{Collection, EventHandler, Reflector, ReflectorSettings, Versioned};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use xxhash_rust::xxh3::xxh3_64;

use crate::{
    COMPONENT,
    config::Config,
    executor::Executor,
    frs_store::FrsStore,
    frs_watch::{FrsHandler, SharedState},
    host_lists::list_progress,
    host_namespaces::{self, HostNamespaces, NamespaceHandler},
    local_kind::set_collection,
    members::{
        self, Context, Inbox, MemberClusterHandler, MemberEvent, MemberSecrets, Members, Registry,
        SecretHandler,
    },
    metrics::Metrics,
    reconcile::Reconciler,
    reconcile_queue::ReconcileQueue,
};

/// The configuration and the clients of a controller.
pub struct Controller {
    /// Reaches the host; without a retry of its own.
    pub host: Client,
    /// Kubeconfigs of the `--members` directory.
    pub members: mpsc::Receiver<MemberEvent>,
    /// Where kubeconfigs in Secrets are, and how clients are made from kubeconfigs.
    pub secrets: MemberSecrets,
    /// What can be configured.
    pub config: Config,
    /// The clock.
    pub clock: Clock,
    /// Spreads probes and pauses; the same seed gives the same run on a simulated clock.
    pub seed: u64,
    /// The metrics.
    pub metrics: Arc<Metrics>,
    /// Guards the clients of the host and of all members: nothing is written once it is closed.
    pub fence: Fence,
}

impl Controller {
    /// Starts all tasks; they end when `cancel` is cancelled. Returns once the id of the federation is read from the host,
    /// or `None` if it was cancelled before.
    pub async fn start(mut self, cancel: CancellationToken) -> Option<Running> {
        self.host = self.fence.guard(&self.host);
        let federation = cancel.run_until_cancelled(self.federation()).await?;
        let tasks = TaskTracker::new();
        let watchdog = watchdog(&self.config);
        let (reconciler, registry) = self.reconciler(&federation, &tasks, &cancel);
        let inbox = Arc::new(Inbox::default());
        let lists = self.watch_host(&reconciler, &inbox);
        let (complete, all_known) = watch::channel(false);
        let readiness = Readiness::new(lists, all_known);
        let maintenances = self.maintenances(&reconciler, &registry);
        let availability = self.availability(&reconciler, &registry, &federation);
        let context = Context {
            trigger: Arc::clone(&reconciler) as _,
            recorder: reconciler.recorder.clone(),
            metrics: self.metrics,
            registry,
            host: self.host,
            fence: self.fence,
            federation,
            informer_settings: informer_settings(&self.config),
            secrets: self.secrets,
            config: self.config,
            clock: self.clock,
            seed: self.seed,
            tasks: tasks.clone(),
            cancel: cancel.clone(),
        };
        let watched = watchdog.watch("members");
        let members = Members::run(context, self.members, inbox, complete, watched);
        tasks.spawn(members);
        let queue = reconciler.queue.clone().run(cancel.clone());
        tasks.spawn(watchdog.watch("queue").around(queue));
        let running = Running::new(tasks.clone(), readiness, watchdog);
        let of_maintenances = tasks.clone();
        begin_when_ready(running.readiness(), &tasks, &cancel, |cancel| {
            maintenances.run(of_maintenances, cancel)
        });
        let of_availability = tasks.clone();
        begin_when_ready(running.readiness(), &tasks, &cancel, |cancel| {
            availability.run(of_availability, cancel)
        });
        let workers = reconciler.config.workers;
        running.start_workers(workers, cancel, move |watched| {
            work(Arc::clone(&reconciler), watched)
        });
        Some(running)
    }

    /// Starts the watches of the host's objects. Returns the states of those without which the controller is not ready.
    fn watch_host(
        &self,
        reconciler: &Arc<Reconciler>,
        inbox: &Arc<Inbox>,
    ) -> [watch::Receiver<ListState>; 4] {
        let (members_listed, members) = watch::channel(ListState::default());
        let (namespaces_listed, namespaces) = watch::channel(ListState::default());
        let executor = &reconciler.executor;
        let [sets, deployments] = [SetKind::FederatedReplicaSet, SetKind::FederatedDeployment]
            .map(|kind| self.watch_sets(kind, reconciler));
        let progress = list_progress("MemberClusters", members_listed);
        let member_handler =
            MemberClusterHandler::new(Arc::clone(inbox), &self.config.federation, progress);
        self.watch(executor, Collection::all(members::PATH), member_handler);
        let namespace = &self.secrets.namespace;
        let secret_handler = SecretHandler {
            inbox: Arc::clone(inbox),
            namespace: namespace.clone(),
            has_listed: false,
        };
        let kubeconfigs = members::kubeconfig_secrets(namespace, None);
        self.watch(executor, kubeconfigs, secret_handler);
        let namespace_handler = NamespaceHandler::new(
            Arc::clone(&executor.host_namespaces),
            Arc::clone(reconciler) as _,
            namespaces_listed,
        );
        self.watch(
            executor,
            Collection::all(host_namespaces::PATH),
            namespace_handler,
        );
        [sets, deployments, members, namespaces]
    }

    /// Starts the watch of the sets of a kind. Returns its state.
    fn watch_sets(
        &self,
        kind: SetKind,
        reconciler: &Arc<Reconciler>,
    ) -> watch::Receiver<ListState> {
        let (listed, sets) = watch::channel(ListState::default());
        let executor = &reconciler.executor;
        let handler = FrsHandler::new(
            kind,
            SharedState {
                sets: Arc::clone(&reconciler.sets),
                cache: Arc::clone(&reconciler.cache),
                queue: reconciler.queue.clone(),
                federation: Arc::clone(&executor.federation),
                clock: self.clock.clone(),
            },
            listed,
        );
        let collection = Collection::all(set_collection(kind, None));
        self.watch(executor, collection, handler);
        sets
    }

    /// Watches `collection` on the host, by a task of `executor`.
    fn watch<T, S>(&self, executor: &Executor, collection: Collection, handler: S)
    where
        T: DeserializeOwned + Versioned + Send + 'static,
        S: EventHandler<T> + Send + 'static,
    {
        // The seed decides the pauses: each collection has its own.
        let seed = self.seed ^ xxh3_64(collection.path.as_bytes());
        // A restored host restarts its API servers, which breaks all watches. Its version soon exceeds what was known, as its
        // Lease is renewed every few seconds: a comparison of versions alone would miss it.
        let settings = ReflectorSettings {
            relist_after_break: true,
            ..ReflectorSettings::default()
        };
        let reflector = Reflector::new(self.host.clone(), collection)
            .settings(settings)
            .seed(seed);
        let cancel = executor.cancel.clone();
        let run = async move { cancel.run_until_cancelled(reflector.run(handler)).await };
        executor.tasks.spawn(run);
    }

    /// The id that local ReplicaSets carry in a label: the configured name, else the host's own (F40). Waits for the host.
    async fn federation(&self) -> Arc<str> {
        let mut logged = String::new();
        loop {
            let call = calls::get::<Value>(&self.host, "/api/v1/namespaces/kube-system");
            let answer = calls::within(self.config.call_timeout, call).await;
            // With a name, any answer shows that the host is there.
            let is_answer = answer
                .as_ref()
                .err()
                .is_none_or(|error| error.code().is_some());
            if is_answer && !self.config.federation.is_empty() {
                return self.config.federation.as_str().into();
            }
            let error = match answer {
                Ok(namespace) => match namespace["metadata"]["uid"].as_str() {
                    Some(uid) => return uid.into(),
                    None => "namespace kube-system has no uid".to_owned(),
                },
                Err(error) => error.to_string(),
            };
            if error != logged {
                tracing::warn!(error, "waiting for the host");
                logged = error;
            }
            tokio::time::sleep(HOST_RETRY).await;
        }
    }

    /// The controller of Maintenances, which reaches the members through `registry`.
    fn maintenances(
        &self,
        reconciler: &Reconciler,
        registry: &Arc<Registry>,
    ) -> MaintenanceController {
        MaintenanceController {
            host: self.host.clone(),
            members: Arc::clone(registry) as _,
            federation: self.config.federation.clone(),
            clock: self.clock.clone(),
            call_timeout: self.config.call_timeout,
            joining_timeout: self.config.joining_timeout,
            recorder: reconciler.recorder.clone(),
            metrics: self.metrics.maintenances.clone(),
            seed: self.seed,
        }
    }

    /// The controller of AvailabilitySets, which reaches the members through `registry`.
    fn availability(
        &self,
        reconciler: &Reconciler,
        registry: &Arc<Registry>,
        federation: &Arc<str>,
    ) -> AvailabilityController {
        AvailabilityController {
            host: self.host.clone(),
            members: Arc::clone(registry) as _,
            federation: self.config.federation.clone(),
            federation_id: Arc::clone(federation),
            clock: self.clock.clone(),
            call_timeout: self.config.call_timeout,
            joining_timeout: self.config.joining_timeout,
            recorder: reconciler.recorder.clone(),
            metrics: self.metrics.availability.clone(),
            seed: self.seed,
        }
    }

    fn reconciler(
        &self,
        federation: &Arc<str>,
        tasks: &TaskTracker,
        cancel: &CancellationToken,
    ) -> (Arc<Reconciler>, Arc<Registry>) {
        let (recorder, event_writers) = EventRecorder::new(
            COMPONENT,
            &self.host,
            self.clock.clone(),
            self.metrics.events_dropped.clone(),
            cancel,
        );
        for writer in event_writers {
            tasks.spawn(writer);
        }
        let host_namespaces = Arc::new(HostNamespaces::default());
        let registry = Arc::new(Registry::new(
            &self.config,
            &self.secrets.namespace,
            Arc::clone(&host_namespaces),
            self.clock.now(),
        ));
        let sets = Arc::new(FrsStore::default());
        self.metrics.sets.count(&sets);
        let reconciler = Reconciler {
            host: self.host.clone(),
            sets,
            members: Arc::clone(&registry),
            queue: ReconcileQueue::new(&self.metrics, self.config.status_delay),
            executor: Executor {
                federation: Arc::clone(federation),
                call_timeout: self.config.call_timeout,
                namespaces: self.config.namespaces.clone(),
                host_namespaces,
                metrics: Arc::clone(&self.metrics),
                tasks: tasks.clone(),
                cancel: cancel.clone(),
            },
            recorder,
            clock: self.clock.clone(),
            metrics: Arc::clone(&self.metrics),
            config: self.config.clone(),
            cache: Arc::default(),
            deletions: DashSet::new(),
            deletion_writes: Semaphore::new(self.config.workers as usize),
            keeps_running_until: self.fence.keeps_running_until(),
        };
        (Arc::new(reconciler), registry)
    }
}

/// Runs a controller of other objects of the host once all members are known.
fn begin_when_ready<F: Future<Output = ()> + Send + 'static>(
    mut readiness: Readiness,
    tasks: &TaskTracker,
    cancel: &CancellationToken,
    run: impl FnOnce(CancellationToken) -> F + Send + 'static,
) {
    let cancel = cancel.clone();
    tasks.spawn(async move {
        if cancel.run_until_cancelled(readiness.wait()).await == Some(true) {
            run(cancel).await;
        }
    });
}

/// The pause between two requests to a host that does not answer.
const HOST_RETRY: std::time::Duration = std::time::Duration::from_secs(1);

fn informer_settings(config: &Config) -> InformerSettings {
    let mut settings = InformerSettings::default();
    settings.probe.period = config.probe.period;
    settings.probe.timeout = config.probe.timeout;
    settings.probe.failure_threshold = config.probe.failure_threshold;
    settings
}

/// A worker makes at most a few calls one after the other, each with a deadline, to the host; members are not waited for.
fn watchdog(config: &Config) -> Watchdog {
    Watchdog::new(Watchdog::BOUND.max(CALLS_OF_A_WORKER * config.call_timeout))
}

/// More calls than a worker makes for one set.
const CALLS_OF_A_WORKER: u32 = 6;

/// One worker.
async fn work(reconciler: Arc<Reconciler>, watched: Watched) {
    while let Some(item) = reconciler.queue.next().await {
        let _busy = watched.begin(&*item);
        reconciler.reconcile(&item, item.work()).await;
    }
}
