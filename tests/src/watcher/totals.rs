//! The ready pods of one set in all members, over time.

use std::collections::{BTreeMap, BTreeSet};

use tokio::time::Instant;

/// The totals of each set, by its name.
pub(super) type Sets = BTreeMap<String, Totals>;

/// The total of ready replicas over all members, over time.
#[derive(Default)]
pub(super) struct Totals {
    /// Ready replicas, by the member's index.
    counts: BTreeMap<usize, u64>,
    /// The members without power: their pods do not run, whatever their status says.
    dead: BTreeSet<usize>,
    /// Each total with the time since which it holds.
    pub(super) values: Vec<(Instant, u64)>,
}

impl Totals {
    /// Records how many replicas are ready in these members now.
    pub(super) fn record(&mut self, counts: impl IntoIterator<Item = (usize, u64)>) {
        self.counts.extend(counts);
        let total = self.total();
        if self.values.last().is_none_or(|(_, last)| *last != total) {
            self.values.push((Instant::now(), total));
        }
    }

    /// Records that no pod runs in a member (`is_dead`), or that its ready pods run again.
    pub(super) fn set_dead(&mut self, member: usize, is_dead: bool) {
        if is_dead {
            self.dead.insert(member);
        } else {
            self.dead.remove(&member);
        }
        self.record([]);
    }

    /// The replicas that run now.
    pub(super) fn total(&self) -> u64 {
        let alive = self.counts.iter();
        let alive = alive.filter(|(member, _)| !self.dead.contains(member));
        alive.map(|(_, count)| count).sum()
    }

    /// Forgets the totals so far.
    pub(super) fn reset(&mut self) {
        self.values.clear();
        self.record([]);
    }
}
