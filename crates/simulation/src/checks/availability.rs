//! What AvailabilitySets lend (A1, M16): no eviction is granted beyond the budget, over all members together.
//!
//! An eviction counts until as many pods are ready in its member as there should be: nobody can tell whose place a pod takes.

use sim_cluster::{Api, Change};

use super::{
    availability_state::{Asked, PREFIX, loan},
    observed::Observed,
};

/// The resource of PodDisruptionBudgets.
const BUDGETS: &str = "poddisruptionbudgets";

impl Observed {
    /// Records a change of a member, which was already counted.
    pub(super) fn availability_changed(&mut self, member: &str, change: &Change) {
        if change.kind.plural == BUDGETS {
            self.availability.budget_changed(member, change);
        }
        let Some(observed) = self.members.get(member) else {
            return;
        };
        for (set, local) in &observed.local {
            let missing = local
                .desired
                .now()
                .saturating_sub(*local.reported_ready.now());
            self.availability.are_missing(set, member, missing);
        }
    }

    /// Records that a member has the PodDisruptionBudgets that its API server shows, and no others.
    pub(super) fn availability_restored(&mut self, member: &str, api: &Api) {
        self.availability.loans.retain(|(_, of), _| of != member);
        let kind = api.kind_of("policy/v1", "PodDisruptionBudget");
        let budgets = kind.map(|kind| api.list(&kind, None)).unwrap_or_default();
        for budget in budgets {
            if let Some(set) = crate::name_of(&budget).strip_prefix(PREFIX) {
                let key = (set.to_owned(), member.to_owned());
                self.availability.loans.insert(key, loan(&budget));
            }
        }
    }

    /// Whether an AvailabilitySet lends something, or nothing, to a member: then its evictions are limited.
    pub(crate) fn limits_evictions(&self, set: &str, member: &str) -> bool {
        let key = (set.to_owned(), member.to_owned());
        self.availability.loans.contains_key(&key)
    }

    /// An eviction of a pod was granted in a member that an AvailabilitySet limits. Returns what is wrong with that.
    pub(crate) fn evicted(&mut self, set: &str, member: &str) -> Option<String> {
        let key = (set.to_owned(), member.to_owned());
        *self.availability.evicted.entry(key).or_default() += 1;
        let asked = self.asked(set)?;
        let used = self.availability.used(set);
        let all: u64 = used.values().map(|(_, evicted)| evicted).sum();
        let others = used
            .iter()
            .filter(|(other, of)| **other != member && of.1 > 0);
        let is_elsewhere = others.count() > 0;
        let is_wrong = all > asked.budget || asked.is_one_at_a_time && is_elsewhere;
        is_wrong.then(|| {
            format!("{set}: eviction {all} in {member} by {asked:?}, lent and evicted: {used:?}")
        })
    }

    /// The fewest replicas of a set in a member that the controller may see.
    fn fewest_desired(&self, set: &str, member: &str) -> u64 {
        let since = self.oldest_belief(member) - self.longest_look();
        let local = self.members.get(member).and_then(|of| of.local.get(set));
        let desired = local.and_then(|local| local.desired.since(since).min().copied());
        desired.unwrap_or(0)
    }

    /// What an AvailabilitySet has asked for as far back as the controller may act on it; `None` if it did not exist then, or what was
    /// lent may be forgotten, or in the hands of former members.
    fn asked(&self, set: &str) -> Option<Asked> {
        let since = self.host_belief(self.longest_look());
        let asked = self.availability.asked_since(set, since)?;
        (!self.was_any_unreliable()).then_some(asked)
    }
}

/// Whether this is the kind of what lends.
pub(super) fn is_budget(change: &Change) -> bool {
    change.kind.plural == BUDGETS
}

/// Checks a change that the controller made to a PodDisruptionBudget: it is of an AvailabilitySet, and a loan grows only by what all others,
/// and the pods that were evicted, leave of the budget.
pub(super) fn of_budget(observed: &Observed, member: &str, change: &Change) -> Option<String> {
    let name = &change.name;
    let set = name.strip_prefix(PREFIX);
    let Some(set) = set.filter(|set| observed.availability.sets.contains_key(*set)) else {
        return Some(format!("{name} in {member} lends for no AvailabilitySet"));
    };
    let new = loan(change.new.as_ref()?);
    if change.old.as_ref().is_some_and(|old| new <= loan(old)) {
        return None;
    }
    let asked = observed.asked(set)?;
    let mut used = observed.availability.used(set);
    used.entry(member).or_default().0 = new;
    for (member, (loan, _)) in &mut used {
        // No more can be evicted than there are, by what the controller may see.
        *loan = observed.fewest_desired(set, member).min(*loan);
    }
    let worst = |(loan, evicted): &(u64, u64)| *loan.max(evicted);
    let all: u64 = used.values().map(worst).sum();
    let clusters = used.values().filter(|of| worst(of) > 0).count();
    let is_wrong = all > asked.budget || asked.is_one_at_a_time && new > 0 && clusters > 1;
    is_wrong
        .then(|| format!("{name} in {member} lends {new} of {asked:?}, lent and evicted: {used:?}"))
}
