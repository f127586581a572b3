//! The marker of a FederatedReplicaSet, which keeps a foreground deletion waiting (F5): made, and taken away.
//!
//! One object after another may have the same name: a marker of an earlier one would not keep anything waiting, and one
//! of a later one must not be taken away for an earlier one that was not seen to go.

use fedrs_api::SetKey;
use serde_json::{Value, json};

use super::Reconciler;
use crate::{
    calls::{self, CallError},
    deletion,
};

/// Whose the marker of a name is.
#[derive(Debug, PartialEq, Eq)]
enum Owner {
    /// It is that of the object with this uid.
    This,
    /// It is one that another object of this name left behind, or that was made for one since.
    Another,
}

impl Reconciler {
    /// Makes the marker of the object with `uid`. One that another object left behind is taken away first.
    pub(super) async fn make_marker(&self, key: &SetKey, uid: &str) -> Result<(), CallError> {
        let marker = deletion::marker(key, uid);
        let path = deletion::markers_path(key);
        let post = || self.host_call(calls::post(&self.host, &path, &marker));
        let error = match post().await {
            Err(error) if error.code() == Some(409) => error,
            answer => return answer.map(drop),
        };
        match self.marker(key, uid).await? {
            Some((_, Owner::This)) => Ok(()),
            Some((left_behind, Owner::Another)) => {
                self.remove(key, &left_behind).await?;
                Err(error)
            }
            None => Err(error),
        }
    }

    /// Takes the marker of the object with `uid` away; another object's stays.
    pub(super) async fn remove_marker(&self, key: &SetKey, uid: &str) -> Result<(), CallError> {
        match self.marker(key, uid).await? {
            Some((marker, Owner::This)) => self.remove(key, &marker).await,
            Some((_, Owner::Another)) | None => Ok(()),
        }
    }

    async fn marker(&self, key: &SetKey, uid: &str) -> Result<Option<(Value, Owner)>, CallError> {
        let path = deletion::marker_path(key);
        let found = self.host_call(calls::get(&self.host, &path)).await;
        let marker = if_there(found)?;
        Ok(marker.map(|marker| {
            let owner = owner(&marker, uid);
            (marker, owner)
        }))
    }

    /// Takes `marker` away, if it is still as it was seen.
    async fn remove(&self, key: &SetKey, marker: &Value) -> Result<(), CallError> {
        let path = deletion::marker_path(key);
        let metadata = &marker["metadata"];
        let bare = json!({
            "metadata": {
                "uid": metadata["uid"],
                "resourceVersion": metadata["resourceVersion"],
                "finalizers": null,
            },
        });
        let bared = self.host_call(calls::merge_patch(&self.host, &path, &bare));
        let Some(bared) = if_there(bared.await)? else {
            return Ok(());
        };
        let options = json!({
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {
                "uid": bared["metadata"]["uid"],
                "resourceVersion": bared["metadata"]["resourceVersion"],
            },
        });
        let deleted = self.host_call(calls::delete(&self.host, &path, &options));
        if_there(deleted.await).map(drop)
    }
}

/// Whose `marker` is, asked for the object with `uid`. One whose owner was taken out, by a deletion with
/// `--cascade=orphan`, is that object's: it is there as long as its marker is.
fn owner(marker: &Value, uid: &str) -> Owner {
    let owners = marker["metadata"]["ownerReferences"].as_array();
    let mut uids = owners.into_iter().flatten().map(|it| &it["uid"]).peekable();
    if uids.peek().is_none() || uids.any(|it| it == uid) {
        Owner::This
    } else {
        Owner::Another
    }
}

/// The answer, if the object is there.
pub(super) fn if_there(answer: Result<Value, CallError>) -> Result<Option<Value>, CallError> {
    match answer {
        Ok(object) => Ok(Some(object)),
        Err(error) if error.code() == Some(404) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_is_of_the_object_that_owns_it() {
        let owned = |uids: &[&str]| {
            let owners: Vec<_> = uids.iter().map(|uid| json!({ "uid": uid })).collect();
            json!({ "metadata": { "ownerReferences": owners } })
        };
        for (marker, expected) in [
            (
                deletion::marker(&SetKey::new("default", "web"), "u"),
                Owner::This,
            ),
            (owned(&["somebody", "u"]), Owner::This),
            (owned(&["earlier"]), Owner::Another),
            (owned(&[]), Owner::This),
            (json!({ "metadata": {} }), Owner::This),
        ] {
            assert_eq!(owner(&marker, "u"), expected, "{marker}");
        }
    }
}
