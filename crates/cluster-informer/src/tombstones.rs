//! Tombstones: local ReplicaSets that are known to be deleted. Without them a late event, or the late response to one of
//! our writes, would bring a deleted workload back.

use std::collections::{HashMap, VecDeque};

use reflector::{ResourceVersion, Uid};

/// Events and responses are at most seconds late. A tombstone is lost early only if this many workloads are deleted in the
/// meantime.
const CAPACITY: usize = 4096;

/// The newest [`CAPACITY`] tombstones, by uid.
#[derive(Debug, Default)]
pub(crate) struct Tombstones {
    by_uid: HashMap<Uid, Tombstone>,
    order: VecDeque<Uid>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Tombstone {
    pub(crate) cause: Cause,
    /// The number of the newest list at the time.
    pub(crate) epoch: u32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Cause {
    /// A list or watch showed it deleted, or without our labels, at this version: a newer event can bring it back.
    Observed(ResourceVersion),
    /// The API server accepted our delete request. Finalizers may keep the object with a deletion timestamp, but it never
    /// exists without one again.
    DeletedByUs,
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

    pub(crate) fn remove(&mut self, uid: Uid) {
        if self.by_uid.remove(&uid).is_some() {
            self.order.retain(|known| *known != uid);
        }
    }

    /// The bytes that they take.
    pub(crate) fn bytes(&self) -> usize {
        // Both tables have up to twice the room that they need.
        self.order.len() * 2 * (size_of::<(Uid, Tombstone)>() + 1 + size_of::<Uid>())
    }

    pub(crate) fn get(&self, uid: Uid) -> Option<Tombstone> {
        self.by_uid.get(&uid).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_is_removed_first() {
        let mut tombstones = Tombstones::default();
        let uid = |number: usize| Uid::of(&number.to_string());
        for number in 0..=CAPACITY {
            tombstones.insert(
                uid(number),
                Tombstone {
                    cause: Cause::DeletedByUs,
                    epoch: 0,
                },
            );
            tombstones.insert(
                uid(number),
                Tombstone {
                    cause: Cause::DeletedByUs,
                    epoch: 1,
                },
            );
        }
        assert!(tombstones.get(uid(0)).is_none());
        assert!((1..=CAPACITY).all(|number| tombstones.get(uid(number)).is_some()));
    }
}
