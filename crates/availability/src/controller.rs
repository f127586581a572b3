//! Starts the watch of AvailabilitySets, for one term of the leader.

use std::{sync::Arc, time::Duration};

use controller_base::{
    clock::Clock,
    event_recorder::EventRecorder,
    members::Members,
    object_tasks::{Newest, ObjectTasks, ObjectTasksHandler},
};
use fedrs_api::AvailabilitySet;
use kube::Client;
use reflector::{Collection, Reflector, ReflectorSettings};
use tokio::sync::Mutex;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use xxhash_rust::xxh3::xxh3_64;

use crate::{
    look::{AvailabilityTask, Context, PATH},
    metrics::AvailabilityMetrics,
};

/// The controller of AvailabilitySets.
pub struct AvailabilityController {
    /// Reaches the host, within the term of the leader.
    pub host: Client,
    /// The members.
    pub members: Arc<dyn Members>,
    /// The federation whose AvailabilitySets it handles (F40); empty for the one without a name.
    pub federation: String,
    /// The id of this federation, by which what is ours is known in members.
    pub federation_id: Arc<str>,
    /// The clock.
    pub clock: Clock,
    /// The longest a call to a member or the host may take.
    pub call_timeout: Duration,
    /// How long it waits for the clients of new members.
    pub joining_timeout: Duration,
    /// Records events.
    pub recorder: EventRecorder,
    /// The metrics.
    pub metrics: AvailabilityMetrics,
    /// Spreads pauses.
    pub seed: u64,
}

impl AvailabilityController {
    /// Handles AvailabilitySets until `cancel`. To be started once all members are known: one that is not would seem to be forgotten. Each
    /// AvailabilitySet has a task in `tasks`.
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
            federation: self.federation_id,
            clock: self.clock,
            call_timeout: self.call_timeout,
            joining_timeout: self.joining_timeout,
            recorder: self.recorder,
            metrics: self.metrics,
            neighbours: Arc::default(),
            nodes: Mutex::default(),
        });
        let sets = AvailabilitySets {
            context,
            federation: self.federation,
        };
        let handler = ObjectTasksHandler::new(sets, tasks, cancel.clone());
        cancel.run_until_cancelled(reflector.run(handler)).await;
    }
}

/// The tasks of all AvailabilitySets.
struct AvailabilitySets {
    context: Arc<Context>,
    federation: String,
}

impl ObjectTasks for AvailabilitySets {
    type Object = AvailabilitySet;
    const KINDS: &'static str = "AvailabilitySets";

    fn is_own(&self, set: &AvailabilitySet) -> bool {
        set.spec.federation == self.federation
    }

    fn seen(&self, set: &AvailabilitySet) {
        self.context.neighbours.put(set);
    }

    fn gone(&self, set: &AvailabilitySet) {
        self.context.neighbours.remove(set);
    }

    fn listed(&self) {
        self.context.neighbours.set_listed();
    }

    fn task(&self, object: Newest<AvailabilitySet>) -> impl Future<Output = ()> + Send + 'static {
        AvailabilityTask::new(Arc::clone(&self.context), object).run()
    }
}
