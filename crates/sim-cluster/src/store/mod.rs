//! The store of a cluster: objects, one growing resource version, and a bounded log of changes.
//!
//! ```text
//! put / remove -> version + 1 -> objects -> log of the collection -> watches notified
//! ```
//!
//! It validates nothing: [`crate::api`] decides what is written. Plain data without a lock.

mod change;
mod identity;
mod log;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::Instant;

pub use change::Change;
pub(crate) use change::to_json;
pub(crate) use identity::Identities;
pub(crate) use log::{Log, TooOld};

use crate::object::Object;
use crate::resources::Kind;

/// The default for the most changes of a collection from which watches can resume: a thousand pods that start and are
/// deleted within the time that changes are kept cause some 8,000.
pub(crate) const LOG_CAPACITY: usize = 8_192;

/// Objects by namespace (empty for cluster-scoped ones) and name.
type Objects = BTreeMap<String, BTreeMap<String, Object>>;

/// All objects of one kind, in any version.
#[derive(Debug)]
pub(crate) struct Collection {
    objects: Objects,
    log: Log,
    changed: Arc<Notify>,
}

/// All collections of a cluster.
#[derive(Debug)]
pub(crate) struct Store {
    revision: u64,
    collections: BTreeMap<Arc<str>, Collection>,
    changed: Arc<Notify>,
    log_capacity: usize,
    /// Resource versions before this one are compacted, also in collections that are created later.
    compacted: u64,
    /// How often an earlier state was restored.
    restores: u64,
}

/// All objects of a cluster as they were at a time: a backup.
#[derive(Clone, Debug)]
pub struct Snapshot {
    revision: u64,
    objects: BTreeMap<Arc<str>, Objects>,
}

impl Store {
    /// An empty store whose collections keep `log_capacity` changes each.
    pub(crate) fn new(log_capacity: usize) -> Self {
        Self {
            revision: 1,
            collections: BTreeMap::new(),
            changed: Arc::new(Notify::new()),
            log_capacity,
            compacted: 1,
            restores: 0,
        }
    }

    /// The resource version of the last change.
    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    /// Notified at each change of any collection.
    pub(crate) fn changed(&self) -> &Arc<Notify> {
        &self.changed
    }

    /// All changes after a resource version, in order.
    pub(crate) fn changes_after(&self, revision: u64) -> Result<Vec<Arc<Change>>, TooOld> {
        let mut changes = Vec::new();
        // Most readers look when there is nothing new, and a cluster has many collections.
        if revision >= self.revision {
            return Ok(changes);
        }
        for collection in self.collections.values() {
            changes.extend(collection.log.kept_after(revision)?);
        }
        changes.sort_unstable_by_key(|change| change.revision);
        Ok(changes)
    }

    /// One object.
    pub(crate) fn get(&self, kind: &Kind, namespace: &str, name: &str) -> Option<&Object> {
        let collection = self.collections.get(&kind.storage)?;
        collection.objects.get(namespace)?.get(name)
    }

    /// The objects of one kind, of one namespace or all, ordered by namespace and name.
    pub(crate) fn list<'a>(
        &'a self,
        kind: &Kind,
        namespace: Option<&'a str>,
    ) -> impl Iterator<Item = &'a Object> + use<'a> {
        let objects = self
            .collections
            .get(&kind.storage)
            .map(|each| &each.objects);
        let one = namespace.and_then(|namespace| objects?.get(namespace));
        let all = objects.filter(|_| namespace.is_none());
        one.into_iter()
            .chain(all.into_iter().flat_map(BTreeMap::values))
            .flat_map(BTreeMap::values)
    }

    /// The objects as they were at `revision`, ordered by namespace and name.
    pub(crate) fn list_at(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        revision: u64,
    ) -> Result<Vec<Object>, TooOld> {
        let Some(collection) = self.collections.get(&kind.storage) else {
            return Ok(Vec::new());
        };
        let mut then: BTreeMap<(&str, &str), Object> = BTreeMap::new();
        for (namespace, names) in &collection.objects {
            for (name, object) in names {
                then.insert((namespace, name), Arc::clone(object));
            }
        }
        // Undone from the newest back to `revision`.
        let since: Vec<Arc<Change>> = collection.log.since(revision)?.collect();
        for change in since.iter().rev() {
            let key = (change.namespace.as_str(), change.name.as_str());
            match &change.old {
                Some(old) => then.insert(key, Arc::clone(old)),
                None => then.remove(&key),
            };
        }
        let wanted = |at: &str| namespace.is_none_or(|namespace| namespace == at);
        Ok((then.into_iter())
            .filter(|((at, _), _)| wanted(at))
            .map(|(_, object)| object)
            .collect())
    }

    /// The collection of a kind, created on first use.
    pub(crate) fn collection(&mut self, kind: &Kind) -> &mut Collection {
        // The log of a collection that was empty until now is complete.
        let (capacity, compacted) = (self.log_capacity, self.compacted);
        self.collections
            .entry(Arc::clone(&kind.storage))
            .or_insert_with(|| Collection {
                objects: BTreeMap::new(),
                log: Log::new(capacity, compacted),
                changed: Arc::new(Notify::new()),
            })
    }

    /// Stores `object` with the next resource version.
    pub(crate) fn put(
        &mut self,
        kind: &Kind,
        namespace: &str,
        name: &str,
        mut object: Value,
    ) -> Object {
        self.revision += 1;
        object["metadata"]["resourceVersion"] = Value::String(self.revision.to_string());
        let object = Arc::new(object);
        let collection = self.collection(kind);
        let names = collection.objects.entry(namespace.to_owned()).or_default();
        let old = names.insert(name.to_owned(), Arc::clone(&object));
        self.record(kind, namespace, name, old, Some(Arc::clone(&object)));
        object
    }

    /// Removes an object. Returns its last state with the resource version of the removal.
    pub(crate) fn remove(&mut self, kind: &Kind, namespace: &str, name: &str) -> Option<Object> {
        let collection = self.collection(kind);
        let names = collection.objects.get_mut(namespace)?;
        let old = names.remove(name)?;
        if names.is_empty() {
            collection.objects.remove(namespace);
        }
        self.revision += 1;
        let change = self.record(kind, namespace, name, Some(old), None);
        change.tombstone().cloned()
    }

    /// All objects as they are now.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let collections = self.collections.iter();
        let objects = collections
            .map(|(storage, collection)| (Arc::clone(storage), collection.objects.clone()));
        Snapshot {
            revision: self.revision,
            objects: objects.collect(),
        }
    }

    /// Restores a snapshot, as etcd does: also the resource version is the earlier one, and versions are given again. The
    /// log begins anew.
    pub(crate) fn restore(&mut self, snapshot: &Snapshot) {
        self.revision = snapshot.revision;
        self.compacted = snapshot.revision;
        self.restores += 1;
        for (storage, collection) in &mut self.collections {
            let objects = snapshot.objects.get(storage);
            collection.objects = objects.cloned().unwrap_or_default();
            collection.log = Log::new(self.log_capacity, self.compacted);
            collection.changed.notify_waiters();
        }
        self.changed.notify_waiters();
    }

    /// How often an earlier state was restored.
    pub(crate) fn restores(&self) -> u64 {
        self.restores
    }

    /// Compacts the log, as etcd does: older resource versions are answered with 410 from now on.
    pub(crate) fn compact(&mut self) {
        let revision = self.revision;
        self.compacted = revision;
        for collection in self.collections.values_mut() {
            collection.log.compact(revision);
            collection.changed.notify_waiters();
        }
    }

    fn record(
        &mut self,
        kind: &Kind,
        namespace: &str,
        name: &str,
        old: Option<Object>,
        new: Option<Object>,
    ) -> Arc<Change> {
        let change = Arc::new(Change::new(self.revision, kind, namespace, name, old, new));
        let collection = self.collection(kind);
        collection.log.push(Arc::clone(&change), Instant::now());
        collection.changed.notify_waiters();
        self.changed.notify_waiters();
        change
    }
}

impl Collection {
    /// The log, and the notification of each change.
    pub(crate) fn log(&self) -> (&Log, &Arc<Notify>) {
        (&self.log, &self.changed)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::resources::kinds;

    fn named(name: &str, data: &str) -> Value {
        json!({"metadata": {"name": name}, "data": data})
    }

    fn data_at(store: &Store, revision: u64) -> Vec<String> {
        let objects = store
            .list_at(&kinds::CONFIG_MAPS, Some("default"), revision)
            .unwrap();
        objects
            .iter()
            .map(|object| object["data"].as_str().unwrap().to_owned())
            .collect()
    }

    #[test]
    fn a_restored_snapshot_has_earlier_objects_and_gives_versions_again() {
        let mut store = Store::new(16);
        let kind = &kinds::CONFIG_MAPS;
        store.put(kind, "default", "a", named("a", "1"));
        let (snapshot, revision) = (store.snapshot(), store.revision());
        store.put(kind, "default", "a", named("a", "2"));
        store.put(kind, "default", "b", named("b", "1"));
        store.restore(&snapshot);
        assert_eq!(store.revision(), revision);
        assert_eq!(data_at(&store, revision), ["1"]);
        let again = store.put(kind, "default", "a", named("a", "3"));
        assert_eq!(
            again["metadata"]["resourceVersion"],
            json!((revision + 1).to_string())
        );
        assert!(store.list_at(kind, None, revision - 1).is_err());
    }

    #[test]
    fn earlier_versions_can_be_listed_until_they_are_compacted() {
        let mut store = Store::new(16);
        let kind = &kinds::CONFIG_MAPS;
        store.put(kind, "default", "a", named("a", "1"));
        store.put(kind, "default", "b", named("b", "1"));
        let first = store.revision();
        store.put(kind, "default", "a", named("a", "2"));
        let removed = store.remove(kind, "default", "b").unwrap();
        assert_eq!(
            removed["metadata"]["resourceVersion"],
            json!(store.revision().to_string())
        );
        assert_eq!(data_at(&store, first), ["1", "1"]);
        assert_eq!(data_at(&store, first + 1), ["2", "1"]);
        assert_eq!(data_at(&store, store.revision()), ["2"]);
        store.compact();
        assert!(store.list_at(kind, None, first).is_err());
        assert_eq!(data_at(&store, store.revision()), ["2"]);
    }
}
