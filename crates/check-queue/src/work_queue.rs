//! The work queue: many workers, at most one per key, and a key that changed while it was worked on is worked
//! on again (F25). The sets are those of client-go's workqueue:
//!
//! ```text
//! add ---> dirty (+ queue, unless it is being worked on)
//! next --> out of queue and dirty, into processing
//! done --> out of processing; into the queue if it became dirty meanwhile
//! ```

use std::{
    collections::{HashMap, HashSet, VecDeque},
    fmt,
    hash::Hash,
    ops::Deref,
    pin::pin,
    sync::Arc,
};

use parking_lot::Mutex;
use tokio::{sync::Notify, time::Instant};

use crate::WorkQueueMetrics;

/// Keys that wait for a worker, first come, first served. Cheap to clone; clones are handles of the same queue.
#[derive(Debug)]
pub struct WorkQueue<K> {
    shared: Arc<Shared<K>>,
}

#[derive(Debug)]
struct Shared<K> {
    state: Mutex<State<K>>,
    /// One notification per key that enters the queue; all waiters at shutdown.
    ready: Notify,
    metrics: WorkQueueMetrics,
}

#[derive(Debug)]
struct State<K> {
    queue: VecDeque<K>,
    /// Keys to be worked on, and since when: those in the queue, and those that changed while worked on.
    dirty: HashMap<K, Instant>,
    processing: HashSet<K>,
    shut_down: bool,
}

enum Turn<K> {
    Work(K),
    Wait,
    End,
}

impl<K> Clone for WorkQueue<K> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<K: Clone + Eq + Hash> WorkQueue<K> {
    /// An empty queue.
    pub fn new(metrics: WorkQueueMetrics) -> Self {
        let state = State {
            queue: VecDeque::new(),
            dirty: HashMap::new(),
            processing: HashSet::new(),
            shut_down: false,
        };
        Self {
            shared: Arc::new(Shared {
                state: Mutex::new(state),
                ready: Notify::new(),
                metrics,
            }),
        }
    }

    /// Queues `key`, unless it waits already. Never waits. Without effect after [`shut_down`](Self::shut_down).
    pub fn add(&self, key: K) {
        let Shared {
            state,
            ready,
            metrics,
        } = &*self.shared;
        metrics.adds.inc();
        let mut state = state.lock();
        if state.shut_down || state.dirty.contains_key(&key) {
            return;
        }
        let now = Instant::now();
        state.dirty.insert(key.clone(), now);
        metrics.depth.inc();
        metrics.ages.insert(now);
        if !state.processing.contains(&key) {
            state.queue.push_back(key);
            drop(state);
            ready.notify_one();
        }
    }

    /// The next key, exclusively until the [`Work`] is dropped. `None` when shut down and the queue is empty.
    ///
    /// Cancel-safe: a dropped call takes no key, and passes on a wake-up it may have received.
    pub async fn next(&self) -> Option<Work<K>> {
        loop {
            // Registered before looking, so that a key added in between is not missed.
            let mut ready = pin!(self.shared.ready.notified());
            ready.as_mut().enable();
            match self.take() {
                Turn::Work(key) => {
                    let started = Instant::now();
                    self.shared.metrics.running.insert(started);
                    return Some(Work {
                        key,
                        started,
                        queue: self.clone(),
                    });
                }
                Turn::End => return None,
                Turn::Wait => ready.await,
            }
        }
    }

    /// Refuses further keys and lets [`next`](Self::next) end once those queued are worked off. A key that became
    /// dirty while worked on goes back to the queue, to be taken by the worker that gave it back.
    pub fn shut_down(&self) {
        self.shared.state.lock().shut_down = true;
        self.shared.ready.notify_waiters();
    }

    /// How many keys wait for a worker, those that are worked on and became dirty meanwhile included.
    pub fn len(&self) -> usize {
        self.shared.state.lock().dirty.len()
    }

    /// Whether no key waits for a worker.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether no key waits and none is worked on.
    pub fn is_idle(&self) -> bool {
        let state = self.shared.state.lock();
        state.dirty.is_empty() && state.processing.is_empty()
    }

    fn take(&self) -> Turn<K> {
        let mut state = self.shared.state.lock();
        let Some(key) = state.queue.pop_front() else {
            return if state.shut_down {
                Turn::End
            } else {
                Turn::Wait
            };
        };
        let added = state.dirty.remove(&key).expect("a queued key is dirty");
        state.processing.insert(key.clone());
        let metrics = &self.shared.metrics;
        metrics.depth.dec();
        metrics.ages.remove(added);
        metrics.latency.observe(added.elapsed().as_secs_f64());
        Turn::Work(key)
    }

    fn finish(&self, key: &K, started: Instant) {
        let Shared {
            state,
            ready,
            metrics,
        } = &*self.shared;
        metrics.running.remove(started);
        metrics
            .work_duration
            .observe(started.elapsed().as_secs_f64());
        let mut state = state.lock();
        state.processing.remove(key);
        if state.dirty.contains_key(key) {
            state.queue.push_back(key.clone());
            drop(state);
            ready.notify_one();
        }
    }
}

/// A key that its holder alone works on. Dropping it gives the key back, also when the worker panics.
pub struct Work<K: Clone + Eq + Hash> {
    key: K,
    started: Instant,
    queue: WorkQueue<K>,
}

impl<K: Clone + Eq + Hash> Work<K> {
    /// Gives the key back: it is worked on again if it was added meanwhile.
    pub fn done(self) {
        drop(self);
    }
}

impl<K: Clone + Eq + Hash> Deref for Work<K> {
    type Target = K;

    fn deref(&self) -> &K {
        &self.key
    }
}

impl<K: Clone + Eq + Hash + fmt::Debug> fmt::Debug for Work<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Work")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

impl<K: Clone + Eq + Hash> Drop for Work<K> {
    fn drop(&mut self) {
        self.queue.finish(&self.key, self.started);
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
        timeout(Duration::from_secs(1), queue.next()).await.is_err()
    }

    #[tokio::test(start_paused = true)]
    async fn f25_first_come_first_served_and_merged() {
        let queue = queue();
        for key in [3, 1, 3, 2, 1] {
            queue.add(key);
        }
        assert_eq!(queue.len(), 3);
        for expected in [3, 1, 2] {
            assert_eq!(*queue.next().await.unwrap(), expected);
        }
        assert!(queue.is_idle());
    }

    #[tokio::test(start_paused = true)]
    async fn f25_one_worker_per_key_and_again_if_changed_meanwhile() {
        let queue = queue();
        queue.add(1);
        let work = queue.next().await.unwrap();
        queue.add(1);
        queue.add(1);
        assert!(nothing_ready(&queue).await, "a second worker got the key");
        work.done();
        assert_eq!(*queue.next().await.unwrap(), 1);
        assert!(nothing_ready(&queue).await, "worked on a third time");
    }

    #[tokio::test(start_paused = true)]
    async fn f25_others_go_on_while_one_is_worked_on() {
        let queue = queue();
        queue.add(1);
        let _one = queue.next().await.unwrap();
        queue.add(1);
        queue.add(2);
        assert_eq!(*queue.next().await.unwrap(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_busy_key_does_not_starve_others() {
        let queue = queue();
        queue.add(1);
        queue.add(2);
        let work = queue.next().await.unwrap();
        queue.add(1);
        work.done();
        assert_eq!(*queue.next().await.unwrap(), 2);
        assert_eq!(*queue.next().await.unwrap(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_cancelled_waiter_passes_its_wake_up_on() {
        let queue = queue();
        let mut first = Box::pin(queue.next());
        let mut second = Box::pin(queue.next());
        assert!(poll_once(&mut first).is_none());
        assert!(poll_once(&mut second).is_none());
        queue.add(1);
        drop(first);
        let work = timeout(Duration::from_secs(1), second)
            .await
            .expect("woken")
            .unwrap();
        assert_eq!(*work, 1);
    }

    /// One poll; what it gave, if it was ready.
    fn poll_once<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match std::pin::Pin::new(future).poll(&mut context) {
            std::task::Poll::Ready(output) => Some(output),
            std::task::Poll::Pending => None,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn shutting_down_drains_and_ends_all_workers() {
        let queue = queue();
        queue.add(1);
        let work = queue.next().await.unwrap();
        let waiting = tokio::spawn({
            let queue = queue.clone();
            async move { queue.next().await.is_none() }
        });
        queue.add(1);
        tokio::task::yield_now().await;
        queue.shut_down();
        queue.add(2);
        assert!(waiting.await.unwrap(), "a waiting worker ends");
        work.done();
        assert_eq!(
            *queue.next().await.unwrap(),
            1,
            "what became dirty before is worked on"
        );
        assert!(queue.next().await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_panicking_worker_gives_the_key_back() {
        let queue = queue();
        queue.add(1);
        let worker = tokio::spawn({
            let queue = queue.clone();
            async move {
                let _work = queue.next().await;
                panic!("on purpose");
            }
        });
        assert!(worker.await.unwrap_err().is_panic());
        queue.add(1);
        assert_eq!(*queue.next().await.unwrap(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn metrics_follow_the_queue() {
        let queue = queue();
        let metrics = queue.shared.metrics.clone();
        queue.add(1);
        advance(Duration::from_secs(3)).await;
        assert_eq!(
            (metrics.depth.get(), metrics.ages.oldest()),
            (1, Duration::from_secs(3))
        );
        let work = queue.next().await.unwrap();
        advance(Duration::from_secs(2)).await;
        assert_eq!(
            (metrics.depth.get(), metrics.running.oldest()),
            (0, Duration::from_secs(2))
        );
        work.done();
        assert_eq!(metrics.running.oldest(), Duration::ZERO);
    }
}
