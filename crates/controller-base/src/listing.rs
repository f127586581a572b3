//! What a list has shown so far, while it is not complete.

use std::{borrow::Borrow, collections::HashSet, hash::Hash};

use reflector::ResourceVersion;

/// The progress of listing one kind.
#[derive(Debug)]
pub struct Listing<K = String> {
    shown: HashSet<K>,
    is_active: bool,
    has_unreadable: bool,
}

impl<K> Default for Listing<K> {
    fn default() -> Self {
        Self {
            shown: HashSet::new(),
            is_active: false,
            has_unreadable: false,
        }
    }
}

impl<K: Eq + Hash> Listing<K> {
    /// A list begins.
    pub fn begin(&mut self) {
        *self = Self {
            is_active: true,
            ..Self::default()
        };
    }

    /// Whether a list has begun that is not complete.
    pub fn is_active(&self) -> bool {
        self.is_active
    }

    /// An object can't be read: it may be any of those that the list does not show.
    pub fn unreadable(&mut self) {
        self.has_unreadable = true;
    }

    /// An object is shown, by a list or by a watch.
    pub fn show<Q: ToOwned<Owned = K> + ?Sized>(&mut self, id: &Q)
    where
        K: Borrow<Q>,
    {
        if self.is_active {
            self.shown.insert(id.to_owned());
        }
    }

    /// The list is complete, as of this version. Returns those of `known`, each with its id and version, that are gone: the list did not show
    /// them, and they are not newer.
    pub fn gone<'k, T>(
        &mut self,
        as_of: &str,
        known: impl Iterator<Item = (T, K, &'k str)>,
    ) -> Vec<T> {
        let Some(shown) = self.end() else {
            return Vec::new();
        };
        let as_of = ResourceVersion::parse(as_of);
        let gone = known.filter(|(_, id, version)| {
            let is_newer = as_of.is_older_than(ResourceVersion::parse(version));
            !is_newer && !shown.contains(id)
        });
        gone.map(|(object, ..)| object).collect()
    }

    /// The list is complete. Returns what it has shown; `None` if nothing may count as gone.
    pub fn end(&mut self) -> Option<HashSet<K>> {
        let listing = std::mem::take(self);
        (!listing.has_unreadable).then_some(listing.shown)
    }
}
