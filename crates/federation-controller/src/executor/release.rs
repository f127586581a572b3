//! The end of a local set, or of fedrs's hold on it.

use cluster_informer::WorkloadState;
use fedrs_api::{DeletionPolicy, SetKey};
use serde_json::{Value, json};

use super::{Executor, MemberAccess, set_path};
use crate::{
    calls::{self, CallError},
    manifest,
};

impl Executor {
    /// Finishes a local set of a FederatedReplicaSet that is being deleted (F5).
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
        match policy {
            // Its pods go with it; the member's garbage collector sees to that.
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

    /// Takes our marks off the local set and its pods, which go on running (F5), and may become ours again.
    ///
    /// Pods that are made meanwhile must have none, so the template's go first. The set's own go last: they are what the next
    /// try finds it by, if this one is cut short.
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
            // Marks that stay on pods mean nothing without a set: not worth holding the deletion up.
            Err(error) if error.is_refusal() => {
                let cluster = &*member.name;
                tracing::warn!(frs = %key, cluster, %error, "its pods keep our marks");
            }
            unmarked => unmarked?,
        }
        // The member's controller has written its status since.
        let Some(mut live) = self.live(key, member, uid).await? else {
            member.store.observe_deletion(key, uid);
            return Ok(());
        };
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
