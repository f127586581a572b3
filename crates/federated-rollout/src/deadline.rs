//! Whether a rollout has failed: no more pods have become updated and available for a while.
//!
//! Progress is what a member shows beyond what it has shown under its loan, so that pods that come and go are none. Time counts
//! while a loan for the target is out in a member whose view is current, and the rollout is not paused.
//!
//! As with a Deployment, a rollout that has failed continues when a pod of it becomes available later: its nodes may have been away.

use jiff::Timestamp;

use crate::{
    member::Deployment,
    rollout::{OnFailure, Rollout},
    state::{Loan, State},
    time::after,
};

/// Records progress, and failure. `before` is the state that was recorded.
pub(crate) fn check(rollout: &Rollout<'_>, before: &State, state: &mut State, now: Timestamp) {
    if state.failed {
        if rollout.on_failure == OnFailure::Undo || !recovers(rollout, before) {
            return;
        }
        state.failed = false;
    }
    let mut progressed =
        (before.loans.iter()).any(|(name, loan)| !loan.evicts && !state.loans.contains_key(name));
    let mut is_counted = false;
    for member in rollout.members {
        let loan = state.loans.get_mut(member.name);
        if let (Some(loan), Some(found)) = (loan, member.writable())
            && loan.revision == rollout.target
            && !loan.evicts
        {
            is_counted = true;
            if shows_more(rollout, found, loan) {
                loan.available = found.updated_available;
                progressed = true;
            }
        }
    }
    if !is_counted || rollout.paused {
        state.progressed = None;
        return;
    }
    let since = *state.progressed.insert(match state.progressed {
        Some(since) if !progressed => since,
        _ => now,
    });
    state.failed = (rollout.progress_deadline).is_some_and(|limit| after(since, limit) <= now);
}

/// Whether a member shows more pods of the target than when the rollout failed.
fn recovers(rollout: &Rollout<'_>, before: &State) -> bool {
    rollout.members.iter().any(|member| {
        let loan = before.loans.get(member.name);
        let loan = loan.filter(|loan| loan.revision == rollout.target && !loan.evicts);
        let found = member.writable();
        loan.zip(found)
            .is_some_and(|(loan, found)| shows_more(rollout, found, loan))
    })
}

fn shows_more(rollout: &Rollout<'_>, found: &Deployment<'_>, loan: &Loan) -> bool {
    let has_template = found.revision == rollout.target && found.is_observed();
    has_template && found.updated_available > loan.available
}

/// When the rollout fails if nothing happens before.
pub(crate) fn next(rollout: &Rollout<'_>, state: &State) -> Option<Timestamp> {
    let since = state.progressed.filter(|_| !state.failed)?;
    Some(after(since, rollout.progress_deadline?))
}
