//! What the host stores of a rollout: no more is lent than the budget, and nothing is given back that a member may still use (L14).

use fedrs_api::RolloutStatus;
use sim_cluster::Change;

use super::{
    local_set::LocalSet,
    observed::{Observed, rollout_of},
    reach::Reach,
};

/// Checks a status that the controller has written.
pub(super) fn on_host(observed: &Observed, change: &Change) -> Option<String> {
    if !observed.is_set(change) || !observed.has_rollout(&change.name) {
        return None;
    }
    let name = &change.name;
    let mut members = observed.parts(name).map(|(member, _)| member);
    let is_misled = |member| {
        observed.may_lie(member)
            || observed.may_remember_lies(member)
            || observed.was_restored(member)
    };
    if observed.was_host_restored() || members.any(is_misled) {
        return None;
    }
    let change = Lent {
        observed,
        name,
        old: rollout_of(change.old.as_ref()),
        new: rollout_of(change.new.as_ref()),
    };
    (change.lends_too_much())
        .or_else(|| change.exceeds_budget())
        .or_else(|| change.forgets())
}

/// What was lent, and what is.
struct Lent<'a> {
    observed: &'a Observed,
    name: &'a str,
    old: RolloutStatus,
    new: RolloutStatus,
}

impl Lent<'_> {
    /// A loan grows although all loans together are more than the budget. What is unavailable at the moment doesn't matter: it may
    /// become available, and the loan stays. Only pods without a node may be lent beside it, as others run in their place, and broken ones
    /// while all that is promised is available beside the loans.
    fn lends_too_much(&self) -> Option<String> {
        let (mut before, mut after, mut guaranteed) = (0, 0, 0);
        let mut grows = false;
        for (member, part) in self.observed.parts(self.name) {
            let since = self.observed.oldest_belief(member);
            let (old, new) = (loan(&self.old, member), loan(&self.new, member));
            // What a Deployment that returned, or that others changed, can do anyway is recorded.
            let in_effect = most(part.reach.since(since)).unavailable;
            let old = old.unavailable.max(in_effect);
            before += old;
            let mut beyond = (self.new.record.loans.get(member)).map_or(0, |loan| loan.beyond);
            if new.unavailable > old {
                grows = true;
                beyond = beyond.min(part.most_without_node_since(since));
            }
            after += new.unavailable.saturating_sub(beyond);
            // As the controller may see it.
            let desired = part.desired.since(since).max().copied().unwrap_or(0);
            let (missing, _) = part.missing_since(since);
            guaranteed += desired.saturating_sub(new.unavailable.max(missing));
        }
        let most = most(self.limits().iter()).unavailable;
        let is_kept = guaranteed >= self.least_replicas().saturating_sub(most);
        (grows && after > most.max(before) && !is_kept).then(|| {
            let (name, loans) = (self.name, &self.new.record.loans);
            format!("{name}: {after} pods with a node are lent, {most} may be, {before} were before: {loans:?}")
        })
    }

    /// The budgets that the controller may know.
    fn limits(&self) -> Vec<Reach> {
        let specs = self.observed.valid_sets(self.name);
        specs
            .filter_map(|set| Some(set.rollout.as_ref()?.limits(&set.frs)))
            .collect()
    }

    /// The fewest replicas that users may want, as far as the controller knows.
    fn least_replicas(&self) -> u64 {
        let specs = self.observed.specs(self.name);
        let replicas = specs.map(|frs| u64::from(frs.replicas));
        replicas.min().unwrap_or(0)
    }

    /// A loan grows although the budget is in use. What is unavailable anyway may be lent in any case.
    fn exceeds_budget(&self) -> Option<String> {
        let (mut before, mut after) = (Reach::default(), Reach::default());
        let mut grows = (false, false);
        let mut requested = 0;
        for (member, part) in self.observed.parts(self.name) {
            let since = self.observed.oldest_belief(member);
            let (old, new) = (loan(&self.old, member), loan(&self.new, member));
            // What is in a lost member is replaced elsewhere, and does not count.
            let is_lost = (self.new.record.loans.get(member)).is_some_and(|loan| loan.lost);
            // Also if somebody has deleted it and the controller can't see that.
            if !is_lost && part.is_labeled.since(since).any(|is_labeled| *is_labeled) {
                requested += part.desired.since(since).max().copied().unwrap_or(0);
            }
            let is_lent = [old, new].into_iter().any(|loan| loan != Reach::default());
            if !part.is_ours() && !is_lent {
                // Such as that of an earlier set of this name, which was released.
                continue;
            }
            grows.0 |= new.unavailable > old.unavailable;
            grows.1 |= new.surge > old.surge;
            let reach = most(part.reach.since(since));
            let (least, most_missing) = part.missing_since(since);
            before.unavailable += old.unavailable.max(reach.unavailable).max(most_missing);
            if is_lost {
                continue;
            }
            // What happened since in a member that cannot be observed is not known.
            let is_known = self.observed.is_known_since(member, since);
            let shown = |least| if is_known { least } else { 0 };
            after.unavailable += new.unavailable.max(shown(least));
            let (least, most_surplus) = part.surplus_since(since);
            before.surge += old.surge.max(reach.surge).max(most_surplus);
            after.surge += new.surge.max(shown(least));
        }
        let beyond = requested.saturating_sub(self.least_replicas());
        // Of replicas beyond N any may be unavailable.
        after.unavailable = after.unavailable.saturating_sub(beyond);
        let limits = self.limits();
        let most = most(limits.iter());
        if limits.is_empty() {
            return None;
        }
        let wrong = |what, after, most, before| {
            let name = self.name;
            format!(
                "{name}: {after} pods may be {what}, {most} are allowed, {before} were before: {:?}",
                self.new.record.loans
            )
        };
        if grows.0 && after.unavailable > most.unavailable.max(before.unavailable) {
            return Some(wrong(
                "unavailable",
                after.unavailable,
                most.unavailable,
                before.unavailable,
            ));
        }
        (grows.1 && after.surge > most.surge.max(before.surge))
            .then(|| wrong("beyond N", after.surge, most.surge, before.surge))
    }

    /// A loan ends, or is smaller, although the Deployment can use all of it.
    fn forgets(&self) -> Option<String> {
        let mut parts = self.observed.parts(self.name);
        parts.find_map(|(member, part)| {
            let old = self
                .old
                .record
                .loans
                .get(member)
                .filter(|loan| !loan.lost)?;
            let new = self.new.record.loans.get(member);
            if new.is_some_and(|loan| loan.lost) || !part.is_ours() {
                return None;
            }
            let left = loan(&self.new, member);
            let since = self.observed.oldest_belief(member);
            let used = part
                .reach
                .since(since)
                .copied()
                .reduce(|one, other| Reach {
                    unavailable: one.unavailable.min(other.unavailable),
                    surge: one.surge.min(other.surge),
                })?;
            let used = Reach {
                unavailable: used.unavailable.min(old.strategy.unavailable),
                surge: used.surge.min(old.strategy.surge),
            };
            // The smallest strategy is all that can be left of a loan: the next template ends it with its own. That may be of the same
            // revision, if the write under the old loan found a later generation.
            let is_other = new.is_some_and(|loan| {
                loan.revision != old.revision || loan.generation > old.generation
            });
            if is_other && used.unavailable + used.surge <= 1 {
                return None;
            }
            let is_used = used.unavailable > left.unavailable || used.surge > left.surge.max(1);
            is_used.then(|| {
                let name = self.name;
                format!("{name}: {member} may use {used:?} of its loan, of which {left:?} is left")
            })
        })
    }
}

fn most<'a>(all: impl Iterator<Item = &'a Reach>) -> Reach {
    all.fold(Reach::default(), |most, one| Reach {
        unavailable: most.unavailable.max(one.unavailable),
        surge: most.surge.max(one.surge),
    })
}

/// What is lent to a member that is not lost.
fn loan(status: &RolloutStatus, member: &str) -> Reach {
    let loan = status.record.loans.get(member).filter(|loan| !loan.lost);
    let strategy = loan.map(|loan| loan.strategy).unwrap_or_default();
    Reach {
        unavailable: strategy.unavailable,
        surge: strategy.surge,
    }
}

impl LocalSet {
    /// The fewest and the most replicas that were not available since then.
    fn missing_since(&self, since: tokio::time::Instant) -> (u64, u64) {
        range(self.missing.since(since))
    }

    /// The most replicas without a node that works since then.
    fn most_without_node_since(&self, since: tokio::time::Instant) -> u64 {
        let most = self.desired.since(since).max().copied().unwrap_or(0);
        most.saturating_sub(self.placed.since(since).min().copied().unwrap_or(0))
    }

    /// The fewest and the most pods beyond the replicas since then.
    fn surplus_since(&self, since: tokio::time::Instant) -> (u64, u64) {
        range(self.surplus.since(since))
    }
}

fn range<'a>(all: impl Iterator<Item = &'a (u64, u64)>) -> (u64, u64) {
    all.fold((u64::MAX, 0), |(least, most), (low, high)| {
        (least.min(*low), most.max(*high))
    })
}
