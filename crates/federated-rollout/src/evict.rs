//! Loans for evictions in LocalReplicaSets (L18, L20).
//!
//! A LocalReplicaSet without a loan evicts no available pod: evictions in all members share the one budget. Where some wait, and no
//! rollout lends anything, the member gets a loan for as many, before a rollout gets what is free (L19). It stays paused, so that no
//! template is rolled out with it. The evictions of pods that are not available cost nothing, and wait for nothing.

use crate::{
    account::Account,
    lend,
    member::{Deployment, Member},
    recall,
    rollout::Rollout,
    state::{Loan, State},
    steps::may_roll,
    strategy::Strategy,
};

/// Adds loans for evictions that wait to `state`.
pub(crate) fn lend(rollout: &Rollout<'_>, state: &mut State) {
    for (index, member) in rollout.members.iter().enumerate() {
        let Some(found) = member.writable().filter(|found| found.is_observed()) else {
            continue;
        };
        if state.loans.contains_key(member.name) || !needs_loan(rollout, state, member, found) {
            continue;
        }
        let account = Account::of(rollout, state);
        let more = account.room().unavailable.min(found.waiting_evictions());
        let own = account.members[index].unavailable;
        // What is unavailable may become available, and the loan stays: all loans together are within the budget.
        let left = recall::left(rollout, state, member).unavailable;
        let unavailable = (own + more).min(found.replicas).min(left);
        if unavailable <= own {
            continue;
        }
        let loan = Loan {
            strategy: Strategy::new(unavailable, 0),
            revision: found.revision.to_owned(),
            generation: found.generation,
            evicts: true,
            ..Loan::default()
        };
        state.loans.insert(member.name.to_owned(), loan);
    }
}

/// Whether evictions wait in `member`, and no loan of a rollout is due, with which they would begin as well.
pub(crate) fn needs_loan(
    rollout: &Rollout<'_>,
    state: &State,
    member: &Member<'_>,
    found: &Deployment<'_>,
) -> bool {
    let is_due = may_roll(rollout, state, member) && lend::needs_loan(rollout, found, None);
    found.waiting_evictions() > 0 && !is_due
}
