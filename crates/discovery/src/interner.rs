//! One copy of equal values: the pods of a set have the same labels and ports.

use std::{collections::BTreeSet, sync::Arc};

/// Values that are in use, each once.
#[derive(Debug)]
pub(crate) struct Interner<T> {
    values: BTreeSet<Arc<T>>,
    /// At which number of values those that nobody uses any more are forgotten.
    sweep_at: usize,
}

/// The least number of values at which unused ones are forgotten.
const FIRST_SWEEP: usize = 64;

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Self {
            values: BTreeSet::new(),
            sweep_at: FIRST_SWEEP,
        }
    }
}

impl<T: Ord> Interner<T> {
    /// The one copy of `value`.
    pub(crate) fn get(&mut self, value: T) -> Arc<T> {
        if let Some(known) = self.values.get(&value) {
            return Arc::clone(known);
        }
        if self.values.len() >= self.sweep_at {
            self.values.retain(|value| Arc::strong_count(value) > 1);
            self.sweep_at = FIRST_SWEEP.max(2 * self.values.len());
        }
        let value = Arc::new(value);
        self.values.insert(Arc::clone(&value));
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_are_one_and_unused_ones_are_forgotten() {
        let mut interner = Interner::default();
        let kept = interner.get(0);
        assert!(Arc::ptr_eq(&kept, &interner.get(0)));
        for value in 1..10_000 {
            drop(interner.get(value));
        }
        assert!(interner.values.len() <= FIRST_SWEEP);
        assert!(Arc::ptr_eq(&kept, &interner.get(0)));
    }
}
