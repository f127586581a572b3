//! Finds parts of the process that hang, for `/healthz`: nothing but a restart ends that.
//!
//! A part is *busy* from the beginning to the end of each piece of its work, and idle in between, for any time. A part that
//! always has something to do *beats* instead. All waits within a piece of work, also those for members and the host, have
//! deadlines, which add up to less than the bound.

use std::{
    fmt::{self, Display},
    pin::pin,
    sync::{Arc, Weak},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::time::Instant;

/// Finds parts that hang. Cheap to clone; clones watch the same parts.
#[derive(Clone, Debug)]
pub struct Watchdog(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    bound: Duration,
    watched: Mutex<Vec<Weak<Part>>>,
}

/// One part of the process, which is watched until this is dropped.
#[derive(Debug)]
pub struct Watched(Arc<Part>);

#[derive(Debug)]
struct Part {
    name: String,
    /// Since when it has not finished what it does, and what that is.
    busy: Mutex<Option<(Instant, String)>>,
}

/// A part that hangs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hung {
    /// Its name.
    pub name: String,
    /// What it does, for the log: it may name objects.
    pub work: String,
    /// For how long.
    pub lasted: Duration,
}

impl Display for Hung {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.lasted.as_secs();
        write!(f, "{} has made no progress for {seconds} s", self.name)
    }
}

impl Watchdog {
    /// The shortest time after which a part hangs.
    pub const BOUND: Duration = Duration::from_secs(60);

    /// A watchdog for which a part hangs that is busy for longer than `bound`.
    #[must_use]
    pub fn new(bound: Duration) -> Self {
        let watched = Mutex::default();
        Self(Arc::new(Parts { bound, watched }))
    }

    /// Watches a part, which is idle at first.
    #[must_use]
    pub fn watch(&self, name: impl Into<String>) -> Watched {
        let part = Arc::new(Part {
            name: name.into(),
            busy: Mutex::default(),
        });
        let mut watched = self.0.watched.lock();
        watched.retain(|part| part.strong_count() > 0);
        watched.push(Arc::downgrade(&part));
        Watched(part)
    }

    /// The part that has hung for the longest time, if one does.
    #[must_use]
    pub fn hung(&self) -> Option<Hung> {
        let watched = self.0.watched.lock();
        let parts = watched.iter().filter_map(Weak::upgrade);
        let hung = parts.filter_map(|part| {
            let busy = part.busy.lock();
            let (since, work) = busy.as_ref()?;
            let lasted = since.elapsed();
            (lasted > self.0.bound).then(|| Hung {
                name: part.name.clone(),
                work: work.clone(),
                lasted,
            })
        });
        hung.max_by_key(|hung| hung.lasted)
    }
}

impl Default for Watchdog {
    fn default() -> Self {
        Self::new(Self::BOUND)
    }
}

impl Watched {
    /// Begins `work`, which lasts until the result is dropped.
    #[must_use]
    pub fn begin(&self, work: impl Display) -> Busy<'_> {
        *self.0.busy.lock() = Some((Instant::now(), work.to_string()));
        Busy(self)
    }

    /// Reports progress; the next one is due within the bound.
    pub fn beat(&self) {
        *self.0.busy.lock() = Some((Instant::now(), String::new()));
    }

    /// Runs `task`, which is idle while it waits: it hangs only if it blocks its thread.
    pub async fn around<T>(self, task: impl Future<Output = T>) -> T {
        let mut task = pin!(task);
        std::future::poll_fn(|context| {
            let _busy = self.begin("");
            task.as_mut().poll(context)
        })
        .await
    }
}

/// Work in progress.
#[derive(Debug)]
pub struct Busy<'a>(&'a Watched);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        *self.0.0.busy.lock() = None;
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    #[tokio::test(start_paused = true)]
    async fn s10_work_without_an_end_hangs_and_idleness_does_not() {
        let watchdog = Watchdog::default();
        let (worker, idle) = (watchdog.watch("worker-1"), watchdog.watch("worker-2"));
        drop(idle.begin("default/api"));
        advance(HOUR).await;
        assert_eq!(watchdog.hung(), None, "idle");
        let busy = worker.begin("default/web");
        advance(Watchdog::BOUND).await;
        assert_eq!(watchdog.hung(), None, "within the bound");
        advance(Duration::from_secs(1)).await;
        let hung = watchdog.hung().unwrap();
        assert_eq!(hung.to_string(), "worker-1 has made no progress for 61 s");
        assert_eq!(hung.work, "default/web");
        drop(busy);
        assert_eq!(watchdog.hung(), None, "it has ended after all");
    }

    #[tokio::test(start_paused = true)]
    async fn s10_a_part_that_beats_has_to_continue_until_it_ends() {
        let watchdog = Watchdog::default();
        let part = watchdog.watch("members");
        advance(HOUR).await;
        for _ in 0..5 {
            part.beat();
            advance(Watchdog::BOUND).await;
            assert_eq!(watchdog.hung(), None);
        }
        advance(HOUR).await;
        assert_eq!(watchdog.hung().unwrap().name, "members");
        drop(part);
        assert_eq!(watchdog.hung(), None);
    }

    #[tokio::test]
    async fn s10_a_task_that_waits_does_not_hang_and_one_that_blocks_does() {
        let watchdog = Watchdog::new(Duration::ZERO);
        let task = async {
            tokio::task::yield_now().await;
            // Without an await, until the clock has moved.
            while watchdog.hung().is_none() {}
        };
        let queue = watchdog.watch("queue");
        let ((), while_it_waits) = tokio::join!(queue.around(task), async { watchdog.hung() });
        assert_eq!(while_it_waits, None);
    }
}
