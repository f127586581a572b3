//! fedrs's labels on pods that a local ReplicaSet adopted (F30), and on the pods of a local ReplicaSet that is released (F5).
//!
//! The watch selects pods by these labels. An adopted pod has none at first, and counts only in the status of its set.

use std::{collections::BTreeMap, time::Duration};

use fedrs_api::{ValidFrs, annotations, labels};
use futures::{StreamExt, TryStreamExt, stream};
use reflector::{
    Collection, ReflectorSettings, Uid,
    partial::{self, for_each_entry, for_each_item, null_as_default},
};
use serde::{Deserialize, Deserializer, de::IgnoredAny};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use super::{LocalWorkload, live_set::label};
use crate::{
    calls::{self, CallError},
    check::Outcome,
    manifest,
};

/// Concurrent writes of pods.
const CONCURRENT_WRITES: usize = 8;
/// What the pods that are written at once may take, in bytes: ten thousand usual ones.
const MAX_BYTES: usize = 1 << 20;
/// The longest that all pages of pods may take together.
const LIST_TIMEOUT: Duration = Duration::from_secs(60);

/// A pod, as far as its labels are concerned.
#[derive(Deserialize)]
struct Pod {
    metadata: PodMeta,
}

#[derive(Deserialize)]
struct PodMeta {
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

/// Our labels of a pod.
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

/// The uid of the pod's controller.
#[derive(Default)]
struct ControllerUid(Option<Uid>);

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

/// Pods to write.
#[derive(Default)]
struct Pods {
    refs: Vec<PodRef>,
    bytes: usize,
    /// Whether there are more.
    has_more: bool,
}

/// What is kept of a pod to write.
struct PodRef {
    name: Box<str>,
    uid: Box<str>,
}

impl Pods {
    fn push(&mut self, PodMeta { name, uid, .. }: PodMeta) {
        let bytes = self.bytes + size_of::<PodRef>() + name.len() + uid.len();
        if bytes > MAX_BYTES {
            self.has_more = true;
        } else {
            self.bytes = bytes;
            self.refs.push(PodRef { name, uid });
        }
    }
}

impl Pod {
    fn has_labels(&self, labels: &BTreeMap<&str, &str>) -> bool {
        let own = &self.metadata.labels.0;
        labels
            .iter()
            .all(|(key, value)| own.get(*key).map(String::as_str) == Some(*value))
    }
}

impl LocalWorkload<'_> {
    /// Adds our labels to the pods of the set with this uid that have none (F30). Of very many, the next check labels the
    /// others.
    pub(super) async fn label_pods(
        self,
        frs: &ValidFrs,
        uid: &str,
        generation: i64,
    ) -> Result<Outcome, CallError> {
        let labels: BTreeMap<_, _> = manifest::own_labels(frs, &self.executor.federation).into();
        let is_unlabeled = |pod: &Pod| !pod.has_labels(&labels);
        let pods = self.pods(&frs.selector_text, uid, is_unlabeled).await?;
        let pods = self.patch_pods(pods, &json!({ "labels": labels })).await?;
        Ok(Outcome::PodsLabeled { pods, generation })
    }

    /// Removes our labels from the pods of the set with this uid (F5).
    pub(super) async fn unlabel_pods(self, uid: &str) -> Result<(), CallError> {
        let (name, federation) = (&self.key.name, &self.executor.federation);
        let own = [
            (labels::REPLICA_SET, name),
            (labels::FEDERATION, federation),
        ];
        let selector = own
            .map(|(label, value)| format!("{label}={value}"))
            .join(",");
        let bare = json!({
            "labels": { labels::REPLICA_SET: null, labels::FEDERATION: null },
            "annotations": { annotations::TEMPLATE_HASH: null },
        });
        loop {
            let pods = self.pods(&selector, uid, |_| true).await?;
            let has_more = pods.has_more;
            self.patch_pods(pods, &bare).await?;
            if !has_more {
                return Ok(());
            }
        }
    }

    /// The first pods of the set with this uid that `selector` matches and `is_wanted` accepts.
    async fn pods(
        self,
        selector: &str,
        uid: &str,
        is_wanted: impl Fn(&Pod) -> bool,
    ) -> Result<Pods, CallError> {
        let settings = ReflectorSettings {
            page_timeout: self.executor.call_timeout,
            ..ReflectorSettings::default()
        };
        let (mut pods, owner) = (Pods::default(), Uid::of(uid));
        let client = self.member.client.clone();
        let collection = Collection::with_labels(self.pods_path(), selector);
        let listed = reflector::list(client, collection, &settings, |pod: Result<Pod, _>| {
            if let Ok(pod) = pod
                && pod.metadata.controller.0 == Some(owner)
                && is_wanted(&pod)
            {
                pods.push(pod.metadata);
            }
        });
        let started = Instant::now();
        let listed = match timeout(LIST_TIMEOUT, listed).await {
            Ok(listed) => listed.map_err(CallError::List),
            Err(_) => Err(CallError::Deadline(LIST_TIMEOUT)),
        };
        let (metrics, error) = (&self.executor.metrics, listed.as_ref().err());
        metrics.called(&self.member.name, "list pods", error, started.elapsed());
        listed.map(|()| pods)
    }

    /// Merges `metadata` into the metadata of each pod; returns how many pods still existed.
    async fn patch_pods(self, pods: Pods, metadata: &Value) -> Result<usize, CallError> {
        let collection = self.pods_path();
        let patch = async |pod: PodRef| {
            let mut metadata = metadata.clone();
            metadata["uid"] = (*pod.uid).into();
            let path = format!("{collection}/{}", pod.name);
            let patch = json!({ "metadata": metadata });
            let call = calls::merge_patch(&self.member.client, &path, &patch);
            match self.call("patch pod", call).await {
                // The pod is gone, or another one has its name: none of our labels is left.
                Err(error) if matches!(error.code(), Some(404 | 409)) => Ok(0),
                answer => answer.map(|IgnoredAny| 1),
            }
        };
        stream::iter(pods.refs)
            .map(patch)
            .buffer_unordered(CONCURRENT_WRITES)
            .try_fold(0, async |sum, pods| Ok(sum + pods))
            .await
    }

    fn pods_path(self) -> String {
        format!("/api/v1/namespaces/{}/pods", self.key.namespace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s5_what_is_kept_of_pods_has_a_limit() {
        let pod = |number: u32, label: &str| -> Pod {
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
        let mut pods = Pods::default();
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
