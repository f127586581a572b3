//! Looks names up in a sorted map: nearly free where they come in the map's order.
//!
//! Preferences, present replicas and capacities are maps by cluster name, and lists of clusters are mostly sorted. For a
//! thousand clusters, searching each map for each name takes longer than to lay the replicas out.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, btree_map::Range},
    ops::Bound,
};

/// Maps up to this size are one node: searching that is as quick as anything.
const ONE_NODE: usize = 11;

/// Steps from entry to entry before the map is searched instead: a search compares about as many names.
const STEPS: usize = 4;

/// Looks names up in a map, in any order; quickest in the map's own.
///
/// ```
/// use std::collections::BTreeMap;
/// use federated_scheduler::Lookup;
///
/// let capacity = BTreeMap::from([("asia".to_owned(), 4), ("eu".to_owned(), 7)]);
/// let mut capacity = Lookup::new(&capacity);
/// let found = ["asia", "eu", "us"].map(|name| capacity.get(name).copied());
/// assert_eq!(found, [Some(4), Some(7), None]);
/// ```
#[derive(Clone, Debug)]
pub struct Lookup<'a, V> {
    map: &'a BTreeMap<String, V>,
    /// The entry before `next`.
    last: Option<&'a str>,
    next: Option<(&'a str, &'a V)>,
    /// What comes after that; `None` before the first search.
    following: Option<Range<'a, String, V>>,
}

impl<'a, V> Lookup<'a, V> {
    /// Looks names up in `map`.
    #[must_use]
    pub fn new(map: &'a BTreeMap<String, V>) -> Self {
        Self {
            map,
            last: None,
            next: None,
            following: None,
        }
    }

    /// The value for `name`.
    #[inline]
    pub fn get(&mut self, name: &str) -> Option<&'a V> {
        if self.map.len() <= ONE_NODE {
            return self.map.get(name);
        }
        if let Some((key, value)) = self.next
            && key == name
        {
            self.step();
            return Some(value);
        }
        if self.following.is_none() || self.last.is_some_and(|last| last >= name) {
            return self.search(name);
        }
        // All entries before the next one have lesser names.
        for _ in 0..STEPS {
            let (key, value) = self.next?;
            match key.cmp(name) {
                Ordering::Less => self.step(),
                Ordering::Equal => return Some(value),
                Ordering::Greater => return None,
            }
        }
        self.search(name)
    }

    fn step(&mut self) {
        self.last = self.next.map(|(key, _)| key);
        self.next = self
            .following
            .as_mut()
            .and_then(Range::next)
            .map(|(key, value)| (key.as_str(), value));
    }

    /// Searches the map, and goes on behind what is found.
    fn search(&mut self, name: &str) -> Option<&'a V> {
        let from_name = (Bound::Included(name), Bound::Unbounded);
        self.following = Some(self.map.range::<str, _>(from_name));
        self.step();
        let found = self.next;
        self.step();
        if found.is_none() {
            self.last = self.map.last_key_value().map(|(key, _)| key.as_str());
        }
        found
            .filter(|(key, _)| *key == name)
            .map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn finds_what_the_map_finds(
            entries in prop::collection::btree_map("[ab]{0,5}", any::<u8>(), 0..40),
            names in prop::collection::vec("[ab]{0,5}", 0..60),
            sorted in any::<bool>(),
        ) {
            let mut names = names;
            if sorted {
                names.sort();
            }
            let mut lookup = Lookup::new(&entries);
            for name in names {
                prop_assert_eq!(lookup.get(&name), entries.get(&name), "{}", name);
            }
        }
    }
}
