//! The PodDisruptionBudgets of the cluster.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use controller_base::listing::Listing;
use reflector::ResourceVersion;
use replica_set_controller::{ObservedBudget, budget_name};

use crate::key::id;

/// Those of each namespace, by name.
#[derive(Debug, Default)]
pub(super) struct Budgets {
    known: HashMap<String, BTreeMap<String, Arc<ObservedBudget>>>,
    /// The names of those that belong to no set, by namespace.
    foreign: HashMap<String, BTreeSet<String>>,
    pub(super) listing: Listing,
}

impl Budgets {
    /// Those of these sets of a namespace, and those that belong to no set.
    pub(super) fn of<'a>(
        &self,
        namespace: &str,
        sets: impl Iterator<Item = &'a str>,
    ) -> Vec<Arc<ObservedBudget>> {
        let Some(known) = self.known.get(namespace) else {
            return Vec::new();
        };
        let mut names: BTreeSet<String> = sets.map(budget_name).collect();
        names.extend(self.foreign.get(namespace).into_iter().flatten().cloned());
        let budgets = names.iter().filter_map(|name| known.get(name));
        budgets.map(Arc::clone).collect()
    }

    /// Whether something changes for sets of its namespace.
    pub(super) fn apply(&mut self, budget: ObservedBudget) -> bool {
        let (namespace, name) = (budget.namespace().to_owned(), budget.name().to_owned());
        self.listing.show(&id(&namespace, &name));
        let budgets = self.known.entry(namespace).or_default();
        let known = budgets.get(&name);
        let is_news = known.is_none_or(|known| {
            ResourceVersion::parse(known.resource_version())
                .is_older_than(ResourceVersion::parse(budget.resource_version()))
        });
        if !is_news {
            return false;
        }
        let concerns = known.is_none_or(|known| budget.is_news_after(known));
        let foreign = self.foreign.entry(budget.namespace().to_owned());
        match budget.set() {
            Some(_) => _ = foreign.or_default().remove(&name),
            None => _ = foreign.or_default().insert(name.clone()),
        }
        budgets.insert(name, Arc::new(budget));
        concerns
    }

    /// Whether it was known.
    pub(super) fn remove(&mut self, namespace: &str, name: &str) -> bool {
        let Some(budgets) = self.known.get_mut(namespace) else {
            return false;
        };
        let removed = budgets.remove(name);
        if let Some(foreign) = self.foreign.get_mut(namespace) {
            foreign.remove(name);
        }
        if budgets.is_empty() {
            self.known.remove(namespace);
            self.foreign.remove(namespace);
        }
        removed.is_some()
    }

    /// Those that a complete list, as of this version, did not show: namespaces and names.
    pub(super) fn unlisted(&mut self, as_of: &str) -> Vec<(String, String)> {
        let all = self.known.values().flat_map(BTreeMap::values);
        let known = all.map(|budget| {
            let (namespace, name) = (budget.namespace(), budget.name());
            let object = (namespace.to_owned(), name.to_owned());
            (object, id(namespace, name), budget.resource_version())
        });
        self.listing.gone(as_of, known)
    }
}
