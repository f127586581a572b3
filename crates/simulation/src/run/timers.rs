//! What a run does by itself at certain times.

use std::collections::BTreeMap;

use tokio::time::{Duration, Instant, sleep_until};

/// Timers that fire in the order of their times, and of one time in the order in which they were set.
pub(crate) struct Timers<T> {
    due: BTreeMap<(Instant, u64), T>,
    set: u64,
}

impl<T> Default for Timers<T> {
    fn default() -> Self {
        Self {
            due: BTreeMap::new(),
            set: 0,
        }
    }
}

impl<T> Timers<T> {
    /// Has `timer` fire after this time.
    pub(crate) fn set(&mut self, after: Duration, timer: T) {
        self.set += 1;
        self.due.insert((Instant::now() + after, self.set), timer);
    }

    /// Removes the timers that are not to be kept.
    pub(crate) fn retain(&mut self, keeps: impl Fn(&T) -> bool) {
        self.due.retain(|_, timer| keeps(timer));
    }

    /// Whether such a timer is set.
    pub(crate) fn any(&self, is_such: impl Fn(&T) -> bool) -> bool {
        self.due.values().any(is_such)
    }

    /// Waits for the next timer; none by the deadline. No timer is lost if the future is dropped.
    pub(crate) async fn next(&mut self, deadline: Instant) -> Option<T> {
        let due = self.due.first_key_value().map(|((at, _), _)| *at);
        sleep_until(due.map_or(deadline, |due| due.min(deadline))).await;
        let first = self.due.first_entry()?;
        (first.key().0 <= Instant::now()).then(|| first.remove())
    }
}
