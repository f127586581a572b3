//! A value with what it was before, as far back as anybody could still act on it.

use tokio::time::{Duration, Instant};

/// Nobody acts on what is older.
const KEPT: Duration = Duration::from_secs(3600);

/// A value over time.
#[derive(Clone, Debug)]
pub(crate) struct History<T> {
    /// Each value with the time from which it held; never empty, the last one holds now.
    values: Vec<(Instant, T)>,
}

impl<T: Clone + PartialEq> History<T> {
    /// A value that holds from now on.
    pub(crate) fn starting(value: T) -> Self {
        Self {
            values: vec![(Instant::now(), value)],
        }
    }

    /// The value changes now.
    pub(crate) fn put(&mut self, value: T) {
        if *self.now() == value {
            return;
        }
        let now = Instant::now();
        let is_old = |it: &(Instant, T)| now.duration_since(it.0) > KEPT;
        // The last of the old ones held until the first of the others.
        let old = self.values.iter().take_while(|it| is_old(it)).count();
        self.values.drain(..old.saturating_sub(1));
        self.values.push((now, value));
    }

    /// What holds now.
    pub(crate) fn now(&self) -> &T {
        &self.values[self.values.len() - 1].1
    }

    /// All that has held at any time since then.
    pub(crate) fn since(&self, time: Instant) -> impl Iterator<Item = &T> {
        let later = self.values.iter().skip(1).filter(|it| it.0 <= time).count();
        self.values[later..].iter().map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_held_since_a_time_includes_what_held_at_it() {
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
