//! What a member can do with its loan, and the writes that make it smaller.
//!
//! ```text
//! recorded (generation g) -> written at g: the Deployment has g + 1 -> complete -> ends, without a write
//!                         -> recalled: Shrink at g or later -> observed -> ends, or is as small as it can be until complete
//! ```
//!
//! A write whose answer was lost may be carried out at any time later, as long as its precondition holds. So a loan is never
//! made smaller on the host while its write may come: only once the Deployment has a generation after that of the loan. Where
//! the write never came, the recall has to change the generation, if need be by a write without effect.

use crate::{member::Deployment, state::Loan, strategy::Strategy};

/// The most that the strategy in effect may be, now or after a write that is under way.
pub(crate) fn reach(found: &Deployment<'_>, loan: Option<&Loan>) -> Strategy {
    let live = if found.is_rolling() {
        found.strategy
    } else {
        Strategy::default()
    };
    live.or(found.evictable())
        .or(loan.map(|loan| loan.strategy).unwrap_or_default())
}

impl Loan {
    /// Whether it is what brings the Deployment to `target`. It is not if it was lent for another revision, or if something else
    /// was written since then, such as an earlier template.
    pub(crate) fn is_for(&self, target: &str, found: &Deployment<'_>) -> bool {
        self.revision == target && (found.revision == target || !self.is_over(found))
    }

    /// What it has of the budget: all of its unavailable pods, apart from those that were broken beyond the budget.
    pub(crate) fn within(&self) -> u64 {
        self.strategy.unavailable.saturating_sub(self.beyond)
    }

    /// The pods that it may start, which count for the speed (L15): evictions are no updates.
    pub(crate) fn starts(&self) -> u64 {
        if self.evicts { 0 } else { self.strategy.pods() }
    }

    /// Whether no write under this record can be carried out any more.
    pub(crate) fn is_over(&self, found: &Deployment<'_>) -> bool {
        found.generation > self.generation
    }
}

/// The strategy to write so that no more than `allowed` is in effect; `None` if the Deployment has no more.
///
/// A LocalReplicaSet can have no strategy at all. A Deployment with old pods continues with the smallest one that the API server
/// accepts, and that stays within what the member has: one pod of either kind.
pub(crate) fn smaller(
    found: &Deployment<'_>,
    loan: Option<&Loan>,
    allowed: Strategy,
) -> Option<Strategy> {
    let live = found.strategy;
    if found.local.is_some() {
        let goal = live.and(allowed);
        return (goal != live).then_some(goal);
    }
    let lent = loan.map_or(live, |loan| loan.strategy);
    let goal = match live.and(allowed) {
        goal if goal.pods() > 0 => goal,
        _ if live.pods() == 1 && (lent.covers(live) || !found.is_rolling()) => live,
        _ if lent.surge > 0 || !found.is_rolling() => Strategy::WITHOUT_LOAN,
        _ => Strategy::new(1, 0),
    };
    (goal != live).then_some(goal)
}
