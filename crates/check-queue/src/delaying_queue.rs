//! `FRS_TO_CHECK`: keys with a delay, on the timers of tokio-util's [`DelayQueue`] (F21 to F24). client-go calls it a
//! delaying queue.
//!
//! ```text
//! add_after(key, delay) --> entries, timers --due--> run(): on_due(key)
//! ```
//!
//! Handles and driver share one lock, held briefly. `add_after` wakes the driver when the new key is due before all
//! others: the timers keep the waker of their last poll.

use std::{
    collections::HashMap,
    future::poll_fn,
    hash::Hash,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::{
    sync::CancellationToken,
    time::{DelayQueue, delay_queue},
};

use crate::DelayingQueueMetrics;

/// The longest delay; longer ones are cut to it. The timers panic beyond about two years.
const MAX_DELAY: Duration = Duration::from_hours(24 * 365);

/// Keys, each with the time at which it is due. Cheap to clone; clones are handles of the same queue.
#[derive(Debug)]
pub struct DelayingQueue<K> {
    shared: Arc<Shared<K>>,
}

#[derive(Debug)]
struct Shared<K> {
    state: Mutex<State<K>>,
    metrics: DelayingQueueMetrics,
}

#[derive(Debug)]
struct State<K> {
    timers: DelayQueue<K>,
    entries: HashMap<K, Entry>,
}

#[derive(Debug)]
struct Entry {
    due: Instant,
    added: Instant,
    timer: delay_queue::Key,
}

impl<K> Clone for DelayingQueue<K> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<K: Clone + Eq + Hash + Ord + Send> DelayingQueue<K> {
    /// An empty queue. Keys leave it while [`run`](Self::run) is polled.
    pub fn new(metrics: DelayingQueueMetrics) -> Self {
        let state = State {
            timers: DelayQueue::new(),
            entries: HashMap::new(),
        };
        Self {
            shared: Arc::new(Shared {
                state: Mutex::new(state),
                metrics,
            }),
        }
    }

    /// Queues `key` to be due after `delay`, or earlier if it is already queued for an earlier time (F24).
    ///
    /// Never blocks. The caller runs within a tokio runtime with time enabled.
    pub fn add_after(&self, key: K, delay: Duration) {
        let now = Instant::now();
        let due = now + delay.min(MAX_DELAY);
        let metrics = &self.shared.metrics;
        metrics.adds.inc();
        let mut state = self.shared.state.lock();
        let State { timers, entries } = &mut *state;
        if let Some(entry) = entries.get_mut(&key) {
            metrics.merged.inc();
            if due < entry.due {
                entry.due = due;
                timers.reset_at(&entry.timer, due);
            }
            return;
        }
        let timer = timers.insert_at(key.clone(), due);
        entries.insert(
            key,
            Entry {
                due,
                added: now,
                timer,
            },
        );
        metrics.depth.inc();
        metrics.oldest_age.insert(now);
    }

    /// Removes `key`. Returns whether it was queued.
    pub fn remove(&self, key: &K) -> bool {
        let mut state = self.shared.state.lock();
        let Some(entry) = state.entries.remove(key) else {
            return false;
        };
        state.timers.remove(&entry.timer);
        self.record_removal(&entry);
        true
    }

    /// Passes keys to `on_due` as soon as they are due (F25), until `cancel`.
    ///
    /// Keys that are due at the same poll come in the order of their due times, then of the keys.
    /// A queue has one driver: a second one would receive the wake-ups of the first.
    pub async fn run(self, mut on_due: impl FnMut(K), cancel: CancellationToken) {
        cancel
            .run_until_cancelled(async {
                loop {
                    for key in poll_fn(|context| self.poll_due(context)).await {
                        on_due(key);
                    }
                }
            })
            .await;
    }

    /// Ready with all keys that are due now; there is at least one.
    fn poll_due(&self, context: &mut Context<'_>) -> Poll<Vec<K>> {
        let mut due = Vec::new();
        {
            let mut state = self.shared.state.lock();
            // An empty queue is `Ready(None)` and still keeps the waker: the next `add_after` wakes this task.
            while let Poll::Ready(Some(expired)) = state.timers.poll_expired(context) {
                let key = expired.into_inner();
                let entry = state
                    .entries
                    .remove(&key)
                    .expect("timers and entries have the same keys");
                self.record_removal(&entry);
                due.push((entry.due, key));
            }
        }
        if due.is_empty() {
            return Poll::Pending;
        }
        due.sort_unstable();
        for (due, _) in &due {
            self.shared
                .metrics
                .latency
                .observe(due.elapsed().as_secs_f64());
        }
        Poll::Ready(due.into_iter().map(|(_, key)| key).collect())
    }

    fn record_removal(&self, entry: &Entry) {
        self.shared.metrics.depth.dec();
        self.shared.metrics.oldest_age.remove(entry.added);
    }
}

#[cfg(test)]
impl<K: Eq + Hash> DelayingQueue<K> {
    /// The time at which `key` is due, if it is queued.
    fn due(&self, key: &K) -> Option<Instant> {
        let state = self.shared.state.lock();
        state.entries.get(key).map(|entry| entry.due)
    }

    /// How many keys are queued.
    pub(crate) fn len(&self) -> usize {
        self.shared.state.lock().entries.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{WorkQueue, WorkQueueMetrics};
    use tokio::time::advance;

    const MINUTE: Duration = Duration::from_mins(1);

    fn add_to<K: Clone + Eq + Hash + Ord + Send + 'static>(
        work: &WorkQueue<K>,
    ) -> impl FnMut(K) + Send + 'static {
        let work = work.clone();
        move |key| work.add(key)
    }

    fn queues() -> (
        DelayingQueue<&'static str>,
        WorkQueue<&'static str>,
        CancellationToken,
    ) {
        let to_check = DelayingQueue::new(DelayingQueueMetrics::default());
        let work = WorkQueue::new(WorkQueueMetrics::default());
        let cancel = CancellationToken::new();
        tokio::spawn(to_check.clone().run(add_to(&work), cancel.clone()));
        (to_check, work, cancel)
    }

    async fn next(work: &WorkQueue<&'static str>) -> (&'static str, Instant) {
        let item = work.get().await.expect("the queue is not shut down");
        (*item, Instant::now())
    }

    #[tokio::test(start_paused = true)]
    async fn f21_delay_zero_is_due_at_once() {
        let (to_check, work, _cancel) = queues();
        let start = Instant::now();
        to_check.add_after("a", Duration::ZERO);
        let (key, at) = next(&work).await;
        assert_eq!(key, "a");
        assert!(at - start <= Duration::from_millis(1), "{:?}", at - start);
    }

    #[tokio::test(start_paused = true)]
    async fn f22_waits_for_its_delay() {
        let (to_check, work, _cancel) = queues();
        let start = Instant::now();
        to_check.add_after("a", MINUTE);
        assert_eq!(next(&work).await.1 - start, MINUTE);
        assert_eq!(to_check.len(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn f24_the_shorter_delay_wins_whichever_comes_first() {
        for delays in [[60, 5], [5, 60]] {
            let (to_check, work, _cancel) = queues();
            let start = Instant::now();
            for seconds in delays {
                to_check.add_after("a", Duration::from_secs(seconds));
            }
            assert_eq!(to_check.len(), 1);
            assert_eq!(next(&work).await.1 - start, Duration::from_secs(5));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn f24_a_later_addition_with_less_left_wins() {
        let (to_check, work, _cancel) = queues();
        let start = Instant::now();
        to_check.add_after("a", MINUTE);
        advance(Duration::from_secs(30)).await;
        to_check.add_after("a", Duration::from_secs(40));
        assert_eq!(next(&work).await.1 - start, MINUTE);
    }

    #[tokio::test(start_paused = true)]
    async fn an_earlier_key_wakes_the_driver() {
        let (to_check, work, _cancel) = queues();
        to_check.add_after("late", MINUTE);
        advance(Duration::from_secs(1)).await;
        to_check.add_after("early", Duration::from_secs(1));
        assert_eq!(next(&work).await.0, "early");
        assert_eq!(next(&work).await.0, "late");
    }

    #[tokio::test(start_paused = true)]
    async fn keys_due_at_the_same_time_come_in_order() {
        let (to_check, work, _cancel) = queues();
        for key in ["d", "b", "a", "c"] {
            to_check.add_after(key, MINUTE);
        }
        let mut order = Vec::new();
        for _ in 0..4 {
            order.push(next(&work).await.0);
        }
        assert_eq!(order, ["a", "b", "c", "d"]);
    }

    #[tokio::test(start_paused = true)]
    async fn removed_keys_never_become_due() {
        let (to_check, work, _cancel) = queues();
        to_check.add_after("a", Duration::from_secs(1));
        to_check.add_after("b", MINUTE);
        assert!(to_check.remove(&"a"));
        assert!(!to_check.remove(&"a"));
        assert_eq!(next(&work).await.0, "b");
    }

    #[tokio::test(start_paused = true)]
    async fn a_delay_beyond_the_maximum_is_cut() {
        let (to_check, _work, _cancel) = queues();
        to_check.add_after("a", Duration::MAX);
        assert_eq!(to_check.due(&"a"), Some(Instant::now() + MAX_DELAY));
    }

    #[tokio::test(start_paused = true)]
    async fn metrics_follow_the_queue() {
        let (to_check, work, _cancel) = queues();
        let metrics = to_check.shared.metrics.clone();
        to_check.add_after("a", MINUTE);
        to_check.add_after("a", MINUTE);
        advance(Duration::from_secs(10)).await;
        assert_eq!(
            (
                metrics.depth.get(),
                metrics.adds.get(),
                metrics.merged.get()
            ),
            (1, 2, 1)
        );
        assert_eq!(metrics.oldest_age.get(), Duration::from_secs(10));
        next(&work).await;
        assert_eq!(
            (metrics.depth.get(), metrics.oldest_age.get()),
            (0, Duration::ZERO)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn the_driver_ends_when_cancelled() {
        let to_check = DelayingQueue::<u8>::new(DelayingQueueMetrics::default());
        let cancel = CancellationToken::new();
        let work = WorkQueue::new(WorkQueueMetrics::default());
        let driver = tokio::spawn(to_check.run(add_to(&work), cancel.clone()));
        cancel.cancel();
        driver.await.expect("no panic");
    }
}
