//! Starts the watch of Maintenances, for one term of the leader.

use std::{sync::Arc, time::Duration};

use controller_base::{
    clock::Clock,
    event_recorder::EventRecorder,
    members::Members,
    object_tasks::{Newest, ObjectTasks, ObjectTasksHandler},
};
use fedrs_api::Maintenance;
use kube::Client;
use reflector::{Collection, Reflector, ReflectorSettings};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use xxhash_rust::xxh3::xxh3_64;

use crate::{
    look::{Context, MaintenanceTask, PATH},
    metrics::MaintenanceMetrics,
};

/// The controller of Maintenances.
pub struct MaintenanceController {
    /// Reaches the host, within the term of the leader.
    pub host: Client,
    /// The members.
    pub members: Arc<dyn Members>,
    /// The federation whose Maintenances it handles (F40); empty for the one without a name.
    pub federation: String,
    /// The clock.
    pub clock: Clock,
    /// The longest a call to a member or the host may take.
    pub call_timeout: Duration,
    /// How long it waits for the clients of new members.
    pub joining_timeout: Duration,
    /// Records events.
    pub recorder: EventRecorder,
    /// The metrics.
    pub metrics: MaintenanceMetrics,
    /// Spreads pauses.
    pub seed: u64,
}

impl MaintenanceController {
    /// Handles Maintenances until `cancel`. To be started once all members are known: one that is not would seem to be forgotten. Each
    /// Maintenance has a task in `tasks`.
    pub async fn run(self, tasks: TaskTracker, cancel: CancellationToken) {
        // A restored host may have other objects at a version that seems known.
        let settings = ReflectorSettings {
            relist_after_break: true,
            ..ReflectorSettings::default()
        };
        let reflector = Reflector::new(self.host.clone(), Collection::all(PATH))
            .settings(settings)
            .seed(self.seed ^ xxh3_64(PATH.as_bytes()));
        let context = Arc::new(Context {
            host: self.host,
            members: self.members,
            clock: self.clock,
            call_timeout: self.call_timeout,
            joining_timeout: self.joining_timeout,
            recorder: self.recorder,
            metrics: self.metrics,
        });
        let maintenances = Maintenances {
            context,
            federation: self.federation,
        };
        let handler = ObjectTasksHandler::new(maintenances, tasks, cancel.clone());
        cancel.run_until_cancelled(reflector.run(handler)).await;
    }
}

/// The tasks of all Maintenances.
struct Maintenances {
    context: Arc<Context>,
    federation: String,
}

impl ObjectTasks for Maintenances {
    type Object = Maintenance;
    const KINDS: &'static str = "Maintenances";

    fn is_own(&self, maintenance: &Maintenance) -> bool {
        maintenance.spec.federation == self.federation
    }

    fn task(&self, object: Newest<Maintenance>) -> impl Future<Output = ()> + Send + 'static {
        MaintenanceTask::new(Arc::clone(&self.context), object).run()
    }
}
