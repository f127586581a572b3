//! The objects of one kind in one member, as a watch has shown them.

use std::{collections::HashMap, hash::Hash, sync::Arc};

use controller_base::listing::Listing;

/// The objects of one kind.
#[derive(Debug)]
pub(crate) struct Table<K, T> {
    objects: HashMap<K, Arc<T>>,
    listing: Listing<K>,
    /// Whether a list has been complete since the member's client is in use.
    pub(crate) is_listed: bool,
}

impl<K, T> Default for Table<K, T> {
    fn default() -> Self {
        Self {
            objects: HashMap::new(),
            listing: Listing::default(),
            is_listed: false,
        }
    }
}

impl<K: Eq + Hash + Clone, T: PartialEq> Table<K, T> {
    pub(crate) fn get(&self, key: &K) -> Option<&Arc<T>> {
        self.objects.get(key)
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &K> {
        self.objects.keys()
    }

    pub(crate) fn len(&self) -> usize {
        self.objects.len()
    }

    /// An object exists. Returns the one before, if this one is another.
    pub(crate) fn apply(&mut self, key: K, object: T) -> Applied<T> {
        self.listing.show(&key);
        if self
            .objects
            .get(&key)
            .is_some_and(|known| **known == object)
        {
            return Applied::Same;
        }
        Applied::Changed(self.objects.insert(key, Arc::new(object)))
    }

    pub(crate) fn remove(&mut self, key: &K) -> Option<Arc<T>> {
        self.objects.remove(key)
    }

    pub(crate) fn begin(&mut self) {
        self.listing.begin();
    }

    /// An object can't be read: it may be any of those that the list does not show.
    pub(crate) fn unreadable(&mut self) {
        self.listing.unreadable();
    }

    /// The list is complete. Returns the objects that it has not shown; they are still there.
    pub(crate) fn end(&mut self) -> Vec<K> {
        self.is_listed = true;
        let Some(shown) = self.listing.end() else {
            return Vec::new();
        };
        let gone = self.objects.keys().filter(|&key| !shown.contains(key));
        gone.cloned().collect()
    }
}

/// What became of an object that a watch has shown.
pub(crate) enum Applied<T> {
    /// It is as it was.
    Same,
    /// It is new, or was this one.
    Changed(Option<Arc<T>>),
}
