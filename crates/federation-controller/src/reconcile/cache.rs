//! What the reconciler keeps of each FederatedReplicaSet from one reconciliation to the next.
//!
//! Each entry is used by one worker at a time, and by tasks that bring late outcomes. A guard of the map is held for one
//! access, and never across an await.

use std::collections::{BTreeMap, BTreeSet};

use dashmap::DashMap;
use fedrs_api::{FederatedReplicaSetStatus, SetKey};
use reflector::ResourceVersion;
use serde_json::Value;

use crate::{executor::LateOutcome, finalizer, frs_store::Entry};

/// What is kept of one object.
#[derive(Clone, Debug, Default)]
struct Cached {
    uid: Option<String>,
    /// As often as the entry says.
    times_restored: u32,
    /// The status of the last check, with what became of its writes: the next check starts from it.
    status: FederatedReplicaSetStatus,
    /// Whether replicas wait for their replacements to be ready.
    moving: bool,
    /// The status that the host has, after our last write of it.
    published: Option<FederatedReplicaSetStatus>,
    /// The resourceVersion after our last write.
    resource_version: Option<String>,
    /// The resourceVersion after our write of the finalizer.
    finalizer_version: Option<ResourceVersion>,
    /// Members that the deletion waits for, as last reported.
    waited_for: Vec<String>,
    /// Members that have not answered our last write, with the outcome once it arrives.
    pending: BTreeMap<String, Option<LateOutcome>>,
}

impl Cached {
    fn of(entry: &Entry) -> Self {
        Self {
            uid: entry.metadata.uid.clone(),
            times_restored: entry.times_restored,
            published: entry.status.clone(),
            status: entry.status.clone().unwrap_or_default(),
            ..Self::default()
        }
    }
}

/// The reconcile cache. An entry begins with the first access to its object.
#[derive(Debug, Default)]
pub(crate) struct ReconcileCache(DashMap<SetKey, Cached>);

impl ReconcileCache {
    /// The previous status of `entry`: of this process, or else the one that the object has.
    pub(super) fn status(&self, key: &SetKey, entry: &Entry) -> FederatedReplicaSetStatus {
        self.change_of(key, entry, |cached| cached.status.clone())
    }

    /// The status that the next check starts from.
    pub(super) fn put_status(&self, key: &SetKey, status: FederatedReplicaSetStatus) {
        self.change(key, |cached| cached.status = status);
    }

    /// Whether replicas wait for their replacements to be ready.
    pub(super) fn put_moving(&self, key: &SetKey, moving: bool) {
        self.change(key, |cached| cached.moving = moving);
    }

    /// Whether replicas wait for their replacements to be ready.
    pub(super) fn is_moving(&self, key: &SetKey) -> bool {
        self.0.get(key).is_some_and(|cached| cached.moving)
    }

    /// Forgets an object.
    pub(super) fn forget(&self, key: &SetKey) {
        self.0.remove(key);
    }

    /// The deletion of `entry` waits for `members`. Answers whether that has changed.
    pub(super) fn put_waited_for(&self, key: &SetKey, entry: &Entry, members: &[String]) -> bool {
        self.change_of(key, entry, |cached| {
            let changed = cached.waited_for != members;
            cached.waited_for = members.to_vec();
            changed
        })
    }

    /// `member` has not answered a write yet.
    pub(super) fn put_pending(&self, key: &SetKey, member: &str) {
        self.change(key, |cached| {
            // The outcome may have arrived since the wait ended.
            cached.pending.entry(member.to_owned()).or_insert(None);
        });
    }

    /// An outcome that arrived after the wait for it had ended.
    pub(super) fn put_late(&self, key: &SetKey, late: LateOutcome) {
        self.change(key, |cached| {
            cached.pending.insert(late.member.clone(), Some(late));
        });
    }

    /// The late outcomes that have arrived, and the members that have not answered yet.
    pub(super) fn take_late(&self, key: &SetKey) -> (Vec<LateOutcome>, BTreeSet<String>) {
        self.change(key, |cached| {
            let (arrived, pending): (BTreeMap<_, _>, _) = std::mem::take(&mut cached.pending)
                .into_iter()
                .partition(|(_, outcome)| outcome.is_some());
            cached.pending = pending;
            let pending = cached.pending.keys().cloned().collect();
            (arrived.into_values().flatten().collect(), pending)
        })
    }

    /// The finalizer of `entry` was written, which made this version.
    pub(super) fn put_finalizer(&self, key: &SetKey, entry: &Entry, version: Option<String>) {
        self.change_of(key, entry, |cached| {
            cached.finalizer_version = Some(parse(version.as_deref()));
            cached.resource_version = version;
        });
    }

    /// Whether this process wrote the finalizer, and `entry` shows it or is older than that.
    pub(super) fn has_finalizer(&self, key: &SetKey, entry: &Entry) -> bool {
        let metadata = &entry.metadata;
        let cached = self.0.get(key).filter(|cached| cached.uid == metadata.uid);
        let written = cached.and_then(|cached| cached.finalizer_version);
        written.is_some_and(|written| {
            finalizer::is_present(metadata)
                || parse(metadata.resource_version.as_deref()).is_older_than(written)
        })
    }

    /// The status that the host has, and the resourceVersion after our last write.
    pub(super) fn published(
        &self,
        key: &SetKey,
    ) -> (Option<FederatedReplicaSetStatus>, Option<String>) {
        self.change(key, |cached| {
            (cached.published.clone(), cached.resource_version.clone())
        })
    }

    /// The host has `status`, whose write made `version`.
    pub(super) fn put_published(
        &self,
        key: &SetKey,
        status: FederatedReplicaSetStatus,
        version: Option<String>,
    ) {
        self.change(key, |cached| {
            cached.published = Some(status);
            cached.resource_version = version;
        });
    }

    fn change<T: Default>(&self, key: &SetKey, change: impl FnOnce(&mut Cached) -> T) -> T {
        let cached = self.0.get_mut(key);
        cached
            .map(|mut cached| change(&mut cached))
            .unwrap_or_default()
    }

    /// Of another object of the name nothing is kept.
    fn change_of<T>(
        &self,
        key: &SetKey,
        entry: &Entry,
        change: impl FnOnce(&mut Cached) -> T,
    ) -> T {
        let mut cached = self
            .0
            .entry(key.clone())
            .or_insert_with(|| Cached::of(entry));
        if cached.uid != entry.metadata.uid {
            *cached = Cached::of(entry);
        }
        if cached.times_restored != entry.times_restored {
            // What we wrote since the backup is not there any more.
            cached.times_restored = entry.times_restored;
            cached.published.clone_from(&entry.status);
            cached.resource_version = None;
            cached.finalizer_version = None;
        }
        change(&mut cached)
    }
}

/// The resourceVersion in the response to a write.
pub(super) fn version_of(response: &Value) -> Option<String> {
    response["metadata"]["resourceVersion"]
        .as_str()
        .map(str::to_owned)
}

/// The later of two versions of one object.
pub(super) fn later(a: Option<String>, b: Option<String>) -> Option<String> {
    if parse(a.as_deref()).is_older_than(parse(b.as_deref())) {
        b
    } else {
        a.or(b)
    }
}

fn parse(version: Option<&str>) -> ResourceVersion {
    ResourceVersion::parse(version.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use fedrs_api::finalizers;
    use serde_json::json;

    use super::*;

    fn entry(uid: &str, version: &str, finalizer: bool) -> Entry {
        let finalizers: &[&str] = if finalizer {
            &[finalizers::MEMBERS]
        } else {
            &[]
        };
        let object = json!({
            "metadata": { "name": "web", "uid": uid, "resourceVersion": version, "finalizers": finalizers },
            "spec": { "replicas": 1, "selector": {}, "template": { "spec": {} } },
        });
        Entry::derive(serde_json::from_value(object).unwrap(), "")
    }

    #[test]
    fn f5_a_written_finalizer_is_not_written_again_before_the_watch_shows_it() {
        let key = SetKey {
            namespace: "default".into(),
            name: "web".into(),
        };
        let cache = ReconcileCache::default();
        assert!(!cache.has_finalizer(&key, &entry("a", "8", true)));
        cache.put_finalizer(&key, &entry("a", "8", false), Some("10".to_owned()));
        for (uid, version, finalizer, expected) in [
            ("a", "8", false, true),
            ("a", "10", true, true),
            ("a", "11", true, true),
            // Removed by another client.
            ("a", "11", false, false),
            // Another object of the name.
            ("b", "8", false, false),
            ("b", "11", true, false),
        ] {
            let entry = entry(uid, version, finalizer);
            assert_eq!(
                cache.has_finalizer(&key, &entry),
                expected,
                "{uid} {version}"
            );
        }
    }

    #[test]
    fn what_was_written_since_the_backup_of_a_restored_host_is_forgotten() {
        let key = SetKey::new("default", "web");
        let cache = ReconcileCache::default();
        let mut entry = entry("a", "8", false);
        let status = FederatedReplicaSetStatus {
            replicas: 3,
            ..FederatedReplicaSetStatus::default()
        };
        cache.put_finalizer(&key, &entry, Some("10".to_owned()));
        cache.put_status(&key, status.clone());
        cache.put_published(&key, status.clone(), Some("12".to_owned()));
        entry.times_restored += 1;
        assert_eq!(cache.status(&key, &entry), status, "the memory stays");
        assert_eq!(cache.published(&key), (None, None));
        assert!(!cache.has_finalizer(&key, &entry));
    }
}
