//! `FRS_TO_CHECK`: keys that wait for their time, on tokio-util's [`DelayQueue`] (F21 to F24).
//!
//! The handle and the driver share one short lock. `add` wakes the driver by itself when the new key is due
//! before all others, because the queue keeps the waker of its last poll.

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

use crate::CheckQueueMetrics;

/// Longer delays are cut to this: the timer wheel holds about two years and panics beyond.
pub const MAX_DELAY: Duration = Duration::from_hours(24 * 365);

/// Keys with a due time each. Cheap to clone; clones are handles of the same queue.
#[derive(Debug)]
pub struct CheckQueue<K> {
    shared: Arc<Shared<K>>,
}

#[derive(Debug)]
struct Shared<K> {
    state: Mutex<State<K>>,
    metrics: CheckQueueMetrics,
}

#[derive(Debug)]
struct State<K> {
    wheel: DelayQueue<K>,
    entries: HashMap<K, Entry>,
}

#[derive(Debug)]
struct Entry {
    due: Instant,
    added: Instant,
    slot: delay_queue::Key,
}

impl<K> Clone for CheckQueue<K> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<K: Clone + Eq + Hash + Ord + Send> CheckQueue<K> {
    /// An empty queue; nothing leaves it until [`run`](Self::run) is polled.
    pub fn new(metrics: CheckQueueMetrics) -> Self {
        let state = State {
            wheel: DelayQueue::new(),
            entries: HashMap::new(),
        };
        Self {
            shared: Arc::new(Shared {
                state: Mutex::new(state),
                metrics,
            }),
        }
    }

    /// Queues `key` to be due after `delay`, or earlier if it is queued for an earlier time already (F24).
    ///
    /// Never waits. To be called from within a tokio runtime with time, as the timer is one of its.
    pub fn add(&self, key: K, delay: Duration) {
        let now = Instant::now();
        let due = now + delay.min(MAX_DELAY);
        let metrics = &self.shared.metrics;
        metrics.adds.inc();
        let mut state = self.shared.state.lock();
        let State { wheel, entries } = &mut *state;
        if let Some(entry) = entries.get_mut(&key) {
            metrics.merged.inc();
            if due < entry.due {
                entry.due = due;
                wheel.reset_at(&entry.slot, due);
            }
            return;
        }
        let slot = wheel.insert_at(key.clone(), due);
        entries.insert(
            key,
            Entry {
                due,
                added: now,
                slot,
            },
        );
        metrics.depth.inc();
        metrics.ages.insert(now);
    }

    /// Takes `key` out; whether it was queued.
    pub fn remove(&self, key: &K) -> bool {
        let mut state = self.shared.state.lock();
        let Some(entry) = state.entries.remove(key) else {
            return false;
        };
        state.wheel.remove(&entry.slot);
        self.forget(&entry);
        true
    }

    /// When `key` is due, if it is queued.
    pub fn due(&self, key: &K) -> Option<Instant> {
        self.shared
            .state
            .lock()
            .entries
            .get(key)
            .map(|entry| entry.due)
    }

    /// How many keys are queued.
    pub fn len(&self) -> usize {
        self.shared.state.lock().entries.len()
    }

    /// Whether no key is queued.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Hands keys to `on_due` when they are due, without further delay (F25), until `cancel`.
    ///
    /// Keys that are due at the same poll come in the order of their due times, then of the keys.
    /// There is one driver per queue: a second one would take the wake-ups of the first.
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

    /// Ready with all keys that are due now, at least one.
    fn poll_due(&self, context: &mut Context<'_>) -> Poll<Vec<K>> {
        let mut due = Vec::new();
        {
            let mut state = self.shared.state.lock();
            // An empty queue is `Ready(None)` and keeps the waker all the same: the next `add` wakes us.
            while let Poll::Ready(Some(expired)) = state.wheel.poll_expired(context) {
                let key = expired.into_inner();
                let entry = state
                    .entries
                    .remove(&key)
                    .expect("wheel and entries hold the same keys");
                self.forget(&entry);
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

    fn forget(&self, entry: &Entry) {
        self.shared.metrics.depth.dec();
        self.shared.metrics.ages.remove(entry.added);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{WorkQueue, WorkQueueMetrics};
    use tokio::time::advance;

    const MINUTE: Duration = Duration::from_mins(1);

    fn feed<K: Clone + Eq + Hash + Ord + Send + 'static>(
        work: &WorkQueue<K>,
    ) -> impl FnMut(K) + Send + 'static {
        let work = work.clone();
        move |key| work.add(key)
    }

    fn queues() -> (
        CheckQueue<&'static str>,
        WorkQueue<&'static str>,
        CancellationToken,
    ) {
        let to_check = CheckQueue::new(CheckQueueMetrics::default());
        let work = WorkQueue::new(WorkQueueMetrics::default());
        let cancel = CancellationToken::new();
        tokio::spawn(to_check.clone().run(feed(&work), cancel.clone()));
        (to_check, work, cancel)
    }

    async fn next(work: &WorkQueue<&'static str>) -> (&'static str, Instant) {
        let work = work.next().await.expect("not shut down");
        (*work, Instant::now())
    }

    #[tokio::test(start_paused = true)]
    async fn f21_delay_zero_is_due_at_once() {
        let (to_check, work, _cancel) = queues();
        let start = Instant::now();
        to_check.add("a", Duration::ZERO);
        let (key, at) = next(&work).await;
        assert_eq!(key, "a");
        assert!(at - start <= Duration::from_millis(1), "{:?}", at - start);
    }

    #[tokio::test(start_paused = true)]
    async fn f22_waits_for_its_delay() {
        let (to_check, work, _cancel) = queues();
        let start = Instant::now();
        to_check.add("a", MINUTE);
        assert_eq!(next(&work).await.1 - start, MINUTE);
        assert!(to_check.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn f24_the_shorter_delay_wins_whichever_comes_first() {
        for delays in [[60, 5], [5, 60]] {
            let (to_check, work, _cancel) = queues();
            let start = Instant::now();
            for seconds in delays {
                to_check.add("a", Duration::from_secs(seconds));
            }
            assert_eq!(to_check.len(), 1);
            assert_eq!(next(&work).await.1 - start, Duration::from_secs(5));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn f24_a_later_addition_with_less_left_wins() {
        let (to_check, work, _cancel) = queues();
        let start = Instant::now();
        to_check.add("a", MINUTE);
        advance(Duration::from_secs(30)).await;
        to_check.add("a", Duration::from_secs(40));
        assert_eq!(next(&work).await.1 - start, MINUTE);
    }

    #[tokio::test(start_paused = true)]
    async fn an_earlier_key_wakes_the_driver() {
        let (to_check, work, _cancel) = queues();
        to_check.add("late", MINUTE);
        advance(Duration::from_secs(1)).await;
        to_check.add("early", Duration::from_secs(1));
        assert_eq!(next(&work).await.0, "early");
        assert_eq!(next(&work).await.0, "late");
    }

    #[tokio::test(start_paused = true)]
    async fn equal_times_move_in_the_order_of_keys() {
        let (to_check, work, _cancel) = queues();
        for key in ["d", "b", "a", "c"] {
            to_check.add(key, MINUTE);
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
        to_check.add("a", Duration::from_secs(1));
        to_check.add("b", MINUTE);
        assert!(to_check.remove(&"a"));
        assert!(!to_check.remove(&"a"));
        assert_eq!(next(&work).await.0, "b");
    }

    #[tokio::test(start_paused = true)]
    async fn a_delay_beyond_the_wheel_is_cut() {
        let (to_check, _work, _cancel) = queues();
        to_check.add("a", Duration::MAX);
        assert_eq!(to_check.due(&"a"), Some(Instant::now() + MAX_DELAY));
    }

    #[tokio::test(start_paused = true)]
    async fn metrics_follow_the_queue() {
        let (to_check, work, _cancel) = queues();
        let metrics = to_check.shared.metrics.clone();
        to_check.add("a", MINUTE);
        to_check.add("a", MINUTE);
        advance(Duration::from_secs(10)).await;
        assert_eq!(
            (
                metrics.depth.get(),
                metrics.adds.get(),
                metrics.merged.get()
            ),
            (1, 2, 1)
        );
        assert_eq!(metrics.ages.oldest(), Duration::from_secs(10));
        next(&work).await;
        assert_eq!(
            (metrics.depth.get(), metrics.ages.oldest()),
            (0, Duration::ZERO)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn the_driver_ends_when_cancelled() {
        let to_check = CheckQueue::<u8>::new(CheckQueueMetrics::default());
        let cancel = CancellationToken::new();
        let work = WorkQueue::new(WorkQueueMetrics::default());
        let driver = tokio::spawn(to_check.run(feed(&work), cancel.clone()));
        cancel.cancel();
        driver.await.expect("no panic");
    }
}
