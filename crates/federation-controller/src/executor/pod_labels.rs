//! fedrs's labels on pods that a local set adopted (F30), and on the pods of a local set that is released (F5).
//!
//! The watch selects pods by these labels. An adopted pod has none at first, and counts only in the status of its set.

use std::collections::BTreeMap;

use fedrs_api::{ValidFrs, annotations, labels, names};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api,
    api::{ListParams, PartialObjectMeta, Patch, PatchParams},
};
use serde_json::{Value, json};

use super::LocalSet;
use crate::{calls::CallError, check::Outcome, manifest};

/// Concurrent writes of pods.
const AT_ONCE: usize = 8;
/// Pods in a page: their metadata take 2 KB each.
const PAGE: u32 = 500;

type PodMeta = PartialObjectMeta<Pod>;

impl LocalSet<'_> {
    /// Adds our labels to the pods of the set with this uid that have none (F30).
    pub(super) async fn label_pods(
        self,
        frs: &ValidFrs,
        uid: &str,
        generation: i64,
    ) -> Result<Outcome, CallError> {
        let labels: BTreeMap<_, _> = manifest::own_labels(frs, &self.executor.federation).into();
        let mut pods = self.pods(&frs.selector_text).await?;
        pods.retain(|pod| is_controlled_by(pod, uid) && !has_labels(pod, &labels));
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
        let mut pods = self.pods(&selector).await?;
        pods.retain(|pod| is_controlled_by(pod, uid));
        let bare = json!({
            "labels": { labels::REPLICA_SET: null, labels::FEDERATION: null },
            "annotations": { annotations::TEMPLATE_HASH: null },
        });
        self.patch_pods(pods, &bare).await?;
        Ok(())
    }

    /// The pods in the namespace of the set that `selector` matches.
    async fn pods(self, selector: &str) -> Result<Vec<PodMeta>, CallError> {
        let api = self.pod_api();
        let mut page = ListParams::default().labels(selector).limit(PAGE);
        let mut pods = Vec::new();
        loop {
            let list = self.call("list pods", api.list_metadata(&page)).await?;
            pods.extend(list.items);
            match list.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => page = page.continue_token(&token),
                None => return Ok(pods),
            }
        }
    }

    /// Merges `metadata` into the metadata of each pod; answers how many pods still existed.
    async fn patch_pods(self, pods: Vec<PodMeta>, metadata: &Value) -> Result<usize, CallError> {
        let api = self.pod_api();
        let params = PatchParams {
            field_manager: Some(names::FIELD_MANAGER.to_owned()),
            ..PatchParams::default()
        };
        let patch = async |pod: PodMeta| {
            let (Some(name), Some(uid)) = (pod.metadata.name, pod.metadata.uid) else {
                return Err(CallError::Answer("a pod without name or uid".to_owned()));
            };
            let mut metadata = metadata.clone();
            metadata["uid"] = uid.into();
            let patch = Patch::Merge(json!({ "metadata": metadata }));
            let call = api.patch_metadata(&name, &params, &patch);
            match self.call("mark pod", call).await {
                // The pod is gone, or another one has its name: none of our labels is left.
                Err(error) if matches!(error.code(), Some(404 | 409)) => Ok(0),
                answer => answer.map(|_| 1),
            }
        };
        stream::iter(pods)
            .map(patch)
            .buffer_unordered(AT_ONCE)
            .try_fold(0, async |sum, pods| Ok(sum + pods))
            .await
    }

    fn pod_api(self) -> Api<Pod> {
        Api::namespaced(self.member.client.clone(), &self.key.namespace)
    }
}

fn is_controlled_by(pod: &PodMeta, uid: &str) -> bool {
    let mut owners = pod.metadata.owner_references.iter().flatten();
    owners.any(|owner| owner.controller == Some(true) && owner.uid == uid)
}

fn has_labels(pod: &PodMeta, labels: &BTreeMap<&str, &str>) -> bool {
    let of_pod = pod.metadata.labels.as_ref();
    labels.iter().all(|(key, value)| {
        of_pod
            .and_then(|labels| labels.get(*key))
            .map(String::as_str)
            == Some(*value)
    })
}
