//! The sums over all sets of a plan.

use std::fmt;

use fedrs_api::pluralize;
use serde::Serialize;

use super::set_plan::SetPlan;

/// The sums over all sets of a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// Sets that were planned.
    pub sets: usize,
    /// Of these: sets of which a cluster would have other replicas than now.
    pub changed_sets: usize,
    /// Replicas that move from one cluster to another.
    pub moved_replicas: u64,
    /// Replicas that no cluster could run.
    pub unplaced_replicas: u64,
}

impl Summary {
    pub(super) fn of(sets: &[SetPlan]) -> Self {
        let unplaced = |set: &SetPlan| u64::try_from(set.unplaced_replicas).unwrap_or(0);
        Self {
            sets: sets.len(),
            changed_sets: sets.iter().filter(|set| set.changes()).count(),
            moved_replicas: sets.iter().map(|set| set.moved_replicas).sum(),
            unplaced_replicas: sets.iter().map(unplaced).sum(),
        }
    }
}

/// The sums in one line: `12 of 200 sets change, 34 replicas move, 3 are unplaced`.
impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb =
            |count: u64, one: &'static str, many: &'static str| if count == 1 { one } else { many };
        let changed = u64::try_from(self.changed_sets).unwrap_or(u64::MAX);
        let sets = u64::try_from(self.sets).unwrap_or(u64::MAX);
        write!(
            f,
            "{changed} of {} {}, {} {}, {} {} unplaced",
            pluralize(sets, "set"),
            verb(changed, "changes", "change"),
            pluralize(self.moved_replicas, "replica"),
            verb(self.moved_replicas, "moves", "move"),
            self.unplaced_replicas,
            verb(self.unplaced_replicas, "is", "are"),
        )
    }
}
