//! Releases or deletes a local set (F5).

use fedrs_api::DeletionPolicy;
use serde_json::{Value, json};

use super::LocalSet;
use crate::{
    calls::{self, CallError},
    manifest,
};

impl LocalSet<'_> {
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
        if self.foreign_owner(&live).is_some() {
            return Ok(());
        }
        match policy {
            // The member's garbage collector deletes its pods.
            DeletionPolicy::Delete => self.delete(&live, "Background").await,
            DeletionPolicy::Orphan => self.release(live, uid).await,
        }
    }

    /// The set as the member has it; another one of its name is none of ours.
    async fn live(self, uid: &str) -> Result<Option<Value>, CallError> {
        match self.get().await {
            Err(error) if error.code() == Some(404) => Ok(None),
            answer => Ok(Some(answer?).filter(|live| live["metadata"]["uid"] == uid)),
        }
    }

    /// Removes our labels from the set and its pods, which keep running (F5) and may be adopted again.
    ///
    /// The labels of the template go first, so that pods created meanwhile have none. The labels of the set go last, because
    /// the next attempt finds the set by them.
    async fn release(self, mut live: Value, uid: &str) -> Result<(), CallError> {
        manifest::release_template(&mut live);
        self.put_released(&live).await?;
        match self.unlabel_pods(uid).await {
            // Labels of pods mean nothing without the set: the deletion continues.
            Err(error) if error.is_rejection() => {
                let (frs, cluster) = (self.key, &*self.member.name);
                tracing::warn!(%frs, cluster, %error, "failed to remove the labels of the pods");
            }
            unlabeled => unlabeled?,
        }
        // The member's controller has written its status since.
        let Some(mut live) = self.live(uid).await? else {
            self.member.store.observe_deletion(self.key, uid);
            return Ok(());
        };
        if self.foreign_owner(&live).is_some() {
            return Ok(());
        }
        manifest::release(&mut live);
        let released = self.put_released(&live).await?;
        let version = released["metadata"]["resourceVersion"].as_str();
        let store = &self.member.store;
        store.observe_release(self.key, uid, version.unwrap_or_default());
        Ok(())
    }

    async fn put_released(self, live: &Value) -> Result<Value, CallError> {
        let path = self.path();
        self.call("release", calls::put(&self.member.client, &path, live))
            .await
    }

    /// Deletes the set that was read as `live`, if it is still so; `propagation` says what becomes of its pods.
    pub(super) async fn delete(self, live: &Value, propagation: &str) -> Result<(), CallError> {
        let uid = live["metadata"]["uid"].as_str().unwrap_or_default();
        let options = json!({
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": propagation,
            "preconditions": {
                "uid": uid,
                "resourceVersion": live["metadata"]["resourceVersion"],
            },
        });
        let path = self.path();
        let call = calls::delete(&self.member.client, &path, &options);
        match self.call("delete", call).await {
            Err(error) if error.code() == Some(404) => {}
            answer => drop(answer?),
        }
        self.member.store.observe_deletion(self.key, uid);
        Ok(())
    }
}
