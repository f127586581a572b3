//! Which FederatedReplicaSet to reconcile, and when (F21 to F25).
//!
//! ```text
//! add_check(key, delay) -> FRS_TO_CHECK --due--.
//!                                              +--> work queue --> worker: reconcile(key, work)
//! add_status(key)       -> status queue --due--'
//! ```

use std::time::Duration;

use check_queue::{DelayingQueue, WorkItem, WorkQueue};
use fedrs_api::ObjectKey;
use tokio_util::sync::CancellationToken;

use crate::metrics::Metrics;

/// What a worker does for a FederatedReplicaSet. The greater work includes the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ReconcileWork {
    /// Updates the status, and changes nothing in the members.
    StatusOnly,
    /// Checks it: decides what to change, and updates the status.
    Check,
}

impl ReconcileWork {
    fn patience(self) -> Duration {
        match self {
            Self::StatusOnly => STATUS_PATIENCE,
            Self::Check => Duration::ZERO,
        }
    }
}

/// For how long a status lets later checks pass: when many sets change at once, what they lack in the members comes first.
const STATUS_PATIENCE: Duration = Duration::from_secs(10);

/// The queues of one controller. Cheap to clone; clones are handles of the same queues.
#[derive(Clone)]
pub(crate) struct ReconcileQueue {
    checks: DelayingQueue<ObjectKey>,
    statuses: DelayingQueue<ObjectKey>,
    work: WorkQueue<ObjectKey, ReconcileWork>,
    status_delay: Duration,
}

impl ReconcileQueue {
    pub(crate) fn new(metrics: &Metrics, status_delay: Duration) -> Self {
        Self {
            checks: DelayingQueue::new(metrics.checks.clone()),
            statuses: DelayingQueue::new(metrics.statuses.clone()),
            work: WorkQueue::with_patience(metrics.work.clone(), ReconcileWork::patience),
            status_delay,
        }
    }

    /// Puts `key` on `FRS_TO_CHECK`; the shorter delay wins (F24).
    pub(crate) fn add_check(&self, key: ObjectKey, delay: Duration) {
        self.checks.add_after(key, delay);
    }

    /// Updates the status of `key` after the configured delay (F22).
    pub(crate) fn add_status(&self, key: ObjectKey) {
        self.statuses.add_after(key, self.status_delay);
    }

    /// Forgets an object that is gone.
    pub(crate) fn forget(&self, key: &ObjectKey) {
        self.checks.remove(key);
        self.statuses.remove(key);
    }

    /// Waits for the next key. Its holder alone works on it; `None` at the end.
    pub(crate) async fn next(&self) -> Option<WorkItem<ObjectKey, ReconcileWork>> {
        self.work.get().await
    }

    /// For how long the status after `work` lets checks pass that wait for a worker.
    pub(crate) fn patience_after(&self, work: ReconcileWork) -> Duration {
        match work {
            ReconcileWork::Check if self.work.is_behind() => STATUS_PATIENCE,
            // A status update has waited.
            ReconcileWork::Check | ReconcileWork::StatusOnly => Duration::ZERO,
        }
    }

    /// Moves due keys to the workers until `cancel`.
    pub(crate) async fn run(self, cancel: CancellationToken) {
        let add = |work| {
            let queue = self.work.clone();
            move |key| queue.add_work(key, work)
        };
        let (check, status) = (add(ReconcileWork::Check), add(ReconcileWork::StatusOnly));
        tokio::join!(
            self.checks.run(check, cancel.clone()),
            self.statuses.run(status, cancel.clone())
        );
        self.work.shut_down();
    }
}
