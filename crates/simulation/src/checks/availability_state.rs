//! What AvailabilitySets ask for and lend, and which evictions were granted, over time.

use std::collections::BTreeMap;

use serde_json::Value;
use sim_cluster::{Change, Object};
use tokio::time::Instant;

use crate::history::History;

/// The prefix of the names of PodDisruptionBudgets that lend.
pub(super) const PREFIX: &str = "avset-";
/// What AvailabilitySets say, and what they lend.
#[derive(Default)]
pub(crate) struct Availability {
    /// By name, over time; `None` while one does not exist, or is being deleted.
    pub(super) sets: BTreeMap<String, History<Option<Asked>>>,
    /// What is lent, by AvailabilitySet and member.
    pub(super) loans: BTreeMap<(String, String), u64>,
    /// Evictions that were granted within a loan, and whose pods are not replaced, by AvailabilitySet and member.
    pub(super) evicted: BTreeMap<(String, String), u64>,
}

/// What an AvailabilitySet asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) budget: u64,
    pub(super) is_one_at_a_time: bool,
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
    pub(super) fn budget_changed(&mut self, member: &str, change: &Change) {
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
    pub(super) fn are_missing(&mut self, set: &str, member: &str, missing: u64) {
        let key = (set.to_owned(), member.to_owned());
        if let Some(evicted) = self.evicted.get_mut(&key) {
            *evicted = missing.min(*evicted);
        }
    }

    /// What it has asked for since then; `None` if it did not exist all the time.
    pub(super) fn asked_since(&self, set: &str, since: Instant) -> Option<Asked> {
        let asked = self.sets.get(set)?.since(since).copied();
        let asked: Vec<Asked> = asked.collect::<Option<_>>()?;
        asked.into_iter().reduce(|one, other| Asked {
            budget: one.budget.max(other.budget),
            is_one_at_a_time: one.is_one_at_a_time && other.is_one_at_a_time,
        })
    }

    /// By member: what is lent to it, and how many pods were evicted and are not replaced.
    pub(super) fn used(&self, set: &str) -> BTreeMap<&str, (u64, u64)> {
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

pub(super) fn loan(budget: &Value) -> u64 {
    budget["spec"]["maxUnavailable"].as_u64().unwrap_or(0)
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
