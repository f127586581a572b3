//! The MigrationPolicies of the cluster.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use controller_base::listing::Listing;
use fedrs_api::{ValidLocalReplicaSet, ValidMigrationPolicy};
use reflector::ResourceVersion;

use crate::{
    key::id,
    migration_object::{Policy, PolicyObject},
};

/// Those of each namespace, by name.
#[derive(Debug, Default)]
pub(super) struct Policies {
    known: HashMap<String, BTreeMap<String, Policy>>,
    pub(super) listing: Listing,
}

impl Policies {
    /// That of a set: the one that it names, or the first that selects it. `Err` says why the one that it names can't be used.
    pub(super) fn of(
        &self,
        set: &ValidLocalReplicaSet,
    ) -> Result<Option<Arc<ValidMigrationPolicy>>, String> {
        let Some(name) = &set.migration_policy else {
            let first = self.first(&set.namespace, &set.labels);
            return Ok(first.map(|(_, policy)| Arc::clone(policy)));
        };
        match self.named(&set.namespace, name) {
            Some(Policy {
                valid: Ok(valid), ..
            }) => Ok(Some(Arc::clone(valid))),
            Some(Policy {
                valid: Err(errors), ..
            }) => {
                let error = errors.first().map(ToString::to_string).unwrap_or_default();
                Err(format!("MigrationPolicy {name} is invalid: {error}"))
            }
            None => Err(format!("there is no MigrationPolicy {name}")),
        }
    }

    /// The first by name that selects a set with these labels.
    pub(super) fn first(
        &self,
        namespace: &str,
        labels: &BTreeMap<String, String>,
    ) -> Option<(&str, &Arc<ValidMigrationPolicy>)> {
        let policies = self.known.get(namespace).into_iter().flatten();
        let mut valid =
            policies.filter_map(|(name, policy)| Some((&**name, policy.valid.as_ref().ok()?)));
        valid.find(|(_, policy)| policy.selects(labels))
    }

    /// The one of this name.
    pub(super) fn named(&self, namespace: &str, name: &str) -> Option<&Policy> {
        self.known.get(namespace)?.get(name)
    }

    /// Whether one of them says who is notified.
    pub(super) fn notify_anybody(&self) -> bool {
        let mut policies = self.known.values().flat_map(BTreeMap::values);
        policies.any(|policy| policy.valid.as_ref().is_ok_and(|of| of.notify.is_some()))
    }

    /// Whether something changes for sets of its namespace.
    pub(super) fn apply(&mut self, object: &PolicyObject) -> bool {
        let (namespace, name) = object.id();
        self.listing.show(&id(namespace, name));
        let policies = self.known.entry(namespace.to_owned()).or_default();
        let policy = object.policy();
        let is_news = policies.get(name).is_none_or(|known| {
            ResourceVersion::parse(&known.version)
                .is_older_than(ResourceVersion::parse(&policy.version))
        });
        if is_news {
            policies.insert(name.to_owned(), policy);
        }
        is_news
    }

    /// Whether it was known.
    pub(super) fn remove(&mut self, namespace: &str, name: &str) -> bool {
        let policies = self.known.get_mut(namespace);
        policies.is_some_and(|policies| policies.remove(name).is_some())
    }

    /// Those that a complete list, as of this version, did not show: namespaces and names.
    pub(super) fn unlisted(&mut self, as_of: &str) -> Vec<(String, String)> {
        let known = self.known.iter().flat_map(|(namespace, policies)| {
            let of_name = move |(name, policy)| (namespace, name, policy);
            policies.iter().map(of_name)
        });
        let known = known.map(|(namespace, name, policy): (&String, &String, &Policy)| {
            let object = (namespace.clone(), name.clone());
            (object, id(namespace, name), &*policy.version)
        });
        self.listing.gone(as_of, known)
    }
}
