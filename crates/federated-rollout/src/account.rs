//! What is guaranteed to be available in each member, and what of the budget is in use (L14).
//!
//! A Deployment with `maxUnavailable` L takes no available pod away if fewer than `replicas - L` would be left. So a
//! member guarantees `min(available, replicas - L)`, with the largest L and the lowest replicas that may be in effect. Its
//! *commitment* is the rest of its replicas: `max(L, unavailable)`.
//!
//! ```text
//! in use = commitments + replicas of N that are requested nowhere - unavailable replicas beyond N
//! in use <= U  =>  guaranteed >= N - U
//! ```
//!
//! A LocalReplicaSet makes no more than its `maxUnavailable` unavailable either, but at any time, since it evicts pods, too: its L
//! counts whether or not it rolls.
//!
//! Replicas beyond N that are available lower nothing: they let a move end, and a rollout would delay it.

use planted_bugs::{PlantedBug, is_planted};

use crate::{
    budget::{Budget, Limits},
    loan::reach,
    member::{Deployment, Member, MemberState},
    rollout::Rollout,
    state::{Loan, State},
};

/// The budget and its use. Moves share it: see [`MemberAccount::moves_wait`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The budget in pods.
    pub limits: Limits,
    /// What of it is in use. More than `limits` if pods are broken, or the budget was made smaller.
    pub in_use: Limits,
    /// One for each member of the input.
    pub members: Vec<MemberAccount>,
}

/// One member's part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemberAccount {
    /// Its commitment: replicas that are not available, or may be taken away.
    pub unavailable: u64,
    /// Pods that run beyond its replicas, or may.
    pub surge: u64,
    /// Replicas that stay available whatever its Deployment's controller does. A move that scales it down keeps the sum over
    /// all members at N - U or more.
    pub guaranteed: u64,
    /// Whether voluntary moves that touch the member have to wait: it has a loan, or pods of several templates, which
    /// a Deployment scales in proportion, the available ones too. Not only because its controller has not observed it:
    /// perhaps it never does.
    pub moves_wait: bool,
}

impl Account {
    /// The account of `rollout` with the loans of `state`. For moves, that is the recorded state.
    #[must_use]
    pub fn of(rollout: &Rollout<'_>, state: &State) -> Self {
        let (mut requested, mut unavailable, mut surge, mut waiting) = (0, 0, 0, 0);
        let members = rollout.members.iter().map(|member| {
            let Some((found, loan)) = present(member, state) else {
                let is_unseen = member.state == MemberState::Unknown;
                let account = MemberAccount {
                    // Any of them may be unavailable.
                    unavailable: if is_unseen { member.requested } else { 0 },
                    surge: loan_of(member, state).map_or(0, |loan| loan.strategy.surge),
                    ..MemberAccount::default()
                };
                requested += account.unavailable;
                unavailable += account.unavailable;
                waiting += account.unavailable;
                surge += account.surge;
                return account;
            };
            let reach = reach(found, loan);
            let lent = if is_planted(PlantedBug::BudgetLentTwice) {
                0
            } else {
                reach.unavailable
            };
            let kept = found.lowest_replicas.saturating_sub(lent);
            let guaranteed = kept.min(found.available);
            let account = MemberAccount {
                unavailable: (found.replicas.saturating_sub(guaranteed)).max(lent),
                surge: found.surplus().max(reach.surge),
                guaranteed,
                moves_wait: loan.is_some() || found.pods > found.updated,
            };
            let yet_to_come = found.highest_replicas.saturating_sub(found.replicas);
            requested += found.highest_replicas;
            unavailable += account.unavailable + yet_to_come;
            surge += account.surge;
            // What a loan may make unavailable is no reason for another one, unless it can't run anyway.
            let idle = (account.unavailable - lent).max(found.pending.min(account.unavailable));
            waiting += idle + yet_to_come;
            account
        });
        let members = members.collect();
        let missing = rollout.replicas.saturating_sub(requested);
        let beyond = requested.saturating_sub(rollout.replicas);
        // The budget is what runs beyond N: what does not run yet is none.
        if rollout.budget == Budget::CreateFirst {
            waiting = 0;
        }
        Self {
            limits: rollout.limits(),
            in_use: Limits {
                unavailable: unavailable + missing - waiting.min(beyond),
                surge: surge + beyond,
            },
            members,
        }
    }

    /// What of the budget is free.
    pub(crate) fn room(&self) -> Limits {
        Limits {
            unavailable: (self.limits.unavailable).saturating_sub(self.in_use.unavailable),
            surge: self.limits.surge.saturating_sub(self.in_use.surge),
        }
    }
}

/// The loan of a member that is in the account. Its Deployment may not be known, as after a restart while it is unreachable.
pub(crate) fn loan_of<'a>(member: &Member<'_>, state: &'a State) -> Option<&'a Loan> {
    let loan = state.loans.get(member.name);
    loan.filter(|_| member.state != MemberState::Lost)
}

/// The Deployment and the loan of a member that is in the account.
pub(crate) fn present<'a>(
    member: &'a Member<'_>,
    state: &'a State,
) -> Option<(&'a Deployment<'a>, Option<&'a Loan>)> {
    let is_present = member.state != MemberState::Lost;
    let found = member.deployment.as_ref().filter(|_| is_present)?;
    Some((found, state.loans.get(member.name)))
}
