//! The preferences of a set as the scheduler takes them.

use std::collections::BTreeMap;

use federated_scheduler::Preference;
use fedrs_api::{ClusterPreference, Placement};

/// Finds the preferences of each cluster.
#[derive(Clone, Debug)]
pub struct Preferences<'a> {
    entries: &'a BTreeMap<String, ClusterPreference>,
    others: Option<Preference>,
}

impl<'a> Preferences<'a> {
    /// The preferences of a valid `placement`.
    #[must_use]
    pub fn of(placement: &'a Placement) -> Self {
        Self {
            entries: &placement.clusters,
            others: placement.clusters.get("*").map(preference),
        }
    }

    /// The preferences of `cluster`: its own entry, else `*`, else none (F3).
    #[must_use]
    pub fn of_cluster(&self, cluster: &str) -> Option<Preference> {
        self.entries.get(cluster).map(preference).or(self.others)
    }
}

fn preference(entry: &ClusterPreference) -> Preference {
    let count =
        |count: i64| u64::try_from(count).expect("preferences are checked not to be negative");
    Preference {
        min: count(entry.min_replicas),
        max: entry.max_replicas.map(count),
        weight: count(entry.weight),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f3_an_entry_of_its_own_holds_else_the_one_for_all() {
        let entry = |weight| ClusterPreference {
            weight,
            max_replicas: Some(weight + 1),
            ..ClusterPreference::default()
        };
        let mut placement = Placement {
            clusters: [("a".to_owned(), entry(1)), ("c".to_owned(), entry(3))].into(),
            ..Placement::default()
        };
        let weights = |placement: &Placement| {
            let preferences = Preferences::of(placement);
            ["c", "a", "b"].map(|name| {
                preferences
                    .of_cluster(name)
                    .map(|found| (found.weight, found.max))
            })
        };
        let (a, c) = (Some((1, Some(2))), Some((3, Some(4))));
        assert_eq!(weights(&placement), [c, a, None]);
        placement.clusters.insert("*".to_owned(), entry(0));
        assert_eq!(weights(&placement), [c, a, Some((0, Some(1)))]);
    }
}
