//! fedrs's labels on pods that a local workload adopted (F30), and on the pods of a local workload that is released (F5).
//!
//! The watch selects pods by these labels. An adopted pod has none at first, and counts only in the status of its set. Between
//! a Deployment and its pods are ReplicaSets: the watch selects these by the same labels, to tell whose pods they are. Neither
//! these labels nor those of pods are part of a template, so that no pod is replaced.

use std::{
    collections::{BTreeMap, HashSet},
    time::Duration,
};

use controller_base::calls::{self, CallError};
use fedrs_api::{LocalKind, annotations, labels, selector};
use futures::{StreamExt, TryStreamExt, stream};
use jiff::Timestamp;
use reflector::{
    Collection, ReflectorSettings, Uid,
    partial::{self, for_each_entry, for_each_item, null_as_default},
};
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, IgnoredAny},
};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use super::{
    LocalWorkload,
    live_set::{LiveSet, label},
};
use crate::{
    check::Outcome,
    manifest::{Source, own_labels},
};

/// Concurrent writes of pods.
const CONCURRENT_WRITES: usize = 8;
/// The ReplicaSets of a Deployment whose pods are labeled: a rollout leaves few of them with pods.
const MAX_REPLICA_SETS: usize = 1000;
/// What the pods that are written at once may take, in bytes: ten thousand usual ones.
const MAX_BYTES: usize = 1 << 20;
/// The longest that all pages of pods may take together.
const LIST_TIMEOUT: Duration = Duration::from_secs(60);

/// A pod, or a ReplicaSet of a Deployment, as far as its labels are concerned.
#[derive(Deserialize)]
struct Dependent {
    metadata: DependentMeta,
}

#[derive(Deserialize)]
struct DependentMeta {
    #[serde(deserialize_with = "partial::name")]
    name: Box<str>,
    #[serde(deserialize_with = "partial::name")]
    uid: Box<str>,
    #[serde(default, deserialize_with = "null_as_default")]
    labels: OwnLabels,
    #[serde(
        rename = "ownerReferences",
        default,
        deserialize_with = "null_as_default"
    )]
    controller: ControllerUid,
}

/// Our labels of an object.
#[derive(Default)]
struct OwnLabels(BTreeMap<String, String>);

impl<'de> Deserialize<'de> for OwnLabels {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut own = Self::default();
        let keys = [labels::REPLICA_SET, labels::FEDERATION];
        for_each_entry(deserializer, &keys, |key, value| {
            own.0.insert(key.to_owned(), label(value));
        })?;
        Ok(own)
    }
}

/// The uid of the object's controller.
#[derive(Debug, Default)]
pub(super) struct ControllerUid(Option<Uid>);

impl ControllerUid {
    pub(super) fn is_one_of(&self, owners: &HashSet<Uid>) -> bool {
        self.0.as_ref().is_some_and(|uid| owners.contains(uid))
    }
}

impl<'de> Deserialize<'de> for ControllerUid {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Owner {
            uid: Uid,
            #[serde(default, deserialize_with = "null_as_default")]
            controller: bool,
        }
        let mut controller = Self::default();
        for_each_item(deserializer, |owner: Owner| {
            if owner.controller {
                controller = Self(Some(owner.uid));
            }
        })?;
        Ok(controller)
    }
}

/// Which kind of dependents.
#[derive(Clone, Copy)]
pub(super) enum Resource {
    Pods,
    ReplicaSets,
}

impl Resource {
    /// The verbs of the metrics.
    fn list(self) -> &'static str {
        match self {
            Self::Pods => "list pods",
            Self::ReplicaSets => "list replicasets",
        }
    }

    fn patch(self) -> &'static str {
        match self {
            Self::Pods => "patch pod",
            Self::ReplicaSets => "patch replicaset",
        }
    }
}

/// Pods or ReplicaSets to write.
#[derive(Default)]
struct Dependents {
    refs: Vec<DependentRef>,
    bytes: usize,
    /// Whether there are more.
    has_more: bool,
}

/// What is kept of an object to write.
pub(super) struct DependentRef {
    pub(super) name: Box<str>,
    pub(super) uid: Box<str>,
}

impl Dependents {
    fn push(&mut self, DependentMeta { name, uid, .. }: DependentMeta) {
        let bytes = self.bytes + size_of::<DependentRef>() + name.len() + uid.len();
        if bytes > MAX_BYTES {
            self.has_more = true;
        } else {
            self.bytes = bytes;
            self.refs.push(DependentRef { name, uid });
        }
    }
}

impl Dependent {
    fn has_labels(&self, labels: &BTreeMap<&str, &str>) -> bool {
        let own = &self.metadata.labels.0;
        labels
            .iter()
            .all(|(key, value)| own.get(*key).map(String::as_str) == Some(*value))
    }
}

impl LocalWorkload<'_> {
    /// Adds our labels to the pods of the workload with this uid that have none (F30); before that, to the ReplicaSets of a
    /// Deployment. Of very many, the next check labels the others.
    pub(super) async fn label_pods(
        self,
        source: &Source<'_>,
        uid: &str,
        spec_version: i64,
    ) -> Result<Outcome, CallError> {
        let labels: BTreeMap<_, _> = own_labels(source.frs, source.federation).into();
        let patch = json!({ "labels": labels });
        let is_unlabeled = |object: &Dependent| !object.has_labels(&labels);
        let selector = &source.frs.selector_text;
        let (owners, sets) = self.owners(selector, uid, is_unlabeled).await?;
        self.patch_all(Resource::ReplicaSets, sets, &patch).await?;
        let pods = self.dependents(Resource::Pods, selector, &owners, is_unlabeled);
        let pods = self.patch_all(Resource::Pods, pods.await?, &patch).await?;
        Ok(Outcome::PodsLabeled { pods, spec_version })
    }

    /// Removes our labels from the pods of the workload that was read as `live` (F5), then from the ReplicaSets of a Deployment.
    pub(super) async fn unlabel_pods(self, live: &LiveSet) -> Result<(), CallError> {
        let (name, federation) = (&self.key.name, &self.executor.federation);
        let own = [
            (labels::REPLICA_SET, &**name),
            (labels::FEDERATION, federation),
        ];
        let labeled = own
            .map(|(label, value)| format!("{label}={value}"))
            .join(",");
        let own = own.into();
        let bare = json!({
            "labels": { labels::REPLICA_SET: null, labels::FEDERATION: null },
            "annotations": { annotations::TEMPLATE_HASH: null },
        });
        let selector = selector::to_text(&live.spec.selector);
        let is_labeled = |set: &Dependent| set.has_labels(&own);
        let uid = &live.metadata.uid;
        if self.member.store.workload(self.key).pods.draining > 0 {
            let none = (0, Timestamp::UNIX_EPOCH);
            self.set_draining(&selector, uid, none).await?;
        }
        let (owners, sets) = self.owners(&selector, uid, is_labeled).await?;
        loop {
            let pods = self.dependents(Resource::Pods, &labeled, &owners, |_| true);
            let pods = pods.await?;
            let has_more = pods.has_more;
            self.patch_all(Resource::Pods, pods, &bare).await?;
            if !has_more {
                break;
            }
        }
        self.patch_all(Resource::ReplicaSets, sets, &bare).await?;
        Ok(())
    }

    /// The uids of the controllers of the pods of the workload with this uid, which `selector` matches: itself, or the
    /// ReplicaSets of a Deployment. And those of these ReplicaSets that `is_wanted` accepts.
    async fn owners(
        self,
        selector: &str,
        uid: &str,
        is_wanted: impl Fn(&Dependent) -> bool,
    ) -> Result<(HashSet<Uid>, Dependents), CallError> {
        let workload = HashSet::from([Uid::of(uid)]);
        if self.key.kind != LocalKind::Deployment {
            return Ok((workload, Dependents::default()));
        }
        let mut owners = HashSet::new();
        let sets = self.dependents(Resource::ReplicaSets, selector, &workload, |set| {
            if owners.len() < MAX_REPLICA_SETS {
                owners.insert(Uid::of(&set.metadata.uid));
            }
            is_wanted(set)
        });
        let sets = sets.await?;
        Ok((owners, sets))
    }

    /// The uids of the controllers of the pods of the workload with this uid, which `selector` matches.
    pub(super) async fn owners_of_pods(
        self,
        selector: &str,
        uid: &str,
    ) -> Result<HashSet<Uid>, CallError> {
        let (owners, _) = self.owners(selector, uid, |_| false).await?;
        Ok(owners)
    }

    /// The first objects that `selector` matches, of which one of `owners` is the controller, and that `is_wanted` accepts.
    async fn dependents(
        self,
        resource: Resource,
        selector: &str,
        owners: &HashSet<Uid>,
        mut is_wanted: impl FnMut(&Dependent) -> bool,
    ) -> Result<Dependents, CallError> {
        let mut found = Dependents::default();
        let list = self.list_each(resource, selector, |object: Dependent| {
            if object.metadata.controller.is_one_of(owners) && is_wanted(&object) {
                found.push(object.metadata);
            }
        });
        list.await.map(|()| found)
    }

    /// Calls `on_object` with each object that `selector` matches and that can be read.
    pub(super) async fn list_each<T: DeserializeOwned>(
        self,
        resource: Resource,
        selector: &str,
        mut on_object: impl FnMut(T),
    ) -> Result<(), CallError> {
        let settings = ReflectorSettings {
            page_timeout: self.executor.call_timeout,
            ..ReflectorSettings::default()
        };
        let client = self.member.client.clone();
        let collection = Collection::with_labels(self.path_of(resource), selector);
        let listed = reflector::list(client, collection, &settings, |object: Result<T, _>| {
            if let Ok(object) = object {
                on_object(object);
            }
        });
        let started = Instant::now();
        let listed = match timeout(LIST_TIMEOUT, listed).await {
            Ok(listed) => listed.map_err(CallError::List),
            Err(_) => Err(CallError::Deadline(LIST_TIMEOUT)),
        };
        let (metrics, error) = (&self.executor.metrics, listed.as_ref().err());
        metrics.called(&self.member.name, resource.list(), error, started.elapsed());
        listed
    }

    /// Merges `metadata` into the metadata of each object; returns how many of them still existed.
    async fn patch_all(
        self,
        resource: Resource,
        objects: Dependents,
        metadata: &Value,
    ) -> Result<usize, CallError> {
        let objects = objects.refs.into_iter();
        let patches = objects.map(|object| (object, metadata.clone()));
        self.patch_each(resource, patches).await
    }

    /// Merges metadata into that of its object; returns how many of the objects still existed.
    pub(super) async fn patch_each(
        self,
        resource: Resource,
        patches: impl IntoIterator<Item = (DependentRef, Value)>,
    ) -> Result<usize, CallError> {
        let collection = self.path_of(resource);
        let patch = async |(object, mut metadata): (DependentRef, Value)| {
            metadata["uid"] = (*object.uid).into();
            let path = format!("{collection}/{}", object.name);
            let patch = json!({ "metadata": metadata });
            let call = calls::merge_patch(&self.member.client, &path, &patch);
            match self.call(resource.patch(), call).await {
                // The object is gone, or another one has its name: none of our labels is left.
                Err(error) if matches!(error.code(), Some(404 | 409)) => Ok(0),
                answer => answer.map(|IgnoredAny| 1),
            }
        };
        stream::iter(patches)
            .map(patch)
            .buffer_unordered(CONCURRENT_WRITES)
            .try_fold(0, async |sum, written| Ok(sum + written))
            .await
    }

    fn path_of(self, resource: Resource) -> String {
        match resource {
            Resource::Pods => format!("/api/v1/namespaces/{}/pods", self.key.namespace),
            Resource::ReplicaSets => self.collection_of(LocalKind::ReplicaSet),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s5_what_is_kept_of_pods_has_a_limit() {
        let pod = |number: u32, label: &str| -> Dependent {
            let uid = format!("{number:036}");
            let pod = json!({ "metadata": {
                "name": format!("web-{number:05}"),
                "uid": uid,
                "labels": { labels::FEDERATION: label },
                "ownerReferences": [{ "uid": "set", "controller": true }],
            } });
            serde_json::from_str(&pod.to_string()).unwrap()
        };
        let kept = pod(0, &"x".repeat(1_000_000)).metadata.labels.0;
        assert_eq!(kept[labels::FEDERATION].len(), 64);
        let mut pods = Dependents::default();
        for number in 0..10_000 {
            pods.push(pod(number, "").metadata);
        }
        assert!(!pods.has_more);
        for number in 10_000..20_000 {
            pods.push(pod(number, "").metadata);
        }
        assert!(pods.has_more && pods.refs.len() < 15_000);
    }
}
