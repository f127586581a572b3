//! How many pods start updating in a time (L15).
//!
//! A Deployment knows no speed. But a pod that has started is unavailable for `minReadySeconds`, and of those a
//! Deployment has at most L + surge. So all loans together are at most the portion, and the caller sets each member's
//! `minReadySeconds` to `min_delay` at least. What is given back counts until `min_delay` after that, so that the
//! next member does not start as many within the same time.
//!
//! A new template within a loan starts as many pods once more. Therefore a loan is first recalled, and what is lent anew is
//! added to what the member has until the new template is seen there and `min_delay` has passed. A portion of 1 has no room for
//! that: then the template is replaced if no pod has started lately, as with a pod that never becomes available.
//!
//! Three cases are not foreseen, since the Deployment's controller acts by itself: with a portion of 1, that such a pod becomes
//! available in the moment in which the template is replaced; and that a controller creates no pods for `min_delay`, and then
//! does so in that moment. And a LocalReplicaSet carries out what it has recorded within a loan: after this was given back, if its
//! controller has ended in between.

use jiff::Timestamp;

use crate::{
    account::{loan_of, present},
    loan::reach,
    rollout::Rollout,
    state::{Returned, State},
    time::after,
};

/// What more may start at `now`; no limit without a speed.
pub(crate) fn room(rollout: &Rollout<'_>, state: &State, now: Timestamp) -> u64 {
    let Some(speed) = rollout.speed else {
        return u64::MAX;
    };
    let lent = rollout.members.iter().map(|member| {
        let loan = loan_of(member, state);
        if loan.is_some_and(|loan| loan.evicts) {
            return 0;
        }
        let lent = || loan.map(|loan| loan.strategy).unwrap_or_default();
        let reach = present(member, state).map_or_else(lent, |(found, loan)| reach(found, loan));
        reach.pods() + loan.map(|loan| loan.replaced).unwrap_or_default()
    });
    let returned = state.returned.iter();
    let returned = returned.filter(|returned| after(returned.at, speed.min_delay) > now);
    let in_use = lent.sum::<u64>() + returned.map(|returned| returned.pods).sum::<u64>();
    speed.portion.saturating_sub(in_use)
}

/// When the next part that was given back no longer counts.
pub(crate) fn next(rollout: &Rollout<'_>, state: &State, now: Timestamp) -> Option<Timestamp> {
    let min_delay = rollout.speed?.min_delay;
    let ends = state.returned.iter();
    let ends = ends.map(|returned| after(returned.at, min_delay));
    ends.filter(|end| *end > now).min()
}

/// Records what was given back since `before`, and forgets what no longer counts if anything else has changed.
pub(crate) fn record_returns(
    rollout: &Rollout<'_>,
    before: &State,
    state: &mut State,
    now: Timestamp,
) {
    let Some(speed) = rollout.speed else {
        state.returned.clear();
        return;
    };
    let returned = before.loans.iter().map(|(name, loan)| {
        let pods = loan.starts() + loan.replaced;
        let kept = state.loans.get(name);
        pods.saturating_sub(kept.map_or(0, |kept| kept.starts() + kept.replaced))
    });
    let returned = returned.filter(|pods| *pods > 0);
    let returned: Vec<_> = returned.map(|pods| Returned { pods, at: now }).collect();
    if !returned.is_empty() || state != before {
        (state.returned).retain(|returned| after(returned.at, speed.min_delay) > now);
        state.returned.extend(returned);
    }
}
