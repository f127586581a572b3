//! What each loan may be, if the budget or the speed was made smaller.

use planted_bugs::{PlantedBug, is_planted};

use crate::{
    account::loan_of, budget::Limits, member::Member, rollout::Rollout, state::State,
    strategy::Strategy,
};

/// What one member may have.
pub(crate) struct Left {
    /// Unavailable pods within the budget.
    pub(crate) unavailable: u64,
    /// Surplus pods.
    pub(crate) surge: u64,
    /// Pods to start, by the speed.
    pub(crate) pods: u64,
}

/// What `member` may have beside the loans of the others, so that none of them is recalled.
pub(crate) fn left(rollout: &Rollout<'_>, state: &State, member: &Member<'_>) -> Left {
    let Limits { unavailable, surge } = rollout.limits();
    let all = Left {
        unavailable,
        surge,
        pods: rollout.speed.map_or(u64::MAX, |speed| speed.portion),
    };
    if is_planted(PlantedBug::BudgetLentTwice) {
        return all;
    }
    let others = (rollout.members.iter()).filter(|other| other.name != member.name);
    let loans = others.filter_map(|other| loan_of(other, state));
    loans.fold(all, |left, loan| Left {
        unavailable: left.unavailable.saturating_sub(loan.within()),
        surge: left.surge.saturating_sub(loan.strategy.surge),
        pods: left.pods.saturating_sub(loan.starts()),
    })
}

/// The most that the loan of each member may be, for each member of the input: less than it is for the last ones
/// if all loans together exceed `limits` or the portion. What a loan has beyond the budget, for broken pods, stays.
pub(crate) fn allowed(rollout: &Rollout<'_>, state: &State, limits: Limits) -> Vec<Strategy> {
    let (mut unavailable, mut surge) = (limits.unavailable, limits.surge);
    let speed = (rollout.speed).filter(|_| !is_planted(PlantedBug::SpeedForgottenByRestart));
    let mut pods = speed.map_or(u64::MAX, |speed| speed.portion);
    let members = rollout.members.iter().map(|member| {
        loan_of(member, state).map_or(Strategy::default(), |loan| {
            let Strategy {
                unavailable: lent,
                surge: lent_surge,
            } = loan.strategy;
            let within = loan.within().min(unavailable);
            if loan.evicts {
                unavailable -= within;
                return Strategy::new(lent.min(loan.beyond) + within, 0);
            }
            let allowed_unavailable = (lent.min(loan.beyond) + within).min(pods);
            unavailable -= within;
            pods -= allowed_unavailable;
            let allowed_surge = lent_surge.min(surge).min(pods);
            surge -= allowed_surge;
            pods -= allowed_surge;
            Strategy::new(allowed_unavailable, allowed_surge)
        })
    });
    members.collect()
}
