//! Wires the parts together: tasks for each member, each cancellable and joined.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use controller_base::{
    clock::Clock, election::Fence, readiness::Readiness, running::Running, watchdog::Watchdog,
};
use kube::Client;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    member::{self, Tasks},
    metrics::McsMetrics,
    shared::Shared,
};

/// Who reports events about the Lease.
pub const COMPONENT: &str = "fedrs.dev/mcs-controller";
/// The name of the Lease, of the ServiceAccount and of its roles.
pub const LEASE: &str = "fedrs-mcs-controller";

/// A controller for one term.
pub struct McsController {
    /// How long it waits for members that can't be listed, before it writes what follows from the others.
    pub patience: Duration,
    /// The clock.
    pub clock: Clock,
    /// Spreads pauses.
    pub seed: u64,
    /// The metrics.
    pub metrics: McsMetrics,
    /// Nothing is written once it is closed.
    pub fence: Fence,
}

/// The members of a running controller.
pub struct Members {
    shared: Arc<Shared>,
    fence: Fence,
    tasks: Tasks,
    /// What ends the tasks of each member.
    running: BTreeMap<Arc<str>, CancellationToken>,
}

impl McsController {
    /// Starts without members; all tasks end when `cancel` is cancelled.
    #[must_use]
    pub fn start(self, cancel: &CancellationToken) -> (Running, Members) {
        let shared = Arc::new(Shared::new(self.metrics, self.clock));
        let tasks = Tasks {
            tracker: TaskTracker::new(),
            watchdog: Watchdog::new(Watchdog::BOUND),
            cancel: cancel.clone(),
            seed: self.seed,
        };
        let begin = begin_in_time(Arc::clone(&shared), self.patience);
        // It runs until the end, so that the controller does.
        tasks.tracker.spawn({
            let cancel = cancel.clone();
            async move {
                cancel.run_until_cancelled(begin).await;
                cancel.cancelled().await;
            }
        });
        let readiness = Readiness::new([], shared.has_begun.subscribe());
        let running = Running::new(tasks.tracker.clone(), readiness, tasks.watchdog.clone());
        let members = Members {
            shared,
            fence: self.fence,
            tasks,
            running: BTreeMap::new(),
        };
        (running, members)
    }
}

/// Begins to decide when the members have had their time.
async fn begin_in_time(shared: Arc<Shared>, patience: Duration) {
    let mut is_complete = shared.is_complete.subscribe();
    if is_complete.wait_for(|complete| *complete).await.is_err() {
        return;
    }
    shared.begin_if_known();
    tokio::time::sleep(patience).await;
    shared.begin();
}

impl Members {
    /// There is such a member, which is not known yet.
    pub fn add(&mut self, name: &str) {
        let name: Arc<str> = name.into();
        if !self.running.contains_key(&name) {
            self.shared.state.begin_member(&name);
            self.shared.show(&name);
        }
    }

    /// Watches a member with this client from now on, and writes with it.
    pub fn set(&mut self, name: &str, client: &Client) {
        self.stop(name);
        let name: Arc<str> = name.into();
        let cancel = self.tasks.cancel.child_token();
        let tasks = Tasks {
            cancel: cancel.clone(),
            ..self.tasks.clone()
        };
        member::start(&self.shared, &name, &self.fence.guard(client), &tasks);
        self.running.insert(name, cancel);
    }

    /// It is no member any more: it stays as it is, and so does what others have imported from it.
    pub fn end(&mut self, name: &str) {
        self.stop(name);
        self.shared.state.end_member(name);
        self.shared.look_at(&self.shared.state.all());
        self.shared.begin_if_known();
    }

    /// All members have been added that there are at the start.
    pub fn complete(&self) {
        self.shared.is_complete.send_replace(true);
        self.shared.begin_if_known();
    }

    fn stop(&mut self, name: &str) {
        if let Some(cancel) = self.running.remove(name) {
            cancel.cancel();
            self.shared.remove_queue(name);
        }
    }
}
