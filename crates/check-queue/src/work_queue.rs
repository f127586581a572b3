//! The work queue: many workers, at most one per key; a key that is added while a worker processes it is processed
//! again (F25). The sets are those of client-go's `workqueue`:
//!
//! ```text
//! add  --> dirty, and the queue unless a worker processes the key
//! get  --> from queue and dirty to processing
//! done --> out of processing; into the queue if it is dirty again
//! ```
//!
//! A key may carry a kind of work. Additions of one key merge into the greatest kind, so that more work includes less. A kind
//! may be patient: what is more urgent overtakes it for so long.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fmt,
    hash::Hash,
    ops::Deref,
    pin::pin,
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{sync::Notify, time::Instant};

use crate::WorkQueueMetrics;

/// Keys to be processed: first in, first out, apart from patient work. Cheap to clone; clones are handles of the same queue.
#[derive(Debug)]
pub struct WorkQueue<K, W = ()> {
    shared: Arc<Shared<K, W>>,
}

#[derive(Debug)]
struct Shared<K, W> {
    state: Mutex<State<K, W>>,
    /// Notified once for each key that enters the queue, and on shutdown.
    ready: Notify,
    metrics: WorkQueueMetrics,
    /// How long work lets the work pass that is added after it.
    patience: fn(W) -> Duration,
}

#[derive(Debug)]
struct State<K, W> {
    /// The keys that wait for a worker.
    queue: BTreeMap<Place, K>,
    /// Keys to be processed: those in the queue, and those added again while they are processed.
    dirty: HashMap<K, Dirty<W>>,
    processing: HashSet<K>,
    /// How many places were given so far.
    places: u64,
    shut_down: bool,
}

/// A place in the queue: when it is the turn of the key, and the number of the place among those of the same time.
type Place = (Instant, u64);

/// What is to be done for a key.
#[derive(Debug)]
struct Dirty<W> {
    added: Instant,
    work: W,
    /// Its place, once the key is in the queue.
    place: Option<Place>,
}

enum Next<K, W> {
    Key(K, W),
    QueueIsEmpty,
    ShutDown,
}

impl<K, W> Clone for WorkQueue<K, W> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<K: Clone + Eq + Hash, W: Copy + Ord> WorkQueue<K, W> {
    /// An empty queue, which is first in, first out.
    pub fn new(metrics: WorkQueueMetrics) -> Self {
        Self::with_patience(metrics, |_| Duration::ZERO)
    }

    /// An empty queue, in which work lets the work pass that is added less than its `patience` after it and has none.
    pub fn with_patience(metrics: WorkQueueMetrics, patience: fn(W) -> Duration) -> Self {
        let state = State {
            queue: BTreeMap::new(),
            dirty: HashMap::new(),
            processing: HashSet::new(),
            places: 0,
            shut_down: false,
        };
        Self {
            shared: Arc::new(Shared {
                state: Mutex::new(state),
                ready: Notify::new(),
                metrics,
                patience,
            }),
        }
    }

    /// Queues `work` for `key`. A key that is already queued keeps its place, unless the greater work is less patient. Never
    /// blocks. Has no effect after [`shut_down`](Self::shut_down).
    pub fn add_work(&self, key: K, work: W) {
        let Shared {
            state,
            ready,
            metrics,
            patience,
        } = &*self.shared;
        metrics.adds.inc();
        let mut state = state.lock();
        if state.shut_down {
            return;
        }
        if state.dirty.contains_key(&key) {
            state.merge(&key, work, *patience);
            return;
        }
        let now = Instant::now();
        let dirty = Dirty {
            added: now,
            work,
            place: None,
        };
        state.dirty.insert(key.clone(), dirty);
        metrics.depth.inc();
        metrics.oldest_age.insert(now);
        if !state.processing.contains(&key) {
            state.enqueue(key, *patience);
            drop(state);
            ready.notify_one();
        }
    }

    /// Waits for the next key, which the caller processes alone until it drops the [`WorkItem`]. `None` when the queue is
    /// shut down and empty.
    ///
    /// Cancel-safe: a dropped call takes no key, and passes on a notification that it may have received.
    pub async fn get(&self) -> Option<WorkItem<K, W>> {
        loop {
            // Registered before the look at the queue, so that no key added in between is missed.
            let mut ready = pin!(self.shared.ready.notified());
            ready.as_mut().enable();
            match self.try_get() {
                Next::Key(key, work) => {
                    let started = Instant::now();
                    self.shared.metrics.longest_running.insert(started);
                    return Some(WorkItem {
                        key,
                        work,
                        started,
                        queue: self.clone(),
                    });
                }
                Next::ShutDown => return None,
                Next::QueueIsEmpty => ready.await,
            }
        }
    }

    /// Whether a key waits whose turn it is: all workers are busy.
    pub fn is_behind(&self) -> bool {
        let state = self.shared.state.lock();
        let first = state.queue.first_key_value();
        first.is_some_and(|((turn, _), _)| *turn <= Instant::now())
    }

    /// Ignores further keys. [`get`](Self::get) returns the keys that are still queued, then `None`. A key that is dirty
    /// again when its worker is done returns to the queue, and that worker gets it.
    pub fn shut_down(&self) {
        self.shared.state.lock().shut_down = true;
        self.shared.ready.notify_waiters();
    }

    fn try_get(&self) -> Next<K, W> {
        let mut state = self.shared.state.lock();
        let Some((_, key)) = state.queue.pop_first() else {
            return if state.shut_down {
                Next::ShutDown
            } else {
                Next::QueueIsEmpty
            };
        };
        let dirty = state.dirty.remove(&key).expect("a queued key is dirty");
        let Dirty { added, work, .. } = dirty;
        state.processing.insert(key.clone());
        let metrics = &self.shared.metrics;
        metrics.depth.dec();
        metrics.oldest_age.remove(added);
        metrics
            .queue_duration
            .observe(added.elapsed().as_secs_f64());
        Next::Key(key, work)
    }

    fn done(&self, key: &K, started: Instant) {
        let Shared {
            state,
            ready,
            metrics,
            patience,
        } = &*self.shared;
        metrics.longest_running.remove(started);
        metrics
            .work_duration
            .observe(started.elapsed().as_secs_f64());
        let mut state = state.lock();
        state.processing.remove(key);
        if state.dirty.contains_key(key) {
            state.enqueue(key.clone(), *patience);
            drop(state);
            ready.notify_one();
        }
    }
}

impl<K: Eq + Hash, W: Copy + Ord> State<K, W> {
    /// Gives the dirty `key` the last place of its work.
    fn enqueue(&mut self, key: K, patience: fn(W) -> Duration) {
        let dirty = self.dirty.get_mut(&key).expect("a queued key is dirty");
        self.places += 1;
        let place = (Instant::now() + patience(dirty.work), self.places);
        dirty.place = Some(place);
        self.queue.insert(place, key);
    }

    /// Adds `work` to that of the dirty `key`, which moves to the front if this is less patient.
    fn merge(&mut self, key: &K, work: W, patience: fn(W) -> Duration) {
        let dirty = self.dirty.get_mut(key).expect("the key is dirty");
        let before = patience(dirty.work);
        dirty.work = work.max(dirty.work);
        let earlier = before.saturating_sub(patience(dirty.work));
        if let Some(place) = &mut dirty.place
            && let Some(key) = self.queue.remove(place)
        {
            place.0 -= earlier;
            self.queue.insert(*place, key);
        }
    }
}

/// A key that its holder alone processes. Dropping it marks the key as done, also when the worker panics.
pub struct WorkItem<K: Clone + Eq + Hash, W: Copy + Ord = ()> {
    key: K,
    work: W,
    started: Instant,
    queue: WorkQueue<K, W>,
}

impl<K: Clone + Eq + Hash, W: Copy + Ord> WorkItem<K, W> {
    /// What to do for the key.
    pub fn work(&self) -> W {
        self.work
    }
}

impl<K: Clone + Eq + Hash, W: Copy + Ord> Deref for WorkItem<K, W> {
    type Target = K;

    fn deref(&self) -> &K {
        &self.key
    }
}

impl<K: Clone + Eq + Hash + fmt::Debug, W: Copy + Ord> fmt::Debug for WorkItem<K, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkItem")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

impl<K: Clone + Eq + Hash, W: Copy + Ord> Drop for WorkItem<K, W> {
    fn drop(&mut self) {
        self.queue.done(&self.key, self.started);
    }
}

#[cfg(test)]
impl<K: Clone + Eq + Hash> WorkQueue<K> {
    pub(crate) fn add(&self, key: K) {
        self.add_work(key, ());
    }

    /// How many keys are to be processed, those added again while a worker processes them included.
    fn len(&self) -> usize {
        self.shared.state.lock().dirty.len()
    }

    /// Whether no key is to be processed, and none is being processed.
    pub(crate) fn is_idle(&self) -> bool {
        let state = self.shared.state.lock();
        state.dirty.is_empty() && state.processing.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::time::{advance, timeout};

    fn queue() -> WorkQueue<u8> {
        WorkQueue::new(WorkQueueMetrics::default())
    }

    async fn nothing_ready(queue: &WorkQueue<u8>) -> bool {
        timeout(Duration::from_secs(1), queue.get()).await.is_err()
    }

    #[tokio::test(start_paused = true)]
    async fn f25_first_come_first_served_and_merged() {
        let queue = queue();
        for key in [3, 1, 3, 2, 1] {
            queue.add(key);
        }
        assert_eq!(queue.len(), 3);
        for expected in [3, 1, 2] {
            assert_eq!(*queue.get().await.unwrap(), expected);
        }
        assert!(queue.is_idle());
    }

    #[tokio::test(start_paused = true)]
    async fn f25_one_worker_per_key_and_again_if_added_meanwhile() {
        let queue = queue();
        queue.add(1);
        let item = queue.get().await.unwrap();
        queue.add(1);
        queue.add(1);
        assert!(nothing_ready(&queue).await, "a second worker got the key");
        drop(item);
        assert_eq!(*queue.get().await.unwrap(), 1);
        assert!(
            nothing_ready(&queue).await,
            "a worker got the key a third time"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn f25_workers_process_other_keys_meanwhile() {
        let queue = queue();
        queue.add(1);
        let _one = queue.get().await.unwrap();
        queue.add(1);
        queue.add(2);
        assert_eq!(*queue.get().await.unwrap(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_busy_key_does_not_starve_others() {
        let queue = queue();
        queue.add(1);
        queue.add(2);
        let item = queue.get().await.unwrap();
        queue.add(1);
        drop(item);
        assert_eq!(*queue.get().await.unwrap(), 2);
        assert_eq!(*queue.get().await.unwrap(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn patient_work_is_overtaken_only_for_a_while() {
        let patience = |work| Duration::from_secs(if work == 0 { 5 } else { 0 });
        let queue = WorkQueue::with_patience(WorkQueueMetrics::default(), patience);
        queue.add_work("patient", 0);
        queue.add_work("merged", 0);
        queue.add_work("urgent", 1);
        advance(Duration::from_secs(6)).await;
        queue.add_work("late", 1);
        queue.add_work("merged", 1);
        queue.add_work("last", 0);
        for expected in ["merged", "urgent", "patient", "late"] {
            assert!(queue.is_behind());
            assert_eq!(*queue.get().await.unwrap(), expected);
        }
        assert!(!queue.is_behind(), "the last one is patient");
        assert_eq!(*queue.get().await.unwrap(), "last");
    }

    #[tokio::test(start_paused = true)]
    async fn a_cancelled_waiter_passes_its_notification_on() {
        let queue = queue();
        let mut first = Box::pin(queue.get());
        let mut second = Box::pin(queue.get());
        assert!(poll_once(&mut first).is_none());
        assert!(poll_once(&mut second).is_none());
        queue.add(1);
        drop(first);
        let item = timeout(Duration::from_secs(1), second)
            .await
            .expect("the second waiter is notified")
            .unwrap();
        assert_eq!(*item, 1);
    }

    /// Polls once; the output if it is ready.
    fn poll_once<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match std::pin::Pin::new(future).poll(&mut context) {
            std::task::Poll::Ready(output) => Some(output),
            std::task::Poll::Pending => None,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn shutting_down_empties_the_queue_and_ends_all_workers() {
        let queue = queue();
        queue.add(1);
        let item = queue.get().await.unwrap();
        let waiting = tokio::spawn({
            let queue = queue.clone();
            async move { queue.get().await.is_none() }
        });
        queue.add(1);
        tokio::task::yield_now().await;
        queue.shut_down();
        queue.add(2);
        assert!(waiting.await.unwrap(), "a waiting worker ends");
        drop(item);
        assert_eq!(
            *queue.get().await.unwrap(),
            1,
            "a key that was dirty before the shutdown is processed"
        );
        assert!(queue.get().await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_panicking_worker_is_done_with_its_key() {
        let queue = queue();
        queue.add(1);
        let worker = tokio::spawn({
            let queue = queue.clone();
            async move {
                let _item = queue.get().await;
                panic!("on purpose");
            }
        });
        assert!(worker.await.unwrap_err().is_panic());
        queue.add(1);
        assert_eq!(*queue.get().await.unwrap(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn metrics_follow_the_queue() {
        let queue = queue();
        let metrics = queue.shared.metrics.clone();
        queue.add(1);
        advance(Duration::from_secs(3)).await;
        assert_eq!(
            (metrics.depth.get(), metrics.oldest_age.get()),
            (1, Duration::from_secs(3))
        );
        let item = queue.get().await.unwrap();
        advance(Duration::from_secs(2)).await;
        assert_eq!(
            (metrics.depth.get(), metrics.longest_running.get()),
            (0, Duration::from_secs(2))
        );
        drop(item);
        assert_eq!(metrics.longest_running.get(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn additions_of_a_key_merge_into_the_greatest_work() {
        let queue = WorkQueue::new(WorkQueueMetrics::default());
        for work in [1, 3, 2] {
            queue.add_work("a", work);
        }
        let item = queue.get().await.expect("not shut down");
        assert_eq!((*item, item.work()), ("a", 3));
        queue.add_work("a", 1);
        drop(item);
        let item = queue.get().await.expect("not shut down");
        assert_eq!(item.work(), 1, "work that was done is not done again");
    }
}
