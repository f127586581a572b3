//! A controller that runs: its tasks, whether it can do its work, and whether a part of it hangs.

use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    readiness::Readiness,
    watchdog::{Watchdog, Watched},
};

/// A running controller.
pub struct Running {
    tasks: TaskTracker,
    readiness: Readiness,
    watchdog: Watchdog,
}

impl Running {
    /// A controller with these tasks.
    #[must_use]
    pub fn new(tasks: TaskTracker, readiness: Readiness, watchdog: Watchdog) -> Self {
        Self {
            tasks,
            readiness,
            watchdog,
        }
    }

    /// Starts so many workers, until `cancel`, once everything is listed and known: before, what a controller does not know yet
    /// would seem to be missing.
    pub fn start_workers<W: Future<Output = ()> + Send + 'static>(
        &self,
        count: u32,
        cancel: CancellationToken,
        worker: impl Fn(Watched) -> W + Send + 'static,
    ) {
        let (tasks, watchdog) = (self.tasks.clone(), self.watchdog.clone());
        let mut readiness = self.readiness();
        self.tasks.spawn(async move {
            if cancel.run_until_cancelled(readiness.wait()).await != Some(true) {
                return;
            }
            for number in 0..count {
                tasks.spawn(worker(watchdog.watch(format!("worker {number}"))));
            }
        });
    }

    /// Whether it can do its work.
    #[must_use]
    pub fn readiness(&self) -> Readiness {
        self.readiness.clone()
    }

    /// Whether a part of it hangs.
    #[must_use]
    pub fn watchdog(&self) -> Watchdog {
        self.watchdog.clone()
    }

    /// Waits until all tasks have ended, after the controller was cancelled.
    pub async fn joined(self) {
        self.tasks.close();
        self.tasks.wait().await;
    }
}
