//! What AvailabilitySets lend (A1, M16): no eviction is granted beyond the budget, over all members together.
//!
//! An eviction counts until as many pods are ready in its member as there should be: nobody can tell whose place a pod takes.

use std::collections::BTreeMap;

use serde_json::Value;
use sim_cluster::{Api, Change, Object};
use tokio::time::Instant;

use super::observed::Observed;
use crate::history::History;

/// The prefix of the names of PodDisruptionBudgets that lend.
const PREFIX: &str = "avset-";
/// The resource of PodDisruptionBudgets.
const BUDGETS: &str = "poddisruptionbudgets";
/// What AvailabilitySets say, and what they lend.
#[derive(Default)]
pub(crate) struct Availability {
    /// By name, over time; `None` while one does not exist, or is being deleted.
    sets: BTreeMap<String, History<Option<Asked>>>,
    /// What is lent, by AvailabilitySet and member.
    loans: BTreeMap<(String, String), u64>,
    /// Evictions that were granted within a loan, and whose pods are not replaced, by AvailabilitySet and member.
    evicted: BTreeMap<(String, String), u64>,
}

/// What an AvailabilitySet asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Asked {
    budget: u64,
    is_one_at_a_time: bool,
}

impl Asked {
    fn of(object: &Object) -> Option<Self> {
        let spec = &object["spec"];
        let is_deleted = object["metadata"].get("deletionTimestamp").is_some();
        (!is_deleted).then_some(Self {
            budget: spec["budget"].as_u64()?,
            is_one_at_a_time: spec["oneClusterAtATime"] == true,
        })
    }
}

impl Availability {
    /// Records a change of an AvailabilitySet.
    pub(super) fn changed(&mut self, change: &Change) {
        let set = self.sets.entry(change.name.clone());
        let set = set.or_insert_with(|| History::starting(None));
        set.put(change.new.as_ref().and_then(Asked::of));
    }

    /// Records a change of a PodDisruptionBudget of a member.
    fn budget_changed(&mut self, member: &str, change: &Change) {
        let Some(set) = change.name.strip_prefix(PREFIX) else {
            return;
        };
        let key = (set.to_owned(), member.to_owned());
        match &change.new {
            Some(budget) => _ = self.loans.insert(key, loan(budget)),
            None => _ = self.loans.remove(&key),
        }
    }

    /// Pods of a set in a member are ready again, or fewer are needed: at most so many are missing.
    fn are_missing(&mut self, set: &str, member: &str, missing: u64) {
        let key = (set.to_owned(), member.to_owned());
        if let Some(evicted) = self.evicted.get_mut(&key) {
            *evicted = missing.min(*evicted);
        }
    }

    /// What it has asked for since then; `None` if it did not exist all the time.
    fn asked_since(&self, set: &str, since: Instant) -> Option<Asked> {
        let asked = self.sets.get(set)?.since(since).copied();
        let asked: Vec<Asked> = asked.collect::<Option<_>>()?;
        asked.into_iter().reduce(|one, other| Asked {
            budget: one.budget.max(other.budget),
            is_one_at_a_time: one.is_one_at_a_time && other.is_one_at_a_time,
        })
    }

    /// By member: what is lent to it, and how many pods were evicted and are not replaced.
    fn used(&self, set: &str) -> BTreeMap<&str, (u64, u64)> {
        let mut used = BTreeMap::<_, (u64, u64)>::new();
        for ((of, member), loan) in &self.loans {
            if of == set {
                used.entry(&**member).or_default().0 = *loan;
            }
        }
        for ((of, member), evicted) in &self.evicted {
            if of == set {
                used.entry(&**member).or_default().1 = *evicted;
            }
        }
        used
    }
}

fn loan(budget: &Value) -> u64 {
    budget["spec"]["maxUnavailable"].as_u64().unwrap_or(0)
}

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
    let worst = |(loan, evicted): &(u64, u64)| *loan.max(evicted);
    let all: u64 = used.values().map(worst).sum();
    let clusters = used.values().filter(|of| worst(of) > 0).count();
    let is_wrong = all > asked.budget || asked.is_one_at_a_time && new > 0 && clusters > 1;
    is_wrong
        .then(|| format!("{name} in {member} lends {new} of {asked:?}, lent and evicted: {used:?}"))
}

#[cfg(test)]
mod tests {
    use tokio::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a1_an_eviction_counts_until_no_pod_is_missing() {
        let mut all = Availability::default();
        let key = ("web".to_owned(), "m1".to_owned());
        all.evicted.insert(key.clone(), 2);
        for (missing, expected) in [(3, 2), (1, 1), (2, 1), (0, 0)] {
            all.are_missing("web", "m1", missing);
            assert_eq!(all.evicted[&key], expected, "{missing} are missing");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a1_m16_the_largest_budget_counts_and_one_cluster_only_if_it_was_asked_for_all_the_time()
     {
        let mut all = Availability::default();
        let asked = |budget, is_one_at_a_time| {
            Some(Asked {
                budget,
                is_one_at_a_time,
            })
        };
        let set = History::starting(None);
        all.sets.insert("web".to_owned(), set);
        let mut put = |asked| {
            all.sets.get_mut("web").unwrap().put(asked);
            Instant::now()
        };
        let start = Instant::now();
        tokio::time::advance(Duration::from_secs(10)).await;
        let created = put(asked(3, true));
        tokio::time::advance(Duration::from_secs(10)).await;
        put(asked(1, false));
        tokio::time::advance(Duration::from_secs(10)).await;
        let last = put(asked(2, true));
        let since = |time| all.asked_since("web", time);
        assert_eq!(since(start), None, "it did not exist");
        assert_eq!(since(created), asked(3, false));
        assert_eq!(since(last), asked(2, true));
    }
}
