//! The ready pods of one set in all members, over time.

use std::collections::BTreeMap;

use tokio::time::Instant;

/// The total of ready replicas over all members, over time.
#[derive(Default)]
pub(super) struct Totals {
    /// Ready replicas, by the member's index.
    counts: BTreeMap<usize, u64>,
    /// Each total with the time since which it holds.
    pub(super) values: Vec<(Instant, u64)>,
}

impl Totals {
    /// Records how many replicas are ready in these members now.
    pub(super) fn record(&mut self, counts: impl IntoIterator<Item = (usize, u64)>) {
        self.counts.extend(counts);
        let total = self.counts.values().sum();
        if self.values.last().is_none_or(|(_, last)| *last != total) {
            self.values.push((Instant::now(), total));
        }
    }

    /// Forgets the totals so far.
    pub(super) fn reset(&mut self) {
        self.values.clear();
        self.record([]);
    }
}
