//! The sets of the cluster, by key and by uid.

use std::{
    collections::{BTreeMap, HashMap},
    ops::Bound,
    sync::Arc,
};

use controller_base::{listing::Listing, selector_index::SelectorIndex};
use reflector::ResourceVersion;
use replica_set_controller::{ObservedPod, PodController};

use crate::{
    entry::{Entry, SetObject, ValidSet},
    key::{Changed, SetKey},
};

#[derive(Debug, Default)]
pub(super) struct Sets {
    entries: BTreeMap<SetKey, Arc<Entry>>,
    by_uid: HashMap<String, SetKey>,
    selectors: SelectorIndex<ValidSet>,
    /// How many have an invalid spec.
    invalid: usize,
    pub(super) listing: Listing,
}

impl Sets {
    pub(super) fn get(&self, key: &SetKey) -> Option<&Arc<Entry>> {
        self.entries.get(key)
    }

    pub(super) fn of_uid(&self, uid: &str) -> Option<&SetKey> {
        self.by_uid.get(uid)
    }

    /// All, and those with an invalid spec.
    pub(super) fn counts(&self) -> (usize, usize) {
        (self.entries.len(), self.invalid)
    }

    /// Sets whose selectors overlap with that of `key` (C5): all, or a few of them.
    pub(super) fn overlapping(&self, key: &SetKey) -> Vec<SetKey> {
        self.selectors.known(key).cloned().collect()
    }

    /// Those to reconcile, if what was known is older.
    pub(super) fn apply(&mut self, object: SetObject) -> Changed {
        let key = object.key();
        self.listing.show(&key.to_string());
        let known = self.entries.get(&key);
        let entry = Entry::of(object, known.map(|known| &**known));
        let is_news = known.is_none_or(|known| {
            known.uid != entry.uid
                || ResourceVersion::parse(&known.version)
                    .is_older_than(ResourceVersion::parse(&entry.version))
        });
        if !is_news {
            return Changed::new();
        }
        self.forget(&key);
        self.invalid += usize::from(entry.valid.is_err());
        let mut changed = match &entry.valid {
            Ok(valid) => self.selectors.insert(valid),
            Err(_) => self.selectors.remove(&key),
        };
        self.by_uid.insert(entry.uid.clone(), key.clone());
        self.entries.insert(key.clone(), Arc::new(entry));
        changed.insert(key);
        changed
    }

    /// Those to reconcile, if it was known.
    pub(super) fn remove(&mut self, key: &SetKey) -> Changed {
        if !self.forget(key) {
            return Changed::new();
        }
        let mut changed = self.selectors.remove(key);
        changed.insert(key.clone());
        changed
    }

    /// Removes the entry. Whether there was one.
    fn forget(&mut self, key: &SetKey) -> bool {
        let Some(removed) = self.entries.remove(key) else {
            return false;
        };
        self.by_uid.remove(&removed.uid);
        self.invalid -= usize::from(removed.valid.is_err());
        true
    }

    /// Those that a complete list, as of this version, did not show.
    pub(super) fn unlisted(&mut self, as_of: &str) -> Vec<SetKey> {
        let entries = self.entries.iter();
        let known = entries.map(|(key, entry)| (key.clone(), key.to_string(), &*entry.version));
        self.listing.gone(as_of, known)
    }

    /// The sets that a pod concerns: the one that controls it, or those that could adopt it.
    pub(super) fn concerned(&self, pod: &ObservedPod) -> Vec<SetKey> {
        match pod.controller() {
            PodController::Set(uid) => self.of_uid(uid).cloned().into_iter().collect(),
            PodController::Other => Vec::new(),
            PodController::Nobody => {
                let none = BTreeMap::new();
                let labels = pod.labels().unwrap_or(&none);
                let namespace = pod.namespace().into();
                let sets = self.selectors.selecting(&namespace, labels);
                sets.cloned().collect()
            }
        }
    }

    /// All sets of a namespace.
    pub(super) fn in_namespace(&self, namespace: &str) -> Changed {
        let sets = self.of_namespace(namespace);
        sets.map(|entry| entry.key.clone()).collect()
    }

    fn of_namespace<'a>(&'a self, namespace: &'a str) -> impl Iterator<Item = &'a Arc<Entry>> {
        let first = Bound::Included(SetKey::new(namespace, ""));
        let entries = self.entries.range((first, Bound::Unbounded));
        entries
            .take_while(move |(key, _)| &*key.namespace == namespace)
            .map(|(_, entry)| entry)
    }
}
