//! FederatedReplicaSets as the host last showed them, validated once when they change.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use fedrs_api::{FederatedReplicaSet, FieldError, SetKey, ValidFrs};
use parking_lot::RwLock;

use crate::manifest;

/// One FederatedReplicaSet, with what is derived from it.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// The object, without managed fields.
    pub(crate) object: FederatedReplicaSet,
    /// What it asks for, or what is wrong with it (F4).
    pub(crate) valid: Result<ValidFrs, Vec<FieldError>>,
    /// Hash of the local sets' spec as it would be written.
    pub(crate) desired_spec_hash: u64,
    /// Hash of the template; 0 while it is invalid.
    pub(crate) template: u32,
}

/// All FederatedReplicaSets. One task writes, everybody reads.
#[derive(Debug, Default)]
pub(crate) struct FrsStore {
    sets: RwLock<Sets>,
}

#[derive(Debug, Default)]
struct Sets {
    entries: BTreeMap<SetKey, Arc<Entry>>,
    /// For each set the others of its namespace that could adopt its pods, or it theirs. Symmetric.
    overlaps: BTreeMap<SetKey, BTreeSet<SetKey>>,
}

/// What an object that came in changed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Applied {
    /// Its key.
    pub(crate) key: SetKey,
    /// Whether anything but the status changed.
    pub(crate) changed: bool,
    /// Others whose selectors overlap with it now, or no longer do.
    pub(crate) overlapping: Vec<SetKey>,
}

impl FrsStore {
    pub(crate) fn get(&self, key: &SetKey) -> Option<Arc<Entry>> {
        self.sets.read().entries.get(key).cloned()
    }

    /// Names of the sets whose selectors overlap with that of `key`, in order.
    pub(crate) fn overlapping(&self, key: &SetKey) -> Vec<String> {
        let sets = self.sets.read();
        let names = sets.overlaps.get(key).into_iter().flatten();
        names.map(|other| other.name.to_string()).collect()
    }

    /// All keys, in order.
    pub(crate) fn keys(&self) -> Vec<SetKey> {
        self.sets.read().entries.keys().cloned().collect()
    }

    /// How many there are, and how many of them are invalid.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let sets = self.sets.read();
        let invalid = sets.entries.values().filter(|entry| entry.valid.is_err());
        (sets.entries.len(), invalid.count())
    }

    /// Takes in `object`.
    pub(crate) fn apply(&self, mut object: FederatedReplicaSet, federation: &str) -> Applied {
        object.metadata.managed_fields = None;
        let key = key_of(&object);
        let mut sets = self.sets.write();
        let before = sets.entries.get(&key);
        let changed = before.is_none_or(|before| differs(&before.object, &object));
        let entry = match before {
            // A status of ours came back: what was derived still holds.
            Some(before) if !changed => Entry {
                object,
                valid: before.valid.clone(),
                desired_spec_hash: before.desired_spec_hash,
                template: before.template,
            },
            _ => Entry::derive(object, federation),
        };
        let overlapping = if changed {
            sets.find_overlaps(&key, &entry)
        } else {
            Vec::new()
        };
        sets.entries.insert(key.clone(), Arc::new(entry));
        Applied {
            key,
            changed,
            overlapping,
        }
    }

    /// Forgets `key`; answers the sets that overlapped with it.
    pub(crate) fn remove(&self, key: &SetKey) -> Vec<SetKey> {
        let mut sets = self.sets.write();
        sets.entries.remove(key);
        sets.put_overlaps(key, BTreeSet::new())
    }
}

impl Sets {
    /// Looks for overlaps of `entry`; answers the sets whose own have changed by that.
    fn find_overlaps(&mut self, key: &SetKey, entry: &Entry) -> Vec<SetKey> {
        let first_of_namespace = SetKey::new(Arc::clone(&key.namespace), "");
        let overlaps = self
            .entries
            .range(first_of_namespace..)
            .take_while(|(other, _)| other.namespace == key.namespace)
            .filter(|(other, it)| *other != key && overlap(entry, it))
            .map(|(other, _)| other.clone());
        let overlaps = overlaps.collect();
        self.put_overlaps(key, overlaps)
    }

    fn put_overlaps(&mut self, key: &SetKey, now: BTreeSet<SetKey>) -> Vec<SetKey> {
        let before = self.overlaps.remove(key).unwrap_or_default();
        let changed: Vec<SetKey> = before.symmetric_difference(&now).cloned().collect();
        for other in &changed {
            let theirs = self.overlaps.entry(other.clone()).or_default();
            if !theirs.remove(key) {
                theirs.insert(key.clone());
            }
            if theirs.is_empty() {
                self.overlaps.remove(other);
            }
        }
        if !now.is_empty() {
            self.overlaps.insert(key.clone(), now);
        }
        changed
    }
}

/// Whether one of two sets could adopt the other's pods.
fn overlap(a: &Entry, b: &Entry) -> bool {
    let (Ok(a), Ok(b)) = (&a.valid, &b.valid) else {
        return false;
    };
    let takes = |a: &ValidFrs, b: &ValidFrs| {
        fedrs_api::selector::matches(&a.selector, &b.template.metadata.labels)
    };
    takes(a, b) || takes(b, a)
}

impl Entry {
    fn derive(object: FederatedReplicaSet, federation: &str) -> Self {
        let valid = ValidFrs::check(&object);
        let hashes = valid.as_ref().map(|frs| {
            let spec = manifest::spec_hash(frs, federation);
            (spec, manifest::template_hash(frs))
        });
        let (desired_spec_hash, template) = hashes.unwrap_or_default();
        Self {
            object,
            valid,
            desired_spec_hash,
            template,
        }
    }
}

/// Whether a check could come to another end: everything but the status and what every write changes.
fn differs(a: &FederatedReplicaSet, b: &FederatedReplicaSet) -> bool {
    let (a_meta, b_meta) = (&a.metadata, &b.metadata);
    a_meta.uid != b_meta.uid
        || a_meta.generation != b_meta.generation
        || a_meta.annotations != b_meta.annotations
        || a_meta.labels != b_meta.labels
        || a_meta.finalizers != b_meta.finalizers
        || a_meta.deletion_timestamp != b_meta.deletion_timestamp
}

/// The key of an object that came from the API server: it always has a name.
pub(crate) fn key_of(object: &FederatedReplicaSet) -> SetKey {
    SetKey::new(
        object.metadata.namespace.as_deref().unwrap_or_default(),
        object.metadata.name.as_deref().unwrap_or_default(),
    )
}
