//! The processes of a run: each runs, or does not at the moment.

use futures::{FutureExt, future::select_all};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::{crash::Lifetime, suspension::Suspension};

/// A process that runs, with what else belongs to it.
pub(crate) struct Process<T> {
    pub(crate) lifetime: Lifetime,
    pub(crate) cancel: CancellationToken,
    pub(crate) task: JoinHandle<()>,
    pub(crate) suspension: Suspension,
    pub(crate) parts: T,
}

/// All processes, by their numbers from 0.
pub(crate) struct Slots<T>(Vec<Option<Process<T>>>);

impl<T> Slots<T> {
    /// None runs yet.
    pub(crate) fn new(count: usize) -> Self {
        Self((0..count).map(|_| None).collect())
    }

    /// How many there are, running or not.
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// The name of a process.
    pub(crate) fn name(number: usize) -> String {
        format!("controller-{}", number + 1)
    }

    /// Whether it runs.
    pub(crate) fn runs(&self, number: usize) -> bool {
        self.0[number].is_some()
    }

    /// A process has been started.
    pub(crate) fn put(&mut self, number: usize, process: Process<T>) {
        self.0[number] = Some(process);
    }

    /// Those that run.
    pub(crate) fn running(&self) -> impl Iterator<Item = &Process<T>> {
        self.0.iter().flatten()
    }

    /// Waits until a process crashes. Returns its number.
    pub(crate) async fn crashed(&self) -> usize {
        let running = self.0.iter().enumerate();
        let ends = running.filter_map(|(number, process)| {
            let lifetime = process.as_ref()?.lifetime.clone();
            Some(
                async move { lifetime.ended().await }
                    .map(move |()| number)
                    .boxed(),
            )
        });
        let ends: Vec<_> = ends.collect();
        if ends.is_empty() {
            return std::future::pending().await;
        }
        select_all(ends).await.0
    }

    /// Ends a process without a chance to write anything.
    pub(crate) async fn kill(&mut self, number: usize) {
        if let Some(process) = self.0[number].take() {
            process.suspension.resume();
            process.lifetime.end();
            process.cancel.cancel();
            // A panic was recorded when it happened.
            let _ = process.task.await;
        }
    }

    /// Makes a process crash at a later write of its own.
    pub(crate) fn crash_at(&self, number: usize, write: u64, after: bool) {
        if let Some(process) = &self.0[number] {
            process.lifetime.crash_at(write, after);
        }
    }

    /// Takes back the crashes that have not happened yet.
    pub(crate) fn crash_no_more(&self) {
        for process in self.running() {
            process.lifetime.crash_no_more();
        }
    }

    /// Suspends or resumes the election of a process. While suspended, it does not notice the end of its term.
    pub(crate) fn suspend(&self, number: usize, on: bool) {
        let Some(process) = &self.0[number] else {
            return;
        };
        if on {
            process.suspension.suspend();
        } else {
            process.suspension.resume();
        }
    }
}
