//! The end of a local set, or of fedrs's hold on it.

use cluster_informer::SetFact;
use fedrs_api::SetKey;
use serde_json::json;

use super::{CallError, Executor, MemberAccess, set_path};
use crate::{calls, deletion::Fate, manifest};

impl Executor {
    /// Finishes a local set of a FederatedReplicaSet that is being deleted (F5).
    pub(crate) async fn finish_set(
        &self,
        key: &SetKey,
        member: &MemberAccess,
        set: &SetFact,
        fate: Fate,
    ) -> Result<(), CallError> {
        let _turn = member.turn().await;
        match fate {
            // Its pods go with it; the member's garbage collector sees to that.
            Fate::Delete => self.delete_set(key, member, &set.uid, "Background").await,
            Fate::Release => self.release_set(key, member, set).await,
        }
    }

    /// Deletes the local set with this uid; `propagation` says what becomes of its pods.
    pub(super) async fn delete_set(
        &self,
        key: &SetKey,
        member: &MemberAccess,
        uid: &str,
        propagation: &str,
    ) -> Result<(), CallError> {
        let options = json!({
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": propagation,
            "preconditions": { "uid": uid },
        });
        let path = set_path(key);
        let call = calls::delete(&member.client, &path, &options);
        match self.call(member, "delete", call).await {
            Err(error) if error.code() == Some(404) => {}
            answer => drop(answer?),
        }
        member.store.observe_deleted(key, uid);
        Ok(())
    }

    /// Takes our marks off the local set and its pods, which go on running (F5).
    ///
    /// The set's own come last: they are what the next try finds it by, if this one is cut short.
    async fn release_set(
        &self,
        key: &SetKey,
        member: &MemberAccess,
        set: &SetFact,
    ) -> Result<(), CallError> {
        let path = set_path(key);
        let mut live = match self
            .call(member, "get", calls::get(&member.client, &path))
            .await
        {
            Err(error) if error.code() == Some(404) => return Ok(()),
            answer => answer?,
        };
        if live["metadata"]["uid"] == set.uid.as_str() {
            manifest::release_template(&mut live);
            let call = calls::put(&member.client, &path, &live);
            live = self.call(member, "release", call).await?;
            self.unmark_pods(key, member, &set.uid).await?;
            manifest::release(&mut live);
            let call = calls::put(&member.client, &path, &live);
            self.call(member, "release", call).await?;
        }
        member.store.observe_deleted(key, &set.uid);
        Ok(())
    }
}
