//! The marks on pods that a set did not make itself (F30), and on those of a set that is let go (F5).
//!
//! A pod is watched by its marks. One that a set adopted has none, and counts in the set's status alone, until it gets them.

use std::collections::BTreeMap;

use fedrs_api::{SetKey, ValidFrs, annotations, labels, names};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api,
    api::{ListParams, PartialObjectMeta, Patch, PatchParams},
};
use serde_json::{Value, json};

use super::{Executor, MemberAccess};
use crate::{calls::CallError, check::Outcome, manifest};

/// Pods that are written at the same time.
const AT_ONCE: usize = 8;
/// Pods in a page: their metadata take 2 KB each.
const PAGE: u32 = 500;

type PodMeta = PartialObjectMeta<Pod>;

impl Executor {
    /// Puts our marks on the pods of the set with this uid that have none (F30).
    pub(super) async fn label_pods(
        &self,
        frs: &ValidFrs,
        member: &MemberAccess,
        uid: &str,
        generation: i64,
    ) -> Result<Outcome, CallError> {
        let marks: BTreeMap<_, _> = manifest::own_labels(frs, &self.federation).into();
        let pods = self.pods(&frs.key, member, &frs.selector_text).await?;
        let unmarked = pods
            .into_iter()
            .filter(|pod| is_controlled_by(pod, uid) && !has_labels(pod, &marks))
            .collect();
        let pods = self
            .patch_pods(&frs.key, member, unmarked, &json!({ "labels": marks }))
            .await?;
        Ok(Outcome::PodsLabeled { pods, generation })
    }

    /// Takes our marks off the pods of the set with this uid (F5).
    pub(super) async fn unlabel_pods(
        &self,
        key: &SetKey,
        member: &MemberAccess,
        uid: &str,
    ) -> Result<(), CallError> {
        let selector = format!(
            "{}={},{}={}",
            labels::REPLICA_SET,
            key.name,
            labels::FEDERATION,
            self.federation
        );
        let mut pods = self.pods(key, member, &selector).await?;
        pods.retain(|pod| is_controlled_by(pod, uid));
        let bare = json!({
            "labels": { labels::REPLICA_SET: null, labels::FEDERATION: null },
            "annotations": { annotations::TEMPLATE_HASH: null },
        });
        self.patch_pods(key, member, pods, &bare).await?;
        Ok(())
    }

    /// The pods in the set's namespace that `selector` takes.
    async fn pods(
        &self,
        key: &SetKey,
        member: &MemberAccess,
        selector: &str,
    ) -> Result<Vec<PodMeta>, CallError> {
        let api: Api<Pod> = Api::namespaced(member.client.clone(), &key.namespace);
        let mut page = ListParams::default().labels(selector).limit(PAGE);
        let mut pods = Vec::new();
        loop {
            let list = self
                .call(member, "list pods", api.list_metadata(&page))
                .await?;
            pods.extend(list.items);
            match list.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => page = page.continue_token(&token),
                None => return Ok(pods),
            }
        }
    }

    /// Merges `metadata` into that of each of `pods`; answers how many were there to be changed.
    async fn patch_pods(
        &self,
        key: &SetKey,
        member: &MemberAccess,
        pods: Vec<PodMeta>,
        metadata: &Value,
    ) -> Result<usize, CallError> {
        let api: Api<Pod> = Api::namespaced(member.client.clone(), &key.namespace);
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
            match self.call(member, "mark pod", call).await {
                // Gone, or another of its name: nothing of ours is left on it.
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
}

fn is_controlled_by(pod: &PodMeta, uid: &str) -> bool {
    let mut owners = pod.metadata.owner_references.iter().flatten();
    owners.any(|owner| owner.controller == Some(true) && owner.uid == uid)
}

fn has_labels(pod: &PodMeta, labels: &BTreeMap<&str, &str>) -> bool {
    let of_pod = pod.metadata.labels.as_ref();
    labels
        .iter()
        .all(|(key, value)| of_pod.and_then(|it| it.get(*key)).map(String::as_str) == Some(*value))
}
