//! The local sets of one member: what the watch shows and what our own writes returned, whichever is newer.
//!
//! Three sources, one order: a list is believed over everything known before it began; apart from that the higher
//! resourceVersion wins, be it of an event or of the answer to a write.

use std::collections::BTreeMap;

use fedrs_api::SetKey;
use reflector::{ResourceVersion, Uid};

use crate::{
    tombstones::{Cause, Tombstone, Tombstones},
    view::{Change, SetFact},
};

/// Sets by key.
#[derive(Debug, Default)]
pub(crate) struct SetTable {
    sets: BTreeMap<SetKey, Entry>,
    gone: Tombstones,
    /// Number of the newest list.
    epoch: u32,
    listing: bool,
}

#[derive(Debug)]
struct Entry {
    fact: SetFact,
    version: ResourceVersion,
    /// The list in which, or the watch after which, the member last showed it; `None` if only a write returned it.
    shown: Option<u32>,
    /// The same, or our last write.
    touched: u32,
    /// What notices were given of: a write's answer may already show what the watch tells us later.
    announced: Status,
}

/// What a set reports of its pods.
#[derive(Debug, Default, PartialEq, Eq)]
struct Status {
    observed_generation: i64,
    counts: [u32; 4],
    failing: bool,
    deleting: bool,
}

impl Status {
    fn of(fact: &SetFact) -> Self {
        Self {
            observed_generation: fact.observed_generation,
            counts: [fact.current, fact.ready, fact.fully_labeled, fact.available],
            failing: fact.replica_failure.is_some(),
            deleting: fact.deleting,
        }
    }

    fn available(&self) -> u32 {
        self.counts[3]
    }
}

impl SetTable {
    pub(crate) fn len(&self) -> usize {
        self.sets.len()
    }

    pub(crate) fn get(&self, key: &SetKey) -> Option<&SetFact> {
        self.sets.get(key).map(|entry| &entry.fact)
    }

    /// All sets, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&SetKey, &SetFact)> {
        self.sets.iter().map(|(key, entry)| (key, &entry.fact))
    }

    /// A list begins: sets that it doesn't show are swept by [`listed`](Self::listed).
    pub(crate) fn restarted(&mut self) {
        self.epoch = self.epoch.wrapping_add(1);
        self.listing = true;
    }

    /// The list is complete as of `version`: removes what it didn't show, but for what we wrote after it was taken.
    pub(crate) fn listed(&mut self, version: ResourceVersion) -> Vec<(SetKey, Change)> {
        self.listing = false;
        let Self {
            sets, gone, epoch, ..
        } = self;
        let mut lost = Vec::new();
        sets.retain(|key, entry| {
            let written_later = entry.touched == *epoch && !entry.version.is_older_than(version);
            let keep = entry.shown == Some(*epoch) || (written_later && entry.version != version);
            if !keep {
                let cause = Cause::Shown(if entry.version.is_older_than(version) {
                    version
                } else {
                    entry.version
                });
                gone.insert(
                    entry.fact.id(),
                    Tombstone {
                        cause,
                        epoch: *epoch,
                    },
                );
                lost.push((key.clone(), Change::SetDrifted));
            }
            keep
        });
        lost
    }

    /// The member shows `fact`, by its list or its watch; what that means for those who look after the set.
    pub(crate) fn applied(&mut self, mut fact: SetFact) -> Option<Change> {
        let version = ResourceVersion::parse(&fact.resource_version);
        let (epoch, listing) = (self.epoch, self.listing);
        if self.refuses(&fact, version) {
            return None;
        }
        let announced = Status::of(&fact);
        let Some(entry) = self.sets.get_mut(&fact.key) else {
            let entry = Entry {
                version,
                shown: Some(epoch),
                touched: epoch,
                announced,
                fact,
            };
            self.sets.insert(entry.fact.key.clone(), entry);
            return Some(Change::SetChanged);
        };
        let believed = listing && entry.touched != epoch;
        entry.shown = Some(epoch);
        entry.touched = epoch;
        if !believed && version.is_older_than(entry.version) {
            entry.lower_floor(&fact);
            return None;
        }
        let change = entry.change_to(&fact, &announced);
        entry.replace(&mut fact);
        *entry = Entry {
            version,
            shown: Some(epoch),
            touched: epoch,
            announced,
            fact,
        };
        change
    }

    /// The member shows that the set is gone, or no longer has our labels.
    pub(crate) fn deleted(
        &mut self,
        key: &SetKey,
        uid: Uid,
        version: ResourceVersion,
    ) -> Option<Change> {
        let entry = self.sets.get(key).filter(|entry| entry.fact.id() == uid);
        if entry.is_some_and(|entry| version.is_older_than(entry.version)) {
            return None;
        }
        let known = entry.is_some();
        if known {
            self.sets.remove(key);
        }
        // What we deleted ourselves stays so: its tombstone refuses more.
        if !matches!(
            self.gone.get(uid),
            Some(Tombstone {
                cause: Cause::Deleted,
                ..
            })
        ) {
            self.gone.insert(
                uid,
                Tombstone {
                    cause: Cause::Shown(version),
                    epoch: self.epoch,
                },
            );
        }
        known.then_some(Change::SetDrifted)
    }

    /// A set was shown that can't be read: what is known of it stays.
    pub(crate) fn kept(&mut self, uid: Uid) {
        let epoch = self.epoch;
        if let Some(entry) = self.sets.values_mut().find(|entry| entry.fact.id() == uid) {
            entry.shown = Some(epoch);
            entry.touched = epoch;
        }
    }

    /// The answer to our own write.
    pub(crate) fn observe(&mut self, mut fact: SetFact) {
        let version = ResourceVersion::parse(&fact.resource_version);
        if self.refuses_write(&fact, version) {
            return;
        }
        let epoch = self.epoch;
        let Some(entry) = self.sets.get_mut(&fact.key) else {
            let entry = Entry {
                version,
                shown: None,
                touched: epoch,
                announced: Status::default(),
                fact,
            };
            self.sets.insert(entry.fact.key.clone(), entry);
            return;
        };
        if version.is_older_than(entry.version) {
            entry.lower_floor(&fact);
            return;
        }
        entry.replace(&mut fact);
        entry.fact = fact;
        entry.version = version;
        entry.touched = epoch;
    }

    /// Our delete of the object with this uid succeeded.
    pub(crate) fn observe_deleted(&mut self, key: &SetKey, uid: Uid) {
        if self
            .sets
            .get(key)
            .is_some_and(|entry| entry.fact.id() == uid)
        {
            self.sets.remove(key);
        }
        self.gone.insert(
            uid,
            Tombstone {
                cause: Cause::Deleted,
                epoch: self.epoch,
            },
        );
    }

    fn refuses(&self, fact: &SetFact, version: ResourceVersion) -> bool {
        match self.gone.get(fact.id()) {
            None => false,
            Some(tombstone) if self.listing && tombstone.epoch != self.epoch => false,
            Some(Tombstone {
                cause: Cause::Deleted,
                ..
            }) => !fact.deleting,
            Some(Tombstone {
                cause: Cause::Shown(gone),
                ..
            }) => version == gone || version.is_older_than(gone),
        }
    }

    fn refuses_write(&self, fact: &SetFact, version: ResourceVersion) -> bool {
        match self.gone.get(fact.id()) {
            None => false,
            Some(Tombstone {
                cause: Cause::Deleted,
                ..
            }) => true,
            // Whether our write came later can be told by the versions alone; in doubt the watch will show it.
            Some(Tombstone {
                cause: Cause::Shown(gone),
                ..
            }) => !gone.is_older_than(version),
        }
    }
}

impl Entry {
    fn change_to(&self, fact: &SetFact, status: &Status) -> Option<Change> {
        let old = &self.fact;
        let drifted = old.uid != fact.uid
            || old.spec_hash != fact.spec_hash
            || old.replicas != fact.replicas
            || old.federation != fact.federation
            || old.member != fact.member
            || old.controlled != fact.controlled;
        if drifted {
            Some(Change::SetDrifted)
        } else if status.available() > self.announced.available() {
            Some(Change::BecameReady)
        } else {
            (*status != self.announced || old.replica_failure != fact.replica_failure)
                .then_some(Change::SetChanged)
        }
    }

    /// Hands the floor on to the newer fact: the lowest replicas since the member's controller last caught up.
    fn replace(&self, newer: &mut SetFact) {
        let caught_up = newer.observed_generation >= newer.generation;
        newer.floor = if caught_up || newer.uid != self.fact.uid {
            newer.replicas
        } else {
            newer.replicas.min(self.fact.floor)
        };
    }

    /// An older state comes to light: if the member's controller may still act on it, it lowers the floor.
    fn lower_floor(&mut self, older: &SetFact) {
        let fact = &mut self.fact;
        if older.uid == fact.uid && older.generation > fact.observed_generation {
            fact.floor = fact.floor.min(older.replicas);
        }
    }
}

#[cfg(test)]
#[path = "sets_tests.rs"]
mod tests;
