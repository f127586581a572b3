//! What the last check of each set answered: the next one's memory, and what the host has been told.

use std::collections::{BTreeMap, BTreeSet};

use fedrs_api::{FederatedReplicaSet, FederatedReplicaSetStatus, SetKey};
use parking_lot::Mutex;
use reflector::ResourceVersion;
use serde_json::Value;

use super::{RETRY, Reconciler, frs_path};
use crate::{calls, executor::LateOutcome, finalizer, host::Entry};

/// One set's memory.
#[derive(Clone, Debug, Default)]
struct Memory {
    uid: Option<String>,
    status: FederatedReplicaSetStatus,
    /// Whether replicas wait for their replacements to be ready.
    moving: bool,
    /// What the host has, after our last write of it.
    published: Option<FederatedReplicaSetStatus>,
    /// The version our last write of the status made.
    resource_version: Option<String>,
    /// The version of the object after our write of the finalizer.
    finalizer_version: Option<ResourceVersion>,
    /// Members that the deletion waits for, as people were last told.
    waited_for: Vec<String>,
    /// Members that have not answered our last write, with the answer once it has come.
    unanswered: BTreeMap<String, Option<LateOutcome>>,
}

/// All sets' memories. Each is used by one worker at a time; the lock is for the map.
#[derive(Debug, Default)]
pub(crate) struct Memories(Mutex<BTreeMap<SetKey, Memory>>);

impl Memories {
    /// What is remembered of `object`: from this process, else from its status.
    pub(super) fn recall(
        &self,
        key: &SetKey,
        object: &FederatedReplicaSet,
    ) -> FederatedReplicaSetStatus {
        let mut memories = self.0.lock();
        memory_of(&mut memories, key, object).status.clone()
    }

    pub(super) fn remember(&self, key: &SetKey, status: FederatedReplicaSetStatus) {
        if let Some(memory) = self.0.lock().get_mut(key) {
            memory.status = status;
        }
    }

    /// Whether replicas wait for their replacements to be ready.
    pub(super) fn put_moving(&self, key: &SetKey, moving: bool) {
        if let Some(memory) = self.0.lock().get_mut(key) {
            memory.moving = moving;
        }
    }

    pub(super) fn forget(&self, key: &SetKey) {
        self.0.lock().remove(key);
    }

    /// The deletion waits for `members`; whether that is news.
    pub(super) fn put_waited_for(&self, key: &SetKey, members: &[String]) -> bool {
        let mut memories = self.0.lock();
        let memory = memories.entry(key.clone()).or_default();
        let news = memory.waited_for != members;
        memory.waited_for = members.to_vec();
        news
    }

    /// The answer of `member` is still awaited.
    pub(super) fn put_unanswered(&self, key: &SetKey, member: &str) {
        if let Some(memory) = self.0.lock().get_mut(key) {
            // The answer may have come since the wait was given up.
            memory.unanswered.entry(member.to_owned()).or_insert(None);
        }
    }

    /// An answer that nobody waited for any longer.
    pub(super) fn put_late(&self, key: &SetKey, late: LateOutcome) {
        if let Some(memory) = self.0.lock().get_mut(key) {
            memory.unanswered.insert(late.member.clone(), Some(late));
        }
    }

    /// The answers that have come meanwhile, and the members whose answers are still awaited.
    pub(super) fn take_late(&self, key: &SetKey) -> (Vec<LateOutcome>, BTreeSet<String>) {
        let mut memories = self.0.lock();
        let Some(memory) = memories.get_mut(key) else {
            return Default::default();
        };
        let (come, awaited): (BTreeMap<_, _>, _) = std::mem::take(&mut memory.unanswered)
            .into_iter()
            .partition(|(_, it)| it.is_some());
        memory.unanswered = awaited;
        let awaited = memory.unanswered.keys().cloned().collect();
        (come.into_values().flatten().collect(), awaited)
    }

    pub(super) fn is_moving(&self, key: &SetKey) -> bool {
        self.0.lock().get(key).is_some_and(|memory| memory.moving)
    }

    /// The finalizer of `object` was written, which made this version.
    pub(super) fn put_finalizer(
        &self,
        key: &SetKey,
        object: &FederatedReplicaSet,
        version: Option<String>,
    ) {
        let mut memories = self.0.lock();
        let memory = memory_of(&mut memories, key, object);
        memory.finalizer_version = Some(self::version(version.as_deref()));
        memory.resource_version = version;
    }

    /// Whether this process wrote the finalizer, and `object` shows it or is older than that.
    pub(super) fn has_finalizer(&self, key: &SetKey, object: &FederatedReplicaSet) -> bool {
        let (metadata, memories) = (&object.metadata, self.0.lock());
        let memory = memories
            .get(key)
            .filter(|memory| memory.uid == metadata.uid);
        let written = memory.and_then(|memory| memory.finalizer_version);
        written.is_some_and(|written| {
            finalizer::is_present(object)
                || version(metadata.resource_version.as_deref()).is_older_than(written)
        })
    }

    fn published(&self, key: &SetKey) -> (Option<FederatedReplicaSetStatus>, Option<String>) {
        let memories = self.0.lock();
        memories
            .get(key)
            .map(|it| (it.published.clone(), it.resource_version.clone()))
            .unwrap_or_default()
    }

    fn put_published(
        &self,
        key: &SetKey,
        status: FederatedReplicaSetStatus,
        version: Option<String>,
    ) {
        if let Some(memory) = self.0.lock().get_mut(key) {
            memory.published = Some(status);
            memory.resource_version = version;
        }
    }
}

impl Reconciler {
    /// Writes the status to the host if it differs from what is there (F22, F38).
    pub(super) async fn publish(
        &self,
        key: &SetKey,
        entry: &Entry,
        status: &FederatedReplicaSetStatus,
    ) {
        let (published, version) = self.memories.published(key);
        if published.as_ref() == Some(status) {
            return;
        }
        let metadata = &entry.object.metadata;
        let version = later(version, metadata.resource_version.clone());
        let seen = (metadata.uid.as_deref(), version.as_deref());
        let path = frs_path(key);
        let call = calls::put_status(&self.host, &path, seen, status);
        match self.host_call(call).await {
            Ok(answer) => {
                let version = version_of(&answer);
                self.memories.put_published(key, status.clone(), version);
            }
            // Gone, or changed meanwhile: the watch tells, and its version is used next time.
            Err(error) if matches!(error.code(), Some(404)) => {}
            Err(error) => {
                tracing::debug!(frs = %key, %error, "status not written, tried again");
                self.agenda.check(key.clone(), RETRY);
            }
        }
    }
}

/// The memory of `object`: a new one if none is kept, or another object's of that name.
fn memory_of<'a>(
    memories: &'a mut BTreeMap<SetKey, Memory>,
    key: &SetKey,
    object: &FederatedReplicaSet,
) -> &'a mut Memory {
    let memory = memories.entry(key.clone()).or_default();
    if memory.uid != object.metadata.uid {
        let status = object.status.clone().unwrap_or_default();
        *memory = Memory {
            uid: object.metadata.uid.clone(),
            published: object.status.clone(),
            status,
            ..Memory::default()
        };
    }
    memory
}

/// The version of an object that a write answered.
pub(super) fn version_of(answer: &Value) -> Option<String> {
    answer["metadata"]["resourceVersion"]
        .as_str()
        .map(str::to_owned)
}

/// The later of two versions of one object.
fn later(a: Option<String>, b: Option<String>) -> Option<String> {
    if version(a.as_deref()).is_older_than(version(b.as_deref())) {
        b
    } else {
        a.or(b)
    }
}

fn version(text: Option<&str>) -> ResourceVersion {
    ResourceVersion::parse(text.unwrap_or_default())
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
        let memories = Memories::default();
        assert!(!memories.has_finalizer(&key, &object("a", "8", true)));
        memories.put_finalizer(&key, &object("a", "8", false), Some("10".to_owned()));
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
                memories.has_finalizer(&key, &object),
                expected,
                "{uid} {version}"
            );
        }
    }
}
