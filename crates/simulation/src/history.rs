//! A value with its earlier values, as far back as a decision may still be based on them.

use tokio::time::{Duration, Instant};

/// No decision is based on older values.
pub(crate) const KEPT: Duration = Duration::from_secs(3600);

/// A value over time.
#[derive(Clone, Debug)]
pub(crate) struct History<T> {
    /// Each value with the time since which it holds; never empty, the last one holds now.
    values: Vec<(Instant, T)>,
}

impl<T: Clone + PartialEq> History<T> {
    /// Starts with a value that holds from now on.
    pub(crate) fn starting(value: T) -> Self {
        Self {
            values: vec![(Instant::now(), value)],
        }
    }

    /// Records that the value changes now.
    pub(crate) fn put(&mut self, value: T) {
        if *self.now() == value {
            return;
        }
        let now = Instant::now();
        let is_old = |entry: &(Instant, T)| now.duration_since(entry.0) > KEPT;
        // The last of the old values held until the first of the others.
        let old = self.values.iter().take_while(|entry| is_old(entry)).count();
        self.values.drain(..old.saturating_sub(1));
        self.values.push((now, value));
    }

    /// The current value.
    pub(crate) fn now(&self) -> &T {
        &self.values[self.values.len() - 1].1
    }

    /// Since when it holds.
    pub(crate) fn changed(&self) -> Instant {
        self.values[self.values.len() - 1].0
    }

    /// Since when `holds` has been true of all values; none if it is not now.
    pub(crate) fn since_when(&self, holds: impl Fn(&T) -> bool) -> Option<Instant> {
        let holding = self
            .values
            .iter()
            .rev()
            .take_while(|(_, value)| holds(value));
        holding.last().map(|(since, _)| *since)
    }

    /// All values that are kept.
    pub(crate) fn all(&self) -> impl Iterator<Item = &T> {
        self.values.iter().map(|(_, value)| value)
    }

    /// All values that have held at any time since then.
    pub(crate) fn since(&self, time: Instant) -> impl Iterator<Item = &T> {
        let later = self
            .values
            .iter()
            .skip(1)
            .filter(|entry| entry.0 <= time)
            .count();
        self.values[later..].iter().map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn values_since_a_time_include_the_value_at_that_time() {
        let start = Instant::now();
        let mut history = History::starting(1);
        for value in [2, 3] {
            tokio::time::advance(Duration::from_secs(10)).await;
            history.put(value);
        }
        let since = |seconds| -> Vec<i32> {
            let time = start + Duration::from_secs(seconds);
            history.since(time).copied().collect()
        };
        assert_eq!(since(0), [1, 2, 3]);
        assert_eq!(since(9), [1, 2, 3]);
        assert_eq!(since(10), [2, 3]);
        assert_eq!(since(25), [3]);
        assert_eq!(*history.now(), 3);
    }
}
