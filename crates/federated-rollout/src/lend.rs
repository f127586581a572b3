//! Which members get a loan, and how much.
//!
//! What is free is shared out evenly among the members that wait, those with the fewest replicas first, so that what these
//! don't need is left for the others. What is already unavailable in a member is lent also if the budget is in use: nothing is lost
//! by that, and broken pods are replaced at once. But all loans together are within the budget: pods that are unavailable for a moment, or
//! have just been created, become available, and the loans stay. Apart from pods without a node, and from broken ones where all that is
//! promised is available beside the loan: a replica beyond N in another member may wait for their successors. Only if no member waits,
//! loans that are out become larger, at least by half each time, so that the last member doesn't roll with a small part of the
//! budget.

use std::collections::BTreeMap;

use jiff::Timestamp;
use planted_bugs::{PlantedBug, is_planted};

use crate::{
    account::{Account, MemberAccount, loan_of, present},
    budget::Budget,
    loan::reach,
    member::{Deployment, Member},
    recall,
    rollout::Rollout,
    speed,
    state::{Loan, State},
    steps::{may_roll, step_of},
    strategy::Strategy,
};

/// Why a member that may roll has no loan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It has pods without a node.
    WithoutNode,
    /// Its status is about another generation.
    NotObserved,
    /// As many members of its step as may be are being updated.
    Concurrency(usize),
    /// The budget is in use.
    Budget,
    /// The speed is in use.
    Speed,
}

/// Adds loans to `state`. Returns who got none, and the members without replicas, which need none.
pub(crate) fn lend<'a>(
    rollout: &Rollout<'a>,
    state: &mut State,
    now: Timestamp,
) -> (BTreeMap<&'a str, Refusal>, Vec<&'a Member<'a>>) {
    let mut refusals = BTreeMap::new();
    let (mut waiting, mut empty) = (Vec::new(), Vec::new());
    let mut concurrent = Concurrency::of(rollout, state);
    for member in rollout.members {
        let Some(found) = member.writable() else {
            continue;
        };
        let loan = state.loans.get(member.name);
        if !may_roll(rollout, state, member) || !needs_loan(rollout, found, loan) {
            continue;
        }
        let refusal = match loan {
            None if member.waits_for_nodes => Some(Refusal::WithoutNode),
            _ if !found.is_observed() => Some(Refusal::NotObserved),
            None if found.replicas == 0 && found.pods == 0 => {
                empty.push(member);
                continue;
            }
            _ => concurrent.admit(rollout, state, member),
        };
        match refusal {
            Some(refusal) => _ = refusals.insert(member.name, refusal),
            None => waiting.push((member, found)),
        }
    }
    let is_first = !waiting.is_empty();
    if !is_first {
        let may_grow = |member: &&Member<'_>| may_roll(rollout, state, member);
        let members = rollout.members.iter().filter(may_grow);
        let growing = members.filter_map(|member| Some((member, member.writable()?)));
        waiting.extend(growing.filter(|(member, found)| can_grow(rollout, state, member, found)));
    }
    waiting.sort_by_key(|(_, found)| found.replicas);
    for (position, (member, found)) in waiting.iter().enumerate() {
        let share = Share::of(rollout, state, now, waiting.len() - position);
        match share.grant(rollout, state, member, found) {
            Ok(loan) => _ = state.loans.insert(member.name.to_owned(), loan),
            Err(refusal) if is_first => _ = refusals.insert(member.name, refusal),
            Err(_) => {}
        }
    }
    (refusals, empty)
}

/// Whether the member has no loan for the target, and needs one. A loan for another revision is in the way unless only the
/// smallest part of it is left: `verdict` replaces it, or recalls it.
pub(crate) fn needs_loan(
    rollout: &Rollout<'_>,
    found: &Deployment<'_>,
    loan: Option<&Loan>,
) -> bool {
    match loan {
        None => found.revision != rollout.target || found.has_old_pods(),
        // It is recalled entirely first.
        Some(_) if found.local.is_some() => false,
        Some(loan) => {
            let is_recalled = found.strategy == loan.strategy && loan.strategy.pods() == 1;
            !loan.is_for(rollout.target, found)
                && !loan.lost
                && loan.is_over(found)
                && found.is_rolling()
                && is_recalled
        }
    }
}

/// Whether the member makes use of all of its loan, and has more old pods than it can replace at once.
fn can_grow(
    rollout: &Rollout<'_>,
    state: &State,
    member: &Member<'_>,
    found: &Deployment<'_>,
) -> bool {
    let is_used = |loan: &Loan| {
        loan.revision == rollout.target
            && !loan.evicts
            && loan.strategy == found.strategy
            && loan.is_over(found)
            && !loan.lost
    };
    found.revision == rollout.target
        && found.is_observed()
        && found.pods.saturating_sub(found.updated) > found.replaceable(found.strategy)
        && state.loans.get(member.name).is_some_and(is_used)
}

/// How many members of each step are being updated.
struct Concurrency(BTreeMap<usize, usize>);

impl Concurrency {
    fn of(rollout: &Rollout<'_>, state: &State) -> Self {
        let mut active = BTreeMap::new();
        for member in rollout.members {
            let is_active = match present(member, state) {
                Some((found, loan)) => {
                    loan.is_some_and(|loan| loan.revision == rollout.target && !loan.evicts)
                        || found.revision == rollout.target && !found.is_complete()
                }
                None => loan_of(member, state).is_some(),
            };
            if is_active {
                *active.entry(step_of(rollout, member)).or_default() += 1;
            }
        }
        Self(active)
    }

    fn admit(
        &mut self,
        rollout: &Rollout<'_>,
        state: &State,
        member: &Member<'_>,
    ) -> Option<Refusal> {
        let step = step_of(rollout, member);
        let all: usize = self.0.values().sum();
        let is_alone = rollout.limit.is_some_and(|limit| limit.one_member);
        let active = self.0.entry(step).or_default();
        let limit = rollout.steps.get(step).and_then(|step| step.max_concurrent);
        let (found, loan) = present(member, state)?;
        let is_counted = loan.is_some_and(|loan| loan.revision == rollout.target)
            || found.revision == rollout.target;
        match limit {
            _ if is_counted => None,
            _ if is_alone && all > 0 => Some(Refusal::Concurrency(1)),
            Some(limit) if *active >= limit.max(1) => Some(Refusal::Concurrency(limit)),
            _ => {
                *active += 1;
                None
            }
        }
    }
}

/// What the next of the waiting members may get.
struct Share {
    account: Account,
    /// On top of what the member has.
    more: Strategy,
    /// Pods to start, by the speed.
    pods: u64,
}

impl Share {
    /// The share of one of `count` members.
    fn of(rollout: &Rollout<'_>, state: &State, now: Timestamp, count: usize) -> Self {
        let account = Account::of(rollout, state);
        let share = |pods: u64| pods.div_ceil(count as u64);
        let room = account.room();
        Self {
            more: Strategy::new(share(room.unavailable), share(room.surge)),
            pods: share(speed::room(rollout, state, now)),
            account,
        }
    }

    /// The loan for `member`, within the share.
    fn grant(
        &self,
        rollout: &Rollout<'_>,
        state: &State,
        member: &Member<'_>,
        found: &Deployment<'_>,
    ) -> Result<Loan, Refusal> {
        let loan = state.loans.get(member.name);
        let before = reach(found, loan);
        // What the next step would recall, here or elsewhere, would be given and taken for ever.
        let left = recall::left(rollout, state, member);
        let own = (self.account.members.iter().zip(rollout.members))
            .find_map(|(account, other)| (other.name == member.name).then_some(account))
            .ok_or(Refusal::Budget)?;
        // What may run is not lent as if it were unavailable anyway.
        let idle = own
            .unavailable
            .saturating_sub(found.uncertain)
            .max(before.unavailable.min(own.unavailable));
        let most = if is_planted(PlantedBug::UnavailableLentBesideTheBudget) {
            u64::MAX
        } else {
            // What has no node can't become available beside what is lent: others run in its place.
            let beside = left.unavailable + found.pending.min(own.unavailable);
            beside.max(self.spare(rollout, member, found).min(idle))
        };
        let wanted = self.wanted(found, own, idle, most);
        let wanted = match rollout.budget {
            Budget::RollingUpdate { .. } | Budget::CreateFirst => wanted,
            Budget::Recreate if wanted.unavailable < found.replicas || !state.loans.is_empty() => {
                return Err(Refusal::Budget);
            }
            Budget::Recreate => Strategy::new(found.replicas, 0),
        };
        if wanted.pods() == 0 {
            return Err(Refusal::Budget);
        }
        let is_replaced = loan.is_some_and(|loan| !loan.is_for(rollout.target, found));
        // What was lent for the target may still be written; what else is in effect ends with the write. With a speed, that has
        // started pods as well.
        let kept = loan.filter(|_| !is_replaced || rollout.speed.is_some());
        let kept = kept.map_or(Strategy::default(), |_| before);
        let strategy = self.at_speed(rollout, found, wanted, (before, kept), is_replaced)?;
        if strategy.unavailable > most || strategy.surge > left.surge {
            return Err(Refusal::Budget);
        }
        if strategy.pods() > left.pods {
            return Err(Refusal::Speed);
        }
        let (now, then) = (found.replaceable(before), found.replaceable(strategy));
        let is_growth = then > now && then >= now + now.div_ceil(2);
        if loan.is_some() && !is_replaced && !is_growth {
            return Err(Refusal::Budget);
        }
        Ok(Loan {
            beyond: strategy.unavailable.saturating_sub(left.unavailable),
            replaced: if is_replaced && rollout.speed.is_some() {
                before.pods()
            } else {
                0
            },
            ..new_loan(rollout, found, strategy)
        })
    }

    /// How many pods may be unavailable in `member` although that is more than the budget, as the others are enough for all that is
    /// promised: one of N is broken here, and a replica beyond N is available elsewhere, which is removed only after that.
    fn spare(&self, rollout: &Rollout<'_>, member: &Member<'_>, found: &Deployment<'_>) -> u64 {
        let promised = (rollout.replicas).saturating_sub(self.account.limits.unavailable);
        let members = self.account.members.iter().zip(rollout.members);
        let others = members.filter(|(_, other)| other.name != member.name);
        let guaranteed: u64 = others.map(|(account, _)| account.guaranteed).sum();
        let needed = promised.saturating_sub(guaranteed);
        if found.available < needed {
            return 0;
        }
        found.lowest_replicas.saturating_sub(needed)
    }

    /// What the member would get at any speed: `idle` pods are unavailable anyway, and `most` may be.
    fn wanted(
        &self,
        found: &Deployment<'_>,
        own: &MemberAccount,
        idle: u64,
        most: u64,
    ) -> Strategy {
        let unavailable = (idle + self.more.unavailable).min(found.replicas);
        // Pods beyond a budget that was made smaller are lent to nobody.
        let Account { in_use, limits, .. } = &self.account;
        let over = in_use.surge.saturating_sub(limits.surge);
        let surge = own.surge.saturating_sub(over) + self.more.surge;
        let wanted = Strategy::new(unavailable.min(most), surge.min(found.replicas));
        // One pod beyond its replicas runs, or may run, anyway. Replicas beyond N may use up the surge until the rollout has ended:
        // moves wait for it.
        match wanted.pods() {
            0 if own.surge > 0 => found.without_loan(),
            _ => wanted,
        }
    }

    /// As much of `wanted` as the speed allows.
    fn at_speed(
        &self,
        rollout: &Rollout<'_>,
        found: &Deployment<'_>,
        wanted: Strategy,
        (before, kept): (Strategy, Strategy),
        is_replaced: bool,
    ) -> Result<Strategy, Refusal> {
        let Some(speed) = rollout.speed else {
            return Ok(wanted.or(kept));
        };
        let has_no_room = speed.portion <= before.pods();
        let pods = match is_replaced {
            true if has_no_room && !found.started_lately => before.pods(),
            true => self.pods,
            false => self.pods.saturating_add(before.pods()),
        };
        let unavailable = wanted.unavailable.min(pods);
        let strategy = Strategy::new(unavailable, wanted.surge.min(pods - unavailable));
        let strategy = if strategy.covers(kept) {
            strategy
        } else {
            kept
        };
        if strategy.pods() == 0 || strategy.pods() > pods {
            return Err(Refusal::Speed);
        }
        Ok(strategy)
    }
}

/// A loan of `strategy` for the target, that is to be written to the Deployment as it was found.
fn new_loan(rollout: &Rollout<'_>, found: &Deployment<'_>, strategy: Strategy) -> Loan {
    let has_template = found.revision == rollout.target;
    Loan {
        strategy,
        revision: rollout.target.to_owned(),
        generation: found.generation,
        available: if has_template {
            found.updated_available
        } else {
            0
        },
        ..Loan::default()
    }
}
