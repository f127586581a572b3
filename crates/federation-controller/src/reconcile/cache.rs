//! What the reconciler keeps of each FederatedReplicaSet from one reconciliation to the next.
//!
//! Each entry is used by one worker at a time, and by tasks that bring late outcomes. A guard of the map is held for one
//! access, and never across an await.

use std::collections::{BTreeMap, BTreeSet};

use dashmap::DashMap;
use fedrs_api::{FederatedReplicaSet, FederatedReplicaSetStatus, SetKey};
use reflector::ResourceVersion;
use serde_json::Value;

use crate::{executor::LateOutcome, finalizer};

/// What is kept of one object.
#[derive(Clone, Debug, Default)]
struct Cached {
    uid: Option<String>,
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
    fn of(object: &FederatedReplicaSet) -> Self {
        Self {
            uid: object.metadata.uid.clone(),
            published: object.status.clone(),
            status: object.status.clone().unwrap_or_default(),
            ..Self::default()
        }
    }
}

/// The reconcile cache. An entry begins with the first access to its object.
#[derive(Debug, Default)]
pub(crate) struct ReconcileCache(DashMap<SetKey, Cached>);

impl ReconcileCache {
    /// The previous status of `object`: of this process, or else the one that the object has.
    pub(super) fn status(
        &self,
        key: &SetKey,
        object: &FederatedReplicaSet,
    ) -> FederatedReplicaSetStatus {
        self.change_of(key, object, |cached| cached.status.clone())
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

    /// The deletion of `object` waits for `members`. Answers whether that has changed.
    pub(super) fn put_waited_for(
        &self,
        key: &SetKey,
        object: &FederatedReplicaSet,
        members: &[String],
    ) -> bool {
        self.change_of(key, object, |cached| {
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

    /// The finalizer of `object` was written, which made this version.
    pub(super) fn put_finalizer(
        &self,
        key: &SetKey,
        object: &FederatedReplicaSet,
        version: Option<String>,
    ) {
        self.change_of(key, object, |cached| {
            cached.finalizer_version = Some(parse(version.as_deref()));
            cached.resource_version = version;
        });
    }

    /// Whether this process wrote the finalizer, and `object` shows it or is older than that.
    pub(super) fn has_finalizer(&self, key: &SetKey, object: &FederatedReplicaSet) -> bool {
        let metadata = &object.metadata;
        let cached = self.0.get(key).filter(|cached| cached.uid == metadata.uid);
        let written = cached.and_then(|cached| cached.finalizer_version);
        written.is_some_and(|written| {
            finalizer::is_present(object)
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
        object: &FederatedReplicaSet,
        change: impl FnOnce(&mut Cached) -> T,
    ) -> T {
        let mut cached = self
            .0
            .entry(key.clone())
            .or_insert_with(|| Cached::of(object));
        if cached.uid != object.metadata.uid {
            *cached = Cached::of(object);
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
    use fedrs_api::{finalizers, names};
    use serde_json::json;

    use super::*;

    fn object(uid: &str, version: &str, finalizer: bool) -> FederatedReplicaSet {
        let finalizers: &[&str] = if finalizer {
            &[finalizers::MEMBERS]
        } else {
            &[]
        };
        serde_json::from_value(json!({
            "apiVersion": names::API_VERSION,
            "kind": "FederatedReplicaSet",
            "metadata": { "name": "web", "uid": uid, "resourceVersion": version, "finalizers": finalizers },
            "spec": { "replicas": 1, "selector": {}, "template": { "spec": {} } },
        }))
        .unwrap()
    }

    #[test]
    fn f5_a_written_finalizer_is_not_written_again_before_the_watch_shows_it() {
        let key = SetKey {
            namespace: "default".into(),
            name: "web".into(),
        };
        let cache = ReconcileCache::default();
        assert!(!cache.has_finalizer(&key, &object("a", "8", true)));
        cache.put_finalizer(&key, &object("a", "8", false), Some("10".to_owned()));
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
            let object = object(uid, version, finalizer);
            assert_eq!(
                cache.has_finalizer(&key, &object),
                expected,
                "{uid} {version}"
            );
        }
    }
}
