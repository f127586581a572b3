//! FederatedReplicaSets as the host last showed them, checked once when they change.

use std::{collections::BTreeMap, sync::Arc};

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
    pub(crate) wanted_spec_hash: u64,
}

/// All FederatedReplicaSets. One task writes, everybody reads.
#[derive(Debug, Default)]
pub(crate) struct HostStore {
    entries: RwLock<BTreeMap<SetKey, Arc<Entry>>>,
}

impl HostStore {
    pub(crate) fn get(&self, key: &SetKey) -> Option<Arc<Entry>> {
        self.entries.read().get(key).cloned()
    }

    /// All keys, in order.
    pub(crate) fn keys(&self) -> Vec<SetKey> {
        self.entries.read().keys().cloned().collect()
    }

    /// How many there are, and how many of them are invalid.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let entries = self.entries.read();
        (
            entries.len(),
            entries
                .values()
                .filter(|entry| entry.valid.is_err())
                .count(),
        )
    }

    /// Takes in `object`; answers its key, and whether anything but the status changed.
    pub(crate) fn apply(
        &self,
        mut object: FederatedReplicaSet,
        federation: &str,
    ) -> (SetKey, bool) {
        object.metadata.managed_fields = None;
        let key = key_of(&object);
        let mut entries = self.entries.write();
        let before = entries.get(&key);
        let changed = before.is_none_or(|before| differs(&before.object, &object));
        let (valid, wanted_spec_hash) = match before {
            // A status of ours came back: what was derived still holds.
            Some(before) if !changed => (before.valid.clone(), before.wanted_spec_hash),
            _ => derive(&object, federation),
        };
        let entry = Entry {
            object,
            valid,
            wanted_spec_hash,
        };
        entries.insert(key.clone(), Arc::new(entry));
        (key, changed)
    }

    pub(crate) fn remove(&self, key: &SetKey) {
        self.entries.write().remove(key);
    }
}

fn derive(
    object: &FederatedReplicaSet,
    federation: &str,
) -> (Result<ValidFrs, Vec<FieldError>>, u64) {
    let valid = ValidFrs::check(object);
    let hash = valid
        .as_ref()
        .map_or(0, |frs| manifest::spec_hash(frs, federation));
    (valid, hash)
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
