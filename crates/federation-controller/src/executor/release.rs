//! Releases or deletes a local workload (F5).

use controller_base::calls::{self, CallError};
use fedrs_api::{DeletionPolicy, LocalKind, annotations, labels};
use planted_bugs::{PlantedBug, is_planted};
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use super::{LocalWorkload, live_set::LiveSet};

impl LocalWorkload<'_> {
    /// Releases or deletes the set with this uid. One that belongs to a controller or to another federation by now stays as
    /// it is.
    pub(super) async fn release_or_delete(
        self,
        uid: &str,
        policy: DeletionPolicy,
    ) -> Result<(), CallError> {
        let Some(live) = self.live(uid).await? else {
            self.member.store.observe_deletion(self.key, uid);
            return Ok(());
        };
        let is_foreign = self.foreign_owner(&live).is_some();
        if is_foreign && !is_planted(PlantedBug::OwnerIgnoredByDeletion) {
            return Ok(());
        }
        match policy {
            // The member's garbage collector deletes its pods.
            DeletionPolicy::Delete => self.delete(&live, "Background").await,
            DeletionPolicy::Orphan => self.release(&live, uid).await,
        }
    }

    /// The set as the member has it; `None` if it is gone, also if another one has its name.
    async fn live(self, uid: &str) -> Result<Option<LiveSet>, CallError> {
        match self.get().await {
            Err(error) if error.code() == Some(404) => Ok(None),
            answer => Ok(Some(answer?).filter(|live| live.metadata.uid == uid)),
        }
    }

    /// Removes our labels from the set and its pods, which keep running (F5) and may be adopted again.
    ///
    /// The labels of the template go first, so that pods created meanwhile have none. The labels of the set go last, because
    /// the next attempt finds the set by them. The template of a Deployment stays, with its labels: without them all pods would
    /// be replaced.
    async fn release(self, live: &LiveSet, uid: &str) -> Result<(), CallError> {
        if self.key.kind == LocalKind::ReplicaSet {
            let template = json!({ "spec": { "template": { "metadata": {
                "labels": { labels::REPLICA_SET: null, labels::FEDERATION: null },
                "annotations": { annotations::TEMPLATE_HASH: null },
            } } } });
            self.merge(live, template).await?;
        }
        match self.unlabel_pods(live).await {
            // Labels of pods mean nothing without the set: the deletion continues.
            Err(error) if error.is_rejection() => {
                let (frs, cluster) = (self.key, &*self.member.name);
                tracing::warn!(%frs, cluster, %error, "failed to remove the labels of the pods");
            }
            unlabeled => unlabeled?,
        }
        // The member's controller has written its status since.
        let Some(live) = self.live(uid).await? else {
            self.member.store.observe_deletion(self.key, uid);
            return Ok(());
        };
        if self.foreign_owner(&live).is_some() {
            return Ok(());
        }
        let bare = json!({ "metadata": { "labels": {
            labels::REPLICA_SET: null,
            labels::FEDERATION: null,
            labels::MEMBER_CLUSTER: null,
        } } });
        let released = self.merge(&live, bare).await?;
        let version = &released.metadata.resource_version;
        let store = &self.member.store;
        store.observe_release(self.key, uid, version);
        Ok(())
    }

    /// Merges `patch` into the set that was read as `live`, if it is still so.
    async fn merge(self, live: &LiveSet, mut patch: Value) -> Result<LiveSet, CallError> {
        patch["metadata"]["uid"] = live.metadata.uid.as_str().into();
        patch["metadata"]["resourceVersion"] = live.metadata.resource_version.as_str().into();
        let path = self.path();
        let call = calls::merge_patch(&self.member.client, &path, &patch);
        self.call("release", call).await
    }

    /// Deletes the set that was read as `live`, if it is still so; `propagation` says what becomes of its pods.
    pub(super) async fn delete(self, live: &LiveSet, propagation: &str) -> Result<(), CallError> {
        let uid = &live.metadata.uid;
        let options = json!({
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": propagation,
            "preconditions": {
                "uid": uid,
                "resourceVersion": live.metadata.resource_version,
            },
        });
        let path = self.path();
        let call = calls::delete(&self.member.client, &path, &options);
        match self.call("delete", call).await {
            Err(error) if error.code() == Some(404) => {}
            answer => {
                let IgnoredAny = answer?;
            }
        }
        self.member.store.observe_deletion(self.key, uid);
        Ok(())
    }
}
