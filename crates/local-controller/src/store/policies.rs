//! The MigrationPolicies of the cluster.

use std::collections::{BTreeMap, HashMap};

use controller_base::listing::Listing;
use fedrs_api::ValidLocalReplicaSet;
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
    /// That of a set, with its name: the one that it names, or the first that selects it. `Err` if there is none of the name that it names.
    pub(super) fn of(
        &self,
        set: &ValidLocalReplicaSet,
    ) -> Result<Option<(String, Policy)>, String> {
        let known = self.known.get(&set.namespace);
        let found = |(name, policy): (&String, &Policy)| (name.clone(), policy.clone());
        let Some(name) = &set.migration_policy else {
            let mut policies = known.into_iter().flatten();
            let selects = |policy: &Policy| {
                let valid = policy.valid.as_ref();
                valid.is_ok_and(|valid| valid.selects(&set.labels))
            };
            return Ok(policies.find(|(_, policy)| selects(policy)).map(found));
        };
        let policy = known.and_then(|known| known.get_key_value(name));
        let policy = policy.map(found).map(Some);
        policy.ok_or_else(|| format!("there is no MigrationPolicy {name}"))
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
        let Some(shown) = self.listing.end() else {
            return Vec::new();
        };
        let as_of = ResourceVersion::parse(as_of);
        let mut unlisted = Vec::new();
        for (namespace, policies) in &self.known {
            let gone = policies.iter().filter(|(name, policy)| {
                let is_newer = as_of.is_older_than(ResourceVersion::parse(&policy.version));
                !is_newer && !shown.contains(&id(namespace, name))
            });
            unlisted.extend(gone.map(|(name, _)| (namespace.clone(), name.clone())));
        }
        unlisted
    }
}
