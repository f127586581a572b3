//! Which sets are known to be gone, so that late news of them, by an older event or by the answer to a write that
//! was overtaken, doesn't bring them back.

use std::collections::{HashMap, VecDeque};

use reflector::{ResourceVersion, Uid};

/// Late news are seconds late. A member would have to lose this many sets meanwhile for one to be forgotten early.
const CAPACITY: usize = 4096;

/// By uid, the newest [`CAPACITY`].
#[derive(Debug, Default)]
pub(crate) struct Tombstones {
    by_uid: HashMap<Uid, Tombstone>,
    order: VecDeque<Uid>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Tombstone {
    pub(crate) cause: Cause,
    /// The number of the list at the time.
    pub(crate) epoch: u32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Cause {
    /// The member showed it gone, or without our labels, at this version: newer news can bring it back.
    Shown(ResourceVersion),
    /// We deleted it: it can be seen going (finalizers), but never well again.
    Deleted,
}

impl Tombstones {
    pub(crate) fn insert(&mut self, uid: Uid, tombstone: Tombstone) {
        if self.by_uid.insert(uid, tombstone).is_none() {
            self.order.push_back(uid);
        }
        if self.order.len() > CAPACITY
            && let Some(oldest) = self.order.pop_front()
        {
            self.by_uid.remove(&oldest);
        }
    }

    pub(crate) fn get(&self, uid: Uid) -> Option<Tombstone> {
        self.by_uid.get(&uid).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_is_forgotten_first() {
        let mut tombstones = Tombstones::default();
        let uid = |number: usize| Uid::of(&number.to_string());
        for number in 0..=CAPACITY {
            tombstones.insert(
                uid(number),
                Tombstone {
                    cause: Cause::Deleted,
                    epoch: 0,
                },
            );
            tombstones.insert(
                uid(number),
                Tombstone {
                    cause: Cause::Deleted,
                    epoch: 1,
                },
            );
        }
        assert!(tombstones.get(uid(0)).is_none());
        assert!((1..=CAPACITY).all(|number| tombstones.get(uid(number)).is_some()));
    }
}
