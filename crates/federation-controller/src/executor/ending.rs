//! The end of a local set, or of fedrs's hold on it.

use cluster_informer::SetFact;
use fedrs_api::SetKey;
use serde_json::{Value, json};

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
        let path = set_path(key);
        let live = match self
            .call(member, "get", calls::get(&member.client, &path))
            .await
        {
            Err(error) if error.code() == Some(404) => None,
            answer => Some(answer?),
        };
        // Another one of this name is none of ours.
        let live = live.filter(|live| live["metadata"]["uid"] == set.uid.as_str());
        match (live, fate) {
            (None, _) => {}
            // Its pods go with it; the member's garbage collector sees to that.
            (Some(live), Fate::Delete) => {
                return self.delete_set(key, member, &live, "Background").await;
            }
            (Some(mut live), Fate::Release) => {
                manifest::release(&mut live);
                self.call(member, "release", calls::put(&member.client, &path, &live))
                    .await?;
            }
        }
        member.store.observe_deleted(key, &set.uid);
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
        member.store.observe_deleted(key, uid);
        Ok(())
    }
}
