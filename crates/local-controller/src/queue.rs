//! Which set is reconciled, and when: one worker for a set at a time.

use std::time::Duration;

use check_queue::{DelayingQueue, WorkItem, WorkQueue};
use tokio_util::sync::CancellationToken;

use crate::{key::SetKey, metrics::LocalMetrics};

/// The queues of the controller. Cheap to clone; clones are handles of the same queues.
#[derive(Clone)]
pub(crate) struct Queue {
    delayed: DelayingQueue<SetKey>,
    work: WorkQueue<SetKey>,
}

impl Queue {
    pub(crate) fn new(metrics: &LocalMetrics) -> Self {
        Self {
            delayed: DelayingQueue::new(metrics.delayed.clone()),
            work: WorkQueue::new(metrics.work.clone()),
        }
    }

    /// Reconciles `key` after `delay`, or earlier if that was asked for; without a delay at once.
    pub(crate) fn add(&self, key: SetKey, delay: Duration) {
        if delay.is_zero() {
            self.work.add_work(key, ());
        } else {
            self.delayed.add_after(key, delay);
        }
    }

    /// Forgets a set that is gone.
    pub(crate) fn forget(&self, key: &SetKey) {
        self.delayed.remove(key);
    }

    /// Waits for the next key. Its holder alone works on it; `None` at the end.
    pub(crate) async fn next(&self) -> Option<WorkItem<SetKey>> {
        self.work.get().await
    }

    /// Moves due keys to the workers until `cancel`.
    pub(crate) async fn run(self, cancel: CancellationToken) {
        let work = self.work.clone();
        self.delayed.run(|key| work.add_work(key, ()), cancel).await;
        self.work.shut_down();
    }
}
