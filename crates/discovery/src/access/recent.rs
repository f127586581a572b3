//! A map of what was used lately, of bounded size.

use std::{collections::HashMap, hash::Hash};

/// Keeps the entries that were used last: between half and all of `most`.
#[derive(Debug)]
pub(super) struct Recent<K, V> {
    most: usize,
    used: HashMap<K, V>,
    /// Those that are forgotten next, unless they are used before.
    before: HashMap<K, V>,
}

impl<K: Eq + Hash + Clone, V: Clone> Recent<K, V> {
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            used: HashMap::new(),
            before: HashMap::new(),
        }
    }

    /// The entry of a key, which is made if there is none.
    pub(super) fn get_or_insert_with(&mut self, key: &K, make: impl FnOnce() -> V) -> V {
        if let Some(value) = self.used.get(key) {
            return value.clone();
        }
        let value = self.before.remove(key).unwrap_or_else(make);
        if self.used.len() >= self.most / 2 {
            self.before = std::mem::take(&mut self.used);
        }
        self.used.insert(key.clone(), value.clone());
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_stays_and_the_rest_is_forgotten() {
        let mut recent = Recent::new(10);
        for number in 0..100 {
            recent.get_or_insert_with(&number, || number);
            assert_eq!(recent.get_or_insert_with(&0, || 100), 0, "after {number}");
            assert!(recent.used.len() + recent.before.len() <= 10);
        }
        assert_eq!(recent.get_or_insert_with(&1, || 101), 101);
    }
}
