//! The AvailabilitySets of a namespace, which may select the same pods, as the watch shows them.

use std::{collections::BTreeMap, sync::Arc};

use fedrs_api::{
    AvailabilitySet, ValidAvailabilitySet,
    selector::{self, LabelSelector},
};
use kube::ResourceExt;
use tokio::sync::watch;

/// What other sets have to know of an AvailabilitySet.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Neighbour {
    /// It selects these pods.
    Valid(LabelSelector),
    /// It changes nothing in members: what it has lent stays.
    Invalid,
    /// It removes what it has lent.
    Deleted,
}

impl Neighbour {
    fn of(set: &AvailabilitySet) -> Self {
        if set.metadata.deletion_timestamp.is_some() {
            return Self::Deleted;
        }
        match ValidAvailabilitySet::check(&set.spec) {
            Ok(valid) => Self::Valid(valid.selector),
            Err(_) => Self::Invalid,
        }
    }
}

/// All AvailabilitySets of one namespace and federation, by name. What is not in it does not exist.
pub(crate) type Neighbours = BTreeMap<String, Neighbour>;

/// A set is its name and what it selects. Whether the first one contains the second one: of equal ones, the first by name does.
pub(crate) fn includes(wide: (&str, &LabelSelector), narrow: (&str, &LabelSelector)) -> bool {
    let is_equal = || selector::contains(narrow.1, wide.1);
    selector::contains(wide.1, narrow.1) && (wide.0 < narrow.0 || !is_equal())
}

/// The neighbours in all namespaces.
#[derive(Default)]
pub(crate) struct AllNeighbours {
    known: watch::Sender<Known>,
}

#[derive(Clone, Default)]
struct Known {
    /// Whether the first list is complete. Before, a set that is missing may exist.
    is_listed: bool,
    by_namespace: BTreeMap<String, Arc<Neighbours>>,
}

impl AllNeighbours {
    /// A set has appeared or changed.
    pub(crate) fn put(&self, set: &AvailabilitySet) {
        let neighbour = Neighbour::of(set);
        self.known.send_modify(|known| {
            let namespace = set.namespace().unwrap_or_default();
            let neighbours = known.by_namespace.entry(namespace).or_default();
            let name = set.name_any();
            // Statuses change all the time, and who has a copy would look again.
            if neighbours.get(&name) != Some(&neighbour) {
                Arc::make_mut(neighbours).insert(name, neighbour);
            }
        });
    }

    /// A set is gone.
    pub(crate) fn remove(&self, set: &AvailabilitySet) {
        self.known.send_modify(|known| {
            let namespace = set.namespace().unwrap_or_default();
            if let Some(neighbours) = known.by_namespace.get_mut(&namespace) {
                Arc::make_mut(neighbours).remove(&set.name_any());
                if neighbours.is_empty() {
                    known.by_namespace.remove(&namespace);
                }
            }
        });
    }

    /// The list is complete.
    pub(crate) fn set_listed(&self) {
        self.known.send_modify(|known| known.is_listed = true);
    }

    /// Waits until the first list is complete.
    pub(crate) async fn listed(&self) {
        let mut known = self.known.subscribe();
        // The sender is ours.
        _ = known.wait_for(|known| known.is_listed).await;
    }

    /// Those of a namespace now.
    pub(crate) fn of(&self, namespace: &str) -> Arc<Neighbours> {
        let known = self.known.borrow();
        known
            .by_namespace
            .get(namespace)
            .cloned()
            .unwrap_or_default()
    }
}
