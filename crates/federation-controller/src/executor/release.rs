//! Releases or deletes a local set (F5).

use cluster_informer::WorkloadState;
use fedrs_api::{DeletionPolicy, SetKey};
use serde_json::{Value, json};

use super::{Executor, MemberAccess, foreign_owner, set_path};
use crate::{
    calls::{self, CallError},
    manifest,
};

impl Executor {
    /// Finishes a local set of a FederatedReplicaSet that is being deleted (F5). One that belongs to a controller or to
    /// another federation by now stays as it is.
    pub(crate) async fn release_or_delete(
        &self,
        key: &SetKey,
        member: &MemberAccess,
        set: &WorkloadState,
        policy: DeletionPolicy,
    ) -> Result<(), CallError> {
        let _turn = member.turn().await;
        let Some(live) = self.live(key, member, &set.uid).await? else {
            member.store.observe_deletion(key, &set.uid);
            return Ok(());
        };
        if foreign_owner(&live, &self.federation).is_some() {
            return Ok(());
        }
        match policy {
            // The member's garbage collector deletes its pods.
            DeletionPolicy::Delete => self.delete_set(key, member, &live, "Background").await,
            DeletionPolicy::Orphan => self.release_set(key, member, live, &set.uid).await,
        }
    }

    /// The local set as the member has it; another one of its name is none of ours.
    async fn live(
        &self,
        key: &SetKey,
        member: &MemberAccess,
        uid: &str,
    ) -> Result<Option<Value>, CallError> {
        let path = set_path(key);
        let call = calls::get(&member.client, &path);
        match self.call(member, "get", call).await {
            Err(error) if error.code() == Some(404) => Ok(None),
            answer => Ok(Some(answer?).filter(|live| live["metadata"]["uid"] == uid)),
        }
    }

    /// Removes our labels from the local set and its pods, which keep running (F5) and may be adopted again.
    ///
    /// The labels of the template go first, so that pods created meanwhile have none. The labels of the set go last, because
    /// the next attempt finds the set by them.
    async fn release_set(
        &self,
        key: &SetKey,
        member: &MemberAccess,
        mut live: Value,
        uid: &str,
    ) -> Result<(), CallError> {
        let path = set_path(key);
        manifest::release_template(&mut live);
        let call = calls::put(&member.client, &path, &live);
        self.call(member, "release", call).await?;
        match self.unlabel_pods(key, member, uid).await {
            // Labels of pods mean nothing without the set: the deletion continues.
            Err(error) if error.is_rejection() => {
                let cluster = &*member.name;
                tracing::warn!(frs = %key, cluster, %error, "failed to remove the labels of the pods");
            }
            unmarked => unmarked?,
        }
        // The member's controller has written its status since.
        let Some(mut live) = self.live(key, member, uid).await? else {
            member.store.observe_deletion(key, uid);
            return Ok(());
        };
        if foreign_owner(&live, &self.federation).is_some() {
            return Ok(());
        }
        manifest::release(&mut live);
        let call = calls::put(&member.client, &path, &live);
        let released = self.call(member, "release", call).await?;
        let version = released["metadata"]["resourceVersion"].as_str();
        let version = version.unwrap_or_default();
        member.store.observe_release(key, uid, version);
        Ok(())
    }

    /// Deletes the local set that was read as `live`, if it is still so; `propagation` says what becomes of its pods.
    pub(super) async fn delete_set(
        &self,
        key: &SetKey,
        member: &MemberAccess,
        live: &Value,
        propagation: &str,
    ) -> Result<(), CallError> {
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
        let path = set_path(key);
        let call = calls::delete(&member.client, &path, &options);
        match self.call(member, "delete", call).await {
            Err(error) if error.code() == Some(404) => {}
            answer => drop(answer?),
        }
        member.store.observe_deletion(key, uid);
        Ok(())
    }
}
