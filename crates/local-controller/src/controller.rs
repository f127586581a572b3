//! Wires the parts together: tasks, each cancellable and joined.

use std::sync::Arc;

use controller_base::{
    clock::Clock,
    election::Fence,
    error_text::format_error,
    event_recorder::EventRecorder,
    list_progress::{ListProgress, ListState},
    readiness::Readiness,
    running::Running,
    watchdog::{Watchdog, Watched},
};
use kube::Client;
use reflector::{Collection, Error, Reflector, ReflectorSettings};
use tokio::sync::{Semaphore, watch};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use xxhash_rust::xxh3::xxh3_64;

use crate::{
    config::LocalControllerConfig,
    entry::SetObject,
    execute::Executor,
    handler::{BudgetObject, Handler, NodeObject, PodObject, WatchedKind},
    memory::Memories,
    metrics::LocalMetrics,
    migration_object::{PolicyObject, RequestObject},
    native::NativeMigrations,
    notify::{Notifier, Webhooks},
    publish::Publisher,
    queue::Queue,
    reconcile::Reconciler,
    store::Store,
    sweep::sweep,
};

/// Who reports the controller's events.
pub const COMPONENT: &str = "fedrs.dev/replica-set-controller";
/// The name of the controller's Lease, and of its ServiceAccount and roles.
pub const LEASE: &str = "fedrs-replica-set-controller";

/// More calls than a worker makes one after the other for a set, apart from those for pods, each of which is progress, and than are made
/// for a request of a pod of a ReplicaSet: three reads, two evictions, and two statuses with a read each if they are outdated.
const CALLS_OF_A_WORKER: u32 = 10;

/// The configuration and the client of a controller.
pub struct LocalController {
    /// Reaches the cluster; without a retry of its own.
    pub client: Client,
    /// What can be configured.
    pub config: LocalControllerConfig,
    /// The clock.
    pub clock: Clock,
    /// Spreads pauses; the same seed gives the same run on a simulated clock.
    pub seed: u64,
    /// How webhooks are reached.
    pub webhooks: Webhooks,
    /// The metrics.
    pub metrics: LocalMetrics,
    /// Nothing is written once it is closed.
    pub fence: Fence,
}

impl LocalController {
    /// Starts all tasks; they end when `cancel` is cancelled.
    #[must_use]
    pub fn start(mut self, cancel: &CancellationToken) -> Running {
        self.client = self.fence.guard(&self.client);
        let tasks = TaskTracker::new();
        let calls = CALLS_OF_A_WORKER * self.config.call_timeout;
        let watchdog = Watchdog::new(Watchdog::BOUND.max(calls));
        let reconciler = self.reconciler(&tasks, cancel);
        let lists = [
            self.watch::<SetObject>(&reconciler, &tasks, cancel),
            self.watch::<PodObject>(&reconciler, &tasks, cancel),
            self.watch::<NodeObject>(&reconciler, &tasks, cancel),
            self.watch::<BudgetObject>(&reconciler, &tasks, cancel),
            self.watch::<PolicyObject>(&reconciler, &tasks, cancel),
            self.watch::<RequestObject>(&reconciler, &tasks, cancel),
        ];
        // There is one cluster, which is known.
        let (_, all_known) = watch::channel(true);
        let readiness = Readiness::new(lists, all_known);
        let queue = reconciler.queue.clone().run(cancel.clone());
        tasks.spawn(watchdog.watch("queue").around(queue));
        let running = Running::new(tasks, readiness, watchdog);
        let workers = reconciler.config.workers;
        let executor = Arc::clone(&reconciler.executor);
        let (clock, migration) = (self.clock.clone(), self.config.migration.clone());
        let ends = cancel.clone();
        running.start_workers(1, cancel.clone(), move |watched| {
            let (ends, clock) = (ends.clone(), clock.clone());
            let (executor, migration) = (Arc::clone(&executor), migration.clone());
            async move {
                let sweep = sweep(&executor, &clock, &migration, &watched);
                _ = ends.run_until_cancelled(sweep).await;
            }
        });
        let native = Arc::new(NativeMigrations {
            executor: Arc::clone(&reconciler.executor),
            config: self.config.migration.clone(),
            default_policy: reconciler.default_policy.clone(),
            clock: self.clock.clone(),
        });
        let marks = Arc::clone(&native);
        let ends = cancel.clone();
        running.start_workers(1, cancel.clone(), move |watched| {
            let (ends, native) = (ends.clone(), Arc::clone(&native));
            async move {
                // Boxed, as it holds several calls.
                let run = Box::pin(native.run(&watched));
                _ = ends.run_until_cancelled(run).await;
            }
        });
        let ends = cancel.clone();
        running.start_workers(1, cancel.clone(), move |watched| {
            let (ends, native) = (ends.clone(), Arc::clone(&marks));
            async move {
                let run = Box::pin(native.run_marks(&watched));
                _ = ends.run_until_cancelled(run).await;
            }
        });
        let notifier = Arc::new(self.notifier(&reconciler));
        let ends = cancel.clone();
        running.start_workers(1, cancel.clone(), move |watched| {
            let (ends, notifier) = (ends.clone(), Arc::clone(&notifier));
            async move { _ = ends.run_until_cancelled(notifier.run(&watched)).await }
        });
        running.start_workers(workers, cancel.clone(), move |watched| {
            work(Arc::clone(&reconciler), watched)
        });
        running
    }

    fn notifier(&self, reconciler: &Reconciler) -> Notifier {
        Notifier {
            executor: Arc::clone(&reconciler.executor),
            recorder: reconciler.recorder.clone(),
            webhooks: self.webhooks.clone(),
            settings: Arc::clone(&reconciler.notify),
            default_policy: reconciler.default_policy.clone(),
            clock: self.clock.clone(),
        }
    }

    fn reconciler(&self, tasks: &TaskTracker, cancel: &CancellationToken) -> Arc<Reconciler> {
        let (recorder, writers) = EventRecorder::new(
            COMPONENT,
            &self.client,
            self.clock.clone(),
            self.metrics.events_dropped.clone(),
            cancel,
        );
        for writer in writers {
            tasks.spawn(writer);
        }
        let store = Arc::new(Store::default());
        let queue = Queue::new(&self.metrics);
        let executor = Arc::new(Executor {
            client: self.client.clone(),
            store: Arc::clone(&store),
            queue: queue.clone(),
            metrics: self.metrics.clone(),
            clock: self.clock.clone(),
            call_timeout: self.config.call_timeout,
            permits: Semaphore::new(self.config.concurrent_requests as usize),
        });
        let publisher = Publisher {
            executor: Arc::clone(&executor),
            status_delay: self.config.status_delay,
        };
        Arc::new(Reconciler {
            client: self.client.clone(),
            store,
            queue,
            executor,
            publisher,
            recorder,
            clock: self.clock.clone(),
            config: self.config.clone(),
            default_policy: self.config.migration.default_policy(),
            notify: Arc::new(self.config.migration.notify_settings()),
            memories: Memories::default(),
        })
    }

    /// Starts the watch of a kind. Returns its state.
    fn watch<T: WatchedKind>(
        &self,
        reconciler: &Reconciler,
        tasks: &TaskTracker,
        cancel: &CancellationToken,
    ) -> watch::Receiver<ListState> {
        let (listed, state) = watch::channel(ListState::default());
        let progress = ListProgress::new(T::KIND, failed_to_list, listed);
        let handler = Handler::<T>::new(
            &reconciler.store,
            &reconciler.queue,
            &self.metrics,
            progress,
        );
        let reflector = Reflector::new(self.client.clone(), Collection::all(T::PATH))
            .settings(ReflectorSettings::default())
            .seed(self.seed ^ xxh3_64(T::PATH.as_bytes()));
        let cancel = cancel.clone();
        tasks.spawn(async move { cancel.run_until_cancelled(reflector.run(handler)).await });
        state
    }
}

fn failed_to_list(kind: &str, error: &Error) -> String {
    let failed = format!("failed to list {kind}: {}", format_error(error));
    match error.code() {
        Some(404) => format!(
            "the cluster has no CRD of {kind}: run `fedrs crds --replica-set-controller | kubectl apply -f -`; waiting"
        ),
        Some(403) => format!(
            "{failed}; `fedrs rbac replica-set-controller` prints the permissions that this version needs: apply them"
        ),
        _ => failed,
    }
}

/// One worker.
async fn work(reconciler: Arc<Reconciler>, watched: Watched) {
    while let Some(item) = reconciler.queue.next().await {
        let _busy = watched.begin(&*item);
        reconciler.reconcile(&item, &watched).await;
    }
}
