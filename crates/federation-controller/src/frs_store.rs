//! FederatedReplicaSets as the host last showed them, validated once when they change.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use fedrs_api::{
    DeletionPolicy, FederatedReplicaSet, FederatedReplicaSetStatus, FieldError, MAX_ENTRIES,
    ObjectKey, ValidFrs, preferences_hash,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use parking_lot::RwLock;
use reflector::ResourceVersion;

use crate::{
    frs_object::FrsObject,
    manifest,
    selector_index::{SelectorIndex, overlap},
};

/// The most sets with an overlapping selector that are named.
const MAX_OVERLAPPING_NAMES: usize = 8;

/// One FederatedReplicaSet, with what is derived from it.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// The part of its metadata that is used.
    pub(crate) metadata: ObjectMeta,
    /// The status that the host has.
    pub(crate) status: Option<Arc<FederatedReplicaSetStatus>>,
    /// How often the host has shown an earlier version of the object than before, as after it was restored.
    pub(crate) times_restored: u32,
    /// The federation that handles it (F40).
    pub(crate) federation: String,
    /// What its deletion does in the members; `None` if the spec can't be read.
    pub(crate) deletion_policy: Option<DeletionPolicy>,
    /// Hash of its preferences annotation, also of an invalid one.
    pub(crate) preferences_hash: Option<String>,
    /// The valid spec, or what is wrong with it (F4).
    pub(crate) valid: Result<Arc<ValidFrs>, Vec<FieldError>>,
    /// Hash of the local ReplicaSets' spec as it would be written.
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
    entries: BTreeMap<ObjectKey, Arc<Entry>>,
    selectors: SelectorIndex,
}

/// What the application of an object changed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Applied {
    /// Its key.
    pub(crate) key: ObjectKey,
    /// Whether anything but the status changed.
    pub(crate) changed: bool,
    /// Others whose selectors overlap with it now, or no longer do.
    pub(crate) overlapping: Vec<ObjectKey>,
}

impl FrsStore {
    pub(crate) fn get(&self, key: &ObjectKey) -> Option<Arc<Entry>> {
        self.sets.read().entries.get(key).cloned()
    }

    /// Names of the sets that could adopt pods of `frs`, or whose pods it could adopt, in order. Of many, the first, and the
    /// number of the others.
    pub(crate) fn overlapping(&self, frs: &ValidFrs) -> Vec<String> {
        let overlapping = self.sets.read().overlapping(frs);
        let names = overlapping.iter().map(|key| key.name.to_string());
        let mut names: Vec<_> = names.take(MAX_OVERLAPPING_NAMES).collect();
        let more = overlapping.len() - names.len();
        if more > 0 {
            names.push(format!("{more} more"));
        }
        names
    }

    /// All keys, in order.
    pub(crate) fn keys(&self) -> Vec<ObjectKey> {
        self.sets.read().entries.keys().cloned().collect()
    }

    /// How many there are, and how many of them are invalid.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let sets = self.sets.read();
        let invalid = sets.entries.values().filter(|entry| entry.valid.is_err());
        (sets.entries.len(), invalid.count())
    }

    /// Stores `object`. It is validated before the lock is taken, because that may take long.
    pub(crate) fn apply(&self, object: FrsObject, federation: &str) -> Applied {
        let key = key_of(&object.metadata);
        let before = self.get(&key);
        let changed = before
            .as_ref()
            .is_none_or(|before| differs(&before.metadata, &object.metadata));
        let entry = match &before {
            // Only the status has changed, or what every write changes: what was derived still holds.
            Some(before) if !changed => Entry {
                metadata: object.metadata,
                status: object.status,
                ..Entry::clone(before)
            },
            Some(before) => {
                let restored = is_restored(&before.metadata, &object.metadata);
                Entry {
                    times_restored: before.times_restored + u32::from(restored),
                    ..Entry::derive(object, federation)
                }
            }
            None => Entry::derive(object, federation),
        };
        let mut overlapping = Vec::new();
        let mut sets = self.sets.write();
        if changed {
            let before = before
                .as_ref()
                .and_then(|before| before.valid.as_ref().ok());
            overlapping = sets.reindex(before.map(AsRef::as_ref), entry.valid.as_deref().ok());
        }
        sets.entries.insert(key.clone(), Arc::new(entry));
        Applied {
            key,
            changed,
            overlapping,
        }
    }

    /// Removes `key`. Returns the sets that overlapped with it.
    pub(crate) fn remove(&self, key: &ObjectKey) -> Vec<ObjectKey> {
        let mut sets = self.sets.write();
        let entry = sets.entries.remove(key);
        let frs = entry.as_ref().and_then(|entry| entry.valid.as_deref().ok());
        sets.reindex(frs, None)
    }
}

impl Sets {
    /// The sets whose pods `frs` could adopt, or which could adopt its pods.
    fn overlapping(&self, frs: &ValidFrs) -> BTreeSet<ObjectKey> {
        let candidates = self.selectors.candidates(frs).into_iter();
        let overlaps = |key: &&ObjectKey| {
            let other = self
                .entries
                .get(*key)
                .and_then(|entry| entry.valid.as_ref().ok());
            other.is_some_and(|other| overlap(frs, other))
        };
        candidates.filter(overlaps).cloned().collect()
    }

    /// Replaces `before` by `now` in the index. Returns the sets that overlap with one of them only.
    fn reindex(&mut self, before: Option<&ValidFrs>, now: Option<&ValidFrs>) -> Vec<ObjectKey> {
        let of = |sets: &Self, frs: Option<&ValidFrs>| {
            frs.map(|frs| sets.overlapping(frs)).unwrap_or_default()
        };
        let overlapped = of(self, before);
        if let Some(before) = before {
            self.selectors.remove(before);
        }
        if let Some(now) = now {
            self.selectors.insert(now);
        }
        let overlaps = of(self, now);
        overlapped
            .symmetric_difference(&overlaps)
            .cloned()
            .collect()
    }
}

impl Entry {
    pub(crate) fn derive(object: FrsObject, federation: &str) -> Self {
        let spec = object.read_spec();
        let FrsObject {
            metadata, status, ..
        } = object;
        // Others' finalizers that are not kept would be lost with ours.
        let is_complete = metadata.finalizers.iter().flatten().count() <= MAX_ENTRIES;
        let (own_federation, deletion_policy, valid) = match spec {
            Ok(spec) => {
                let (federation, policy) = (spec.federation.clone(), spec.deletion_policy);
                let frs = FederatedReplicaSet {
                    metadata: metadata.clone(),
                    spec,
                    status: None,
                };
                let policy = is_complete.then_some(policy);
                (federation, policy, ValidFrs::check(&frs))
            }
            Err(unreadable) => (unreadable.federation, None, Err(vec![unreadable.error])),
        };
        let hashes = valid.as_ref().map(|frs| {
            let spec = manifest::spec_hash(frs, federation);
            (spec, manifest::template_hash(frs))
        });
        let (desired_spec_hash, template) = hashes.unwrap_or_default();
        Self {
            preferences_hash: preferences_hash(&metadata),
            metadata,
            status,
            times_restored: 0,
            federation: own_federation,
            deletion_policy,
            valid: valid.map(Arc::new),
            desired_spec_hash,
            template,
        }
    }
}

/// Whether a check may decide otherwise: compares everything but the status and what every write changes.
fn differs(a: &ObjectMeta, b: &ObjectMeta) -> bool {
    a.uid != b.uid
        || a.generation != b.generation
        || a.annotations != b.annotations
        || a.labels != b.labels
        || a.finalizers != b.finalizers
        || a.deletion_timestamp != b.deletion_timestamp
        || is_restored(a, b)
}

/// Whether `now` is an earlier version of the object `before`: the host was restored from a backup.
fn is_restored(before: &ObjectMeta, now: &ObjectMeta) -> bool {
    let version = |metadata: &ObjectMeta| {
        ResourceVersion::parse(metadata.resource_version.as_deref().unwrap_or_default())
    };
    before.uid == now.uid && version(now).is_older_than(version(before))
}

/// The key of an object that came from the API server: it always has a name.
pub(crate) fn key_of(metadata: &ObjectMeta) -> ObjectKey {
    ObjectKey::new(
        metadata.namespace.as_deref().unwrap_or_default(),
        metadata.name.as_deref().unwrap_or_default(),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn object(name: &str, version: u64, spec: &Value) -> FrsObject {
        let metadata = json!({ "name": name, "namespace": "default", "uid": name, "generation": 1,
            "resourceVersion": version.to_string() });
        serde_json::from_value(json!({ "metadata": metadata, "spec": spec })).unwrap()
    }

    fn spec(app: &str) -> Value {
        json!({
            "selector": { "matchLabels": { "app": app } },
            "template": { "metadata": { "labels": { "app": app } }, "spec": { "containers": [{}] } },
        })
    }

    #[test]
    fn an_earlier_version_of_an_object_is_a_restored_host() {
        let store = FrsStore::default();
        for (version, times_restored, changed) in [
            (10, 0, true),
            (12, 0, false),
            (9, 1, true),
            (9, 1, false),
            (10, 1, false),
        ] {
            let applied = store.apply(object("web", version, &spec("web")), "");
            let entry = store.get(&applied.key).unwrap();
            assert_eq!(
                (entry.times_restored, applied.changed),
                (times_restored, changed),
                "{version}"
            );
        }
    }

    #[test]
    fn overlapping_sets_are_named_up_to_a_limit() {
        let store = FrsStore::default();
        let names = |store: &FrsStore, name: &str| {
            let entry = store.get(&ObjectKey::new("default", name)).unwrap();
            store.overlapping(entry.valid.as_ref().unwrap())
        };
        assert_eq!(store.apply(object("a", 1, &spec("x")), "").overlapping, []);
        let applied = store.apply(object("b", 1, &spec("x")), "");
        assert_eq!(applied.overlapping, [ObjectKey::new("default", "a")]);
        assert_eq!(names(&store, "a"), ["b"]);
        for name in 0..20 {
            store.apply(object(&format!("c{name:02}"), 1, &spec("x")), "");
        }
        let expected = [
            "b", "c00", "c01", "c02", "c03", "c04", "c05", "c06", "13 more",
        ];
        assert_eq!(names(&store, "a"), expected);
        assert_eq!(store.remove(&ObjectKey::new("default", "b")).len(), 21);
        assert_eq!(names(&store, "a").last().unwrap(), "12 more");
    }
}
