//! What the tasks of all members share: what is known, and the Services to look at in each member.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use check_queue::{DelayingQueue, DelayingQueueMetrics, WorkItem, WorkQueue, WorkQueueMetrics};
use controller_base::{clock::Clock, retry::pause};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::{
    key::ServiceKey,
    metrics::{McsMetrics, OfMember},
    state::{Change, Changed, MemberState, State},
};

/// What all members share.
pub(crate) struct Shared {
    pub(crate) state: State,
    pub(crate) metrics: McsMetrics,
    pub(crate) clock: Clock,
    queues: Mutex<BTreeMap<Arc<str>, Queue>>,
    /// Whether all members have been named.
    pub(crate) is_complete: watch::Sender<bool>,
    /// Whether decisions can be made: what is not known by now is unreachable.
    pub(crate) has_begun: watch::Sender<bool>,
}

impl Shared {
    pub(crate) fn new(metrics: McsMetrics, clock: Clock) -> Self {
        Self {
            state: State::default(),
            metrics,
            clock,
            queues: Mutex::default(),
            is_complete: watch::Sender::new(false),
            has_begun: watch::Sender::new(false),
        }
    }

    /// Changes what is known of a member; the Services that this concerns are looked at in all members.
    pub(crate) fn update(&self, member: &str, change: impl FnOnce(&mut MemberState) -> Change) {
        let changed = self.state.update(member, change);
        self.show(member);
        self.look_at(&changed);
    }

    /// Shows in metrics what is known of a member.
    pub(crate) fn show(&self, member: &str) {
        let (exports, imports) = self.state.counts(member);
        let known = i64::from(self.state.is_known(member));
        let gauge = |count| i64::try_from(count).unwrap_or(i64::MAX);
        let of = OfMember::new(member);
        self.metrics.member_known.get_or_create(&of).set(known);
        self.metrics.exports.get_or_create(&of).set(gauge(exports));
        self.metrics.imports.get_or_create(&of).set(gauge(imports));
    }

    /// Looks at these Services in all members.
    pub(crate) fn look_at(&self, services: &Changed) {
        let queues = self.queues.lock();
        for queue in queues.values() {
            for key in services {
                queue.add(key.clone(), Duration::ZERO);
            }
        }
    }

    /// Begins to decide once all members are known.
    pub(crate) fn begin_if_known(&self) {
        if *self.is_complete.borrow() && self.state.is_complete() {
            self.begin();
        }
    }

    /// Begins to decide, whatever is known.
    pub(crate) fn begin(&self) {
        self.has_begun
            .send_if_modified(|has_begun| !std::mem::replace(has_begun, true));
    }

    /// The workers of this member take Services from `queue`: all that there are.
    pub(crate) fn add_queue(&self, member: &Arc<str>, queue: &Queue) {
        let mut queues = self.queues.lock();
        queues.insert(Arc::clone(member), queue.clone());
        for key in self.state.all() {
            queue.add(key, Duration::ZERO);
        }
    }

    /// Nothing is written to this member any more.
    pub(crate) fn remove_queue(&self, member: &str) {
        self.queues.lock().remove(member);
    }
}

/// The Services to look at in one member. Cheap to clone; clones are handles of the same queue.
#[derive(Clone)]
pub(crate) struct Queue {
    delayed: DelayingQueue<ServiceKey>,
    work: WorkQueue<ServiceKey>,
    /// Failures in a row.
    failures: Arc<Mutex<BTreeMap<ServiceKey, u32>>>,
}

impl Queue {
    pub(crate) fn new() -> Self {
        Self {
            delayed: DelayingQueue::new(DelayingQueueMetrics::default()),
            work: WorkQueue::new(WorkQueueMetrics::default()),
            failures: Arc::default(),
        }
    }

    /// Looks at a Service after `delay`, or earlier if that was asked for.
    pub(crate) fn add(&self, key: ServiceKey, delay: Duration) {
        if delay.is_zero() {
            self.work.add_work(key, ());
        } else {
            self.delayed.add_after(key, delay);
        }
    }

    /// Looks at a Service again after a failure: later with each further one.
    pub(crate) fn retry(&self, key: &ServiceKey) {
        let mut failures = self.failures.lock();
        let failures = failures.entry(key.clone()).or_default();
        self.add(key.clone(), pause(*failures));
        *failures = failures.saturating_add(1);
    }

    /// Everything about a Service was written.
    pub(crate) fn forget_failures(&self, key: &ServiceKey) {
        self.failures.lock().remove(key);
    }

    /// Waits for the next Service. Its holder alone works on it; `None` at the end.
    pub(crate) async fn next(&self) -> Option<WorkItem<ServiceKey>> {
        self.work.get().await
    }

    /// Moves due Services to the workers until `cancel`.
    pub(crate) async fn run(self, cancel: CancellationToken) {
        let work = self.work.clone();
        self.delayed.run(|key| work.add_work(key, ()), cancel).await;
        self.work.shut_down();
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_service_waits_ever_longer_after_failures_until_it_is_written() {
        let (queue, cancel) = (Queue::new(), CancellationToken::new());
        tokio::spawn(queue.clone().run(cancel));
        let key = ServiceKey::new("shop", "web");
        let wait = async || {
            let since = Instant::now();
            queue.retry(&key);
            drop(queue.next().await);
            since.elapsed().as_secs()
        };
        assert_eq!([wait().await, wait().await, wait().await], [1, 2, 4]);
        queue.forget_failures(&key);
        assert_eq!(wait().await, 1);
    }
}
