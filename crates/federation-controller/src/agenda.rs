//! What is to be done for which set, and when (F21 to F25).
//!
//! ```text
//! check(key, delay)  -> FRS_TO_CHECK --due--.
//!                                           +--> work queue --> worker: check, or only the status
//! publish(key)       -> status queue --due--'
//! ```

use std::{collections::HashSet, sync::Arc, time::Duration};

use check_queue::{DelayingQueue, WorkItem, WorkQueue};
use fedrs_api::SetKey;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::metrics::Metrics;

/// The queues of one controller. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Agenda {
    checks: DelayingQueue<SetKey>,
    statuses: DelayingQueue<SetKey>,
    work: WorkQueue<SetKey>,
    /// Keys whose check is due: work on any other key only publishes its status.
    due: Arc<Mutex<HashSet<SetKey>>>,
    status_delay: Duration,
}

impl Agenda {
    pub(crate) fn new(metrics: &Metrics, status_delay: Duration) -> Self {
        Self {
            checks: DelayingQueue::new(metrics.checks.clone()),
            statuses: DelayingQueue::new(metrics.statuses.clone()),
            work: WorkQueue::new(metrics.work.clone()),
            due: Arc::default(),
            status_delay,
        }
    }

    /// Puts `key` on `FRS_TO_CHECK`; the shorter delay wins (F24).
    pub(crate) fn check(&self, key: SetKey, delay: Duration) {
        self.checks.add_after(key, delay);
    }

    /// The status of `key` is published soon (F22).
    pub(crate) fn publish(&self, key: SetKey) {
        self.statuses.add_after(key, self.status_delay);
    }

    /// Forgets a set that is gone.
    pub(crate) fn forget(&self, key: &SetKey) {
        self.checks.remove(key);
        self.statuses.remove(key);
    }

    /// The next set to work on, and whether it is to be checked; `None` at the end.
    pub(crate) async fn next(&self) -> Option<(WorkItem<SetKey>, bool)> {
        let work = self.work.get().await?;
        let due = self.due.lock().remove(&*work);
        Some((work, due))
    }

    /// Moves what is due to the workers until `cancel`.
    pub(crate) async fn run(self, cancel: CancellationToken) {
        let (work, due) = (self.work.clone(), self.due.clone());
        let check = move |key: SetKey| {
            due.lock().insert(key.clone());
            work.add(key);
        };
        let work = self.work.clone();
        let publish = move |key| work.add(key);
        tokio::join!(
            self.checks.run(check, cancel.clone()),
            self.statuses.run(publish, cancel.clone())
        );
        self.work.shut_down();
    }
}
