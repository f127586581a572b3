//! A work queue: the keys to reconcile, each with the time at which it is due: `add(key) -> pop(now)`.
//!
//! A key is in the queue once, with the earlier of two times. Keys that fail are retried with a growing delay. Two keys are
//! a latency apart, so that work takes simulated time; a queue that is behind catches up.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;

/// A failing key's first delay, doubled each time, as in Kubernetes' controllers.
const FIRST_RETRY: Duration = Duration::from_millis(5);
/// The longest delay of a retry.
const LAST_RETRY: Duration = Duration::from_secs(1_000);

/// Keys with the time at which each is due; keys due together come in the order they were added.
#[derive(Debug)]
pub(crate) struct Queue<K> {
    order: BTreeSet<(Instant, u64, K)>,
    places: BTreeMap<K, (Instant, u64)>,
    failures: BTreeMap<K, u32>,
    added: u64,
    latency: Duration,
    free_at: Instant,
}

impl<K: Ord + Clone> Queue<K> {
    /// An empty queue from which a key can be taken every `latency`.
    pub(crate) fn new(latency: Duration) -> Self {
        Self {
            order: BTreeSet::new(),
            places: BTreeMap::new(),
            failures: BTreeMap::new(),
            added: 0,
            latency,
            free_at: Instant::now(),
        }
    }

    /// Adds a key that is due now.
    pub(crate) fn add(&mut self, key: K) {
        self.add_at(key, Instant::now());
    }

    /// Adds a key that is due then; it stays due earlier if it is.
    pub(crate) fn add_at(&mut self, key: K, due: Instant) {
        match self.places.get(&key) {
            Some((earlier, _)) if *earlier <= due => return,
            Some((later, place)) => {
                self.order.remove(&(*later, *place, key.clone()));
            }
            None => {}
        }
        self.added += 1;
        self.places.insert(key.clone(), (due, self.added));
        self.order.insert((due, self.added, key));
    }

    /// Adds a key that failed, with a growing delay.
    pub(crate) fn retry(&mut self, key: K) {
        let failures = self.failures.entry(key.clone()).or_default();
        let delay = FIRST_RETRY
            .saturating_mul(1 << (*failures).min(20))
            .min(LAST_RETRY);
        *failures += 1;
        self.add_at(key, Instant::now() + delay);
    }

    /// Resets the delay of a key that succeeded.
    pub(crate) fn forget(&mut self, key: &K) {
        self.failures.remove(key);
    }

    /// Removes a key.
    pub(crate) fn remove(&mut self, key: &K) {
        if let Some((due, place)) = self.places.remove(key) {
            self.order.remove(&(due, place, key.clone()));
        }
        self.failures.remove(key);
    }

    /// When [`Queue::pop`] returns the next key.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.order
            .first()
            .map(|(due, _, _)| (*due).max(self.free_at))
    }

    /// The key that has been due for the longest time, if there is one.
    pub(crate) fn pop(&mut self) -> Option<K> {
        let now = Instant::now();
        let due = self.due().filter(|due| *due <= now)?;
        let (_, _, key) = self.order.pop_first()?;
        self.places.remove(&key);
        self.free_at = due + self.latency;
        Some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[tokio::test(start_paused = true)]
    async fn the_earlier_time_counts_and_keys_keep_their_order() {
        let mut queue = Queue::new(Duration::ZERO);
        queue.add_at("late", Instant::now() + 9 * MS);
        queue.add("b");
        queue.add("a");
        queue.add("b");
        assert_eq!(
            [queue.pop(), queue.pop(), queue.pop()],
            [Some("b"), Some("a"), None]
        );
        queue.add_at("late", Instant::now() + 2 * MS);
        tokio::time::advance(2 * MS).await;
        assert_eq!([queue.pop(), queue.pop()], [Some("late"), None]);
    }

    #[tokio::test(start_paused = true)]
    async fn latency_passes_between_keys_and_lateness_is_caught_up() {
        let mut queue = Queue::new(2 * MS);
        for key in 0..4 {
            queue.add(key);
        }
        assert_eq!([queue.pop(), queue.pop()], [Some(0), None]);
        tokio::time::advance(4 * MS).await;
        assert_eq!(
            [queue.pop(), queue.pop(), queue.pop()],
            [Some(1), Some(2), None]
        );
        assert_eq!(queue.due(), Some(Instant::now() + 2 * MS));
    }

    #[tokio::test(start_paused = true)]
    async fn retries_are_delayed_longer_until_reset() {
        let mut queue = Queue::new(Duration::ZERO);
        let mut delays = Vec::new();
        for round in 0..4 {
            if round == 3 {
                queue.forget(&"key");
            }
            queue.retry("key");
            let due = queue.due().unwrap();
            delays.push((due - Instant::now()).as_millis());
            tokio::time::advance(due - Instant::now()).await;
            assert_eq!(queue.pop(), Some("key"));
        }
        assert_eq!(delays, [5, 10, 20, 5]);
    }
}
