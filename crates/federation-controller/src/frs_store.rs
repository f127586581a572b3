//! FederatedReplicaSets and FederatedDeployments as the host last showed them, validated once when they change.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use controller_base::selector_index::{MAX_KNOWN, SelectorIndex};
use federated_rollout::Limit;
use fedrs_api::{
    DeletionPolicy, DisruptionLimit, FederatedDeployment, FederatedDeploymentSpec,
    FederatedReplicaSet, FederatedReplicaSetSpec, FederatedReplicaSetStatus, FieldError, LocalKind,
    MAX_ENTRIES, ObjectKey, RolloutSettings, SetKind, ValidFederatedDeployment, ValidFrs,
    ValidTemplate, annotations, preferences_hash,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use parking_lot::RwLock;
use reflector::ResourceVersion;

use crate::{
    check::DesiredHashes,
    frs_object::{FrsObject, UnreadableSpec},
    manifest::{self, DeploymentSettings},
};

/// One federated set, with what is derived from it.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// The part of its metadata that is used.
    pub(crate) metadata: ObjectMeta,
    /// The status that the host has.
    pub(crate) status: Option<Arc<FederatedReplicaSetStatus>>,
    /// Why the status can't be read, if it can't.
    pub(crate) status_error: Option<String>,
    /// How often the host has shown an earlier version of the object than before, or than was written: it was restored.
    pub(crate) times_restored: u32,
    /// The federation that handles it (F40).
    pub(crate) federation: String,
    /// What its deletion does in the members; `None` if the spec can't be read.
    pub(crate) deletion_policy: Option<DeletionPolicy>,
    /// Hash of its preferences annotation, also of an invalid one.
    pub(crate) preferences_hash: Option<String>,
    /// The kind of its local workloads.
    pub(crate) local: LocalKind,
    /// The valid spec, or what is wrong with it (F4).
    pub(crate) valid: Result<Arc<ValidFrs>, Vec<FieldError>>,
    /// How a FederatedDeployment rolls out a new template.
    pub(crate) rollout: Option<Arc<RolloutSettings>>,
    /// Hashes of what would be written into the local workloads.
    pub(crate) desired: DesiredHashes,
    /// Hash of the template; 0 while it is invalid.
    pub(crate) template: u32,
}

/// All federated sets. One task of each kind writes, everybody reads.
#[derive(Debug, Default)]
pub(crate) struct FrsStore {
    sets: RwLock<Sets>,
}

#[derive(Debug, Default)]
struct Sets {
    entries: BTreeMap<ObjectKey, Arc<Entry>>,
    selectors: SelectorIndex<ValidFrs>,
}

/// Where an object comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// A list.
    List {
        /// Whether the object is older than a write of ours that was answered before the list: the host was restored.
        lacks_write: bool,
    },
    /// A watch.
    Watch,
}

impl Source {
    fn lacks_write(self) -> bool {
        self == Self::List { lacks_write: true }
    }
}

/// What the application of an object changed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Applied {
    /// Its key.
    pub(crate) key: ObjectKey,
    /// Whether anything but the status changed.
    pub(crate) changed: bool,
    /// Others that now report it as one whose selector overlaps with theirs, or no longer do.
    pub(crate) overlapping: BTreeSet<ObjectKey>,
}

impl FrsStore {
    pub(crate) fn get(&self, key: &ObjectKey) -> Option<Arc<Entry>> {
        self.sets.read().entries.get(key).cloned()
    }

    /// Names of the sets that could adopt pods of `key`, or whose pods it could adopt, in order. Of many, some, and that there are
    /// others.
    pub(crate) fn overlapping(&self, key: &ObjectKey) -> Vec<String> {
        let sets = self.sets.read();
        let names = sets.selectors.known(key).map(|other| {
            if other.kind == key.kind {
                other.name.to_string()
            } else {
                format!("{} {}", other.kind.as_str(), other.name)
            }
        });
        let mut names: Vec<_> = names.collect();
        if names.len() == MAX_KNOWN {
            names.truncate(MAX_KNOWN - 1);
            names.push("and others".to_owned());
        }
        names
    }

    /// All keys, in order.
    pub(crate) fn keys(&self) -> Vec<ObjectKey> {
        self.sets.read().entries.keys().cloned().collect()
    }

    /// Calls `visit` for each set, while nothing is changed.
    pub(crate) fn for_each(&self, mut visit: impl FnMut(&ObjectKey, &Entry)) {
        let sets = self.sets.read();
        let entries = sets.entries.iter();
        entries.for_each(|(key, entry)| visit(key, entry));
    }

    /// Stores `object`. It is validated before the lock is taken, because that may take long.
    pub(crate) fn apply(
        &self,
        kind: SetKind,
        object: FrsObject,
        source: Source,
        federation: &str,
    ) -> Applied {
        let key = key_of(kind, &object.metadata);
        let (entry, changed) = match self.get(&key) {
            Some(before) => before.replaced_by(kind, object, source, federation),
            None => (Entry::derive(kind, object, federation), true),
        };
        let mut sets = self.sets.write();
        let overlapping = match &entry.valid {
            _ if !changed => BTreeSet::new(),
            Ok(frs) => sets.selectors.insert(frs),
            Err(_) => sets.selectors.remove(&key),
        };
        sets.entries.insert(key.clone(), Arc::new(entry));
        Applied {
            key,
            changed,
            overlapping,
        }
    }

    /// Removes `key`. Returns the sets that reported it.
    pub(crate) fn remove(&self, key: &ObjectKey) -> BTreeSet<ObjectKey> {
        let mut sets = self.sets.write();
        sets.entries.remove(key);
        sets.selectors.remove(key)
    }
}

impl Entry {
    /// The entry of `object`, which follows this one, and whether a check may decide otherwise.
    fn replaced_by(
        &self,
        kind: SetKind,
        object: FrsObject,
        source: Source,
        federation: &str,
    ) -> (Self, bool) {
        let (metadata, status) = (object.metadata.clone(), object.status.clone());
        let status_error = object.status_error.clone();
        let differs = differs(&self.metadata, &metadata);
        let went_back = is_restored(&self.metadata, &metadata) || source.lacks_write();
        // Often only the status has changed, or what every write changes: then what was derived still holds. But a host that was
        // restored may have given the generation to another spec: a list shows it.
        let may_differ = differs || went_back || source != Source::Watch;
        let derived = may_differ.then(|| Self::derive(kind, object, federation));
        let derived = derived.filter(|new| differs || went_back || !new.has_spec_of(self));
        let Some(derived) = derived else {
            let kept = Self {
                metadata,
                status,
                status_error,
                ..self.clone()
            };
            return (kept, false);
        };
        let restored = went_back || !differs;
        let derived = Self {
            times_restored: self.times_restored + u32::from(restored),
            ..derived
        };
        (derived, true)
    }

    /// Whether the specs of both are the same.
    fn has_spec_of(&self, other: &Self) -> bool {
        self.valid == other.valid
            && self.rollout == other.rollout
            && self.federation == other.federation
            && self.deletion_policy == other.deletion_policy
            && self.local == other.local
    }

    pub(crate) fn derive(kind: SetKind, object: FrsObject, federation: &str) -> Self {
        // Others' finalizers that are not kept would be lost with ours.
        let is_complete = object.metadata.finalizers.iter().flatten().count() <= MAX_ENTRIES;
        let Read {
            federation: own_federation,
            deletion_policy,
            local,
            valid,
            rollout,
        } = match kind {
            SetKind::FederatedReplicaSet => Read::replica_set(&object),
            SetKind::FederatedDeployment => Read::deployment(&object),
        };
        let hashes = valid.as_ref().map(|frs| {
            let template = manifest::template_hash(frs);
            let desired = match rollout.as_deref() {
                None => DesiredHashes {
                    spec: manifest::spec_hash(frs, federation),
                    settings: None,
                },
                Some(rollout) => DesiredHashes {
                    spec: template.into(),
                    settings: Some(manifest::settings_hash(frs, rollout.into())),
                },
            };
            (desired, template)
        });
        let (desired, template) = hashes.unwrap_or_default();
        Self {
            preferences_hash: preferences_hash(&object.metadata),
            metadata: object.metadata,
            status: object.status,
            status_error: object.status_error,
            times_restored: 0,
            federation: own_federation,
            deletion_policy: deletion_policy.filter(|_| is_complete),
            local,
            valid: valid.map(Arc::new),
            rollout,
            desired,
            template,
        }
    }

    /// The value of an annotation of ours, or of one that users set for us.
    pub(crate) fn annotation(&self, key: &str) -> Option<&str> {
        let annotations = self.metadata.annotations.as_ref();
        annotations?.get(key).map(String::as_str)
    }

    /// The least of what AvailabilitySets allow its rollouts, and the name of that one (A1). LocalReplicaSets have limits of their own.
    pub(crate) fn rollout_limit(&self) -> Option<(&str, Limit)> {
        if self.local != LocalKind::Deployment {
            return None;
        }
        let limits = self.metadata.annotations.iter().flatten();
        let limits = limits.filter_map(|(key, value)| {
            let set = key.strip_prefix(annotations::AVAILABILITY_PREFIX)?;
            Some((set, DisruptionLimit::parse(value)))
        });
        let limits: Vec<_> = limits.collect();
        let one_member = limits.iter().any(|(_, limit)| limit.one_cluster_at_a_time);
        let (set, least) = limits
            .into_iter()
            .min_by_key(|(_, limit)| limit.max_unavailable)?;
        let unavailable = least.max_unavailable.into();
        Some((
            set,
            Limit {
                unavailable,
                one_member,
            },
        ))
    }

    /// The entry with another template, of an earlier revision. It stays the same if it is invalid.
    pub(crate) fn with_template(&self, template: &ValidTemplate) -> Self {
        let Ok(frs) = &self.valid else {
            return self.clone();
        };
        let mut frs = (**frs).clone();
        frs.template = template.clone();
        let template = manifest::template_hash(&frs);
        Self {
            desired: DesiredHashes {
                spec: template.into(),
                ..self.desired
            },
            template,
            valid: Ok(Arc::new(frs)),
            ..self.clone()
        }
    }

    /// What only the local workloads of a FederatedDeployment have.
    pub(crate) fn deployment(&self) -> DeploymentSettings {
        let settings = self.rollout.as_deref().map(DeploymentSettings::from);
        settings.unwrap_or_default()
    }
}

/// What is read of a spec.
struct Read {
    federation: String,
    deletion_policy: Option<DeletionPolicy>,
    local: LocalKind,
    valid: Result<ValidFrs, Vec<FieldError>>,
    rollout: Option<Arc<RolloutSettings>>,
}

impl Read {
    fn replica_set(object: &FrsObject) -> Self {
        let spec = match object.read_spec::<FederatedReplicaSetSpec>() {
            Ok(spec) => spec,
            Err(unreadable) => return Self::unreadable(LocalKind::ReplicaSet, unreadable),
        };
        let frs = FederatedReplicaSet {
            metadata: object.metadata.clone(),
            spec,
            status: None,
        };
        Self {
            valid: ValidFrs::check(&frs),
            federation: frs.spec.federation,
            deletion_policy: Some(frs.spec.deletion_policy),
            local: LocalKind::ReplicaSet,
            rollout: None,
        }
    }

    fn deployment(object: &FrsObject) -> Self {
        let spec = match object.read_spec::<FederatedDeploymentSpec>() {
            Ok(spec) => spec,
            Err(unreadable) => return Self::unreadable(LocalKind::Deployment, unreadable),
        };
        let deployment = FederatedDeployment {
            metadata: object.metadata.clone(),
            spec,
            status: None,
        };
        let (valid, rollout) = match ValidFederatedDeployment::check(&deployment) {
            Ok(valid) => (Ok(valid.set), Some(Arc::new(valid.rollout))),
            Err(errors) => (Err(errors), None),
        };
        Self {
            valid,
            federation: deployment.spec.federation,
            deletion_policy: Some(deployment.spec.deletion_policy),
            local: deployment.spec.local_kind.unwrap_or_default().into(),
            rollout,
        }
    }

    /// A set whose kind of local workloads may be another one: nothing is decided for it.
    fn unreadable(local: LocalKind, unreadable: UnreadableSpec) -> Self {
        Self {
            local,
            federation: unreadable.federation,
            deletion_policy: None,
            valid: Err(vec![unreadable.error]),
            rollout: None,
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
}

/// Whether `now` is an earlier version of the object `before`: the host was restored from a backup.
fn is_restored(before: &ObjectMeta, now: &ObjectMeta) -> bool {
    let version = |metadata: &ObjectMeta| {
        ResourceVersion::parse(metadata.resource_version.as_deref().unwrap_or_default())
    };
    before.uid == now.uid && version(now).is_older_than(version(before))
}

/// The key of an object that came from the API server: it always has a name.
pub(crate) fn key_of(kind: SetKind, metadata: &ObjectMeta) -> ObjectKey {
    ObjectKey::of_kind(
        kind,
        metadata.namespace.as_deref().unwrap_or_default(),
        metadata.name.as_deref().unwrap_or_default(),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const KIND: SetKind = SetKind::FederatedReplicaSet;

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
        let list = Source::List { lacks_write: false };
        let list_without_write = Source::List { lacks_write: true };
        for (version, app, source, times_restored, changed) in [
            (10, "web", list, 0, true),
            (12, "web", Source::Watch, 0, false),
            (9, "web", Source::Watch, 1, true),
            (9, "web", list, 1, false),
            (10, "web", list, 1, false),
            (10, "web", list_without_write, 2, true),
            // Another spec with the same generation.
            (14, "other", list, 3, true),
            (15, "other", list, 3, false),
        ] {
            let applied = store.apply(KIND, object("web", version, &spec(app)), source, "");
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
        let names = |name: &str| store.overlapping(&ObjectKey::new("default", name));
        let overlapping = |name: &str| {
            let applied = store.apply(KIND, object(name, 1, &spec("x")), Source::Watch, "");
            Vec::from_iter(applied.overlapping)
        };
        assert_eq!(overlapping("a"), []);
        assert_eq!(overlapping("b"), [ObjectKey::new("default", "a")]);
        assert_eq!(names("a"), ["b"]);
        for name in 0..20 {
            overlapping(&format!("c{name:02}"));
        }
        let expected = [
            "b",
            "c00",
            "c01",
            "c02",
            "c03",
            "c04",
            "c05",
            "c06",
            "and others",
        ];
        assert_eq!(names("a"), expected);
        assert!(
            store
                .remove(&ObjectKey::new("default", "b"))
                .contains(&ObjectKey::new("default", "a"))
        );
        assert_eq!(names("a")[..2], ["c00", "c01"]);
    }
}
