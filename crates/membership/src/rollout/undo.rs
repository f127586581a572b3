//! Undo: the template of an earlier revision becomes that of the spec.

use std::collections::BTreeMap;

use fedrs_api::annotations;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

use super::{
    error::Error,
    history::{Revision, history},
    kind::RolloutKind,
    target::{Change, Target},
};

/// What an undo did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undo {
    /// The spec has the template of the revision of this number again.
    RolledBack {
        /// The number. The controller gives the revision a new one.
        revision: i64,
        /// Whether `spec.paused` stops the rollout of it.
        is_paused: bool,
    },
    /// The spec had it.
    AlreadyThere {
        /// The number.
        revision: i64,
    },
}

/// Rolls back to the revision of a number, or to the latest one whose template differs from that of the spec.
///
/// In contrast to `kubectl` also while the rollout is paused: who stopped a bad revision must not have to let it go on first.
pub async fn undo<K: RolloutKind>(target: Target<'_, K>, to: Option<i64>) -> Result<Undo, Error> {
    let history = history(target).await?;
    let revision = match to {
        Some(number) => history.find(number)?,
        None => history.previous()?,
    };
    target.change(|object| Ok(decide(object, revision))).await
}

fn decide<K: RolloutKind>(object: &K, to: &Revision) -> (Option<Change>, Undo) {
    let revision = to.revision;
    let fields = object.revision_fields();
    let mut different = to.different_fields(&fields).peekable();
    if different.peek().is_none() {
        return (None, Undo::AlreadyThere { revision });
    }
    // Adds the field, or replaces it with all that is in it.
    let set = different.map(
        |(name, value)| json!({ "op": "add", "path": format!("/spec/{name}"), "value": value }),
    );
    let cause = change_cause(object.meta(), to.change_cause.as_deref());
    let operations = set.chain(cause).collect();
    let is_paused = object.is_paused();
    let undone = Undo::RolledBack {
        revision,
        is_paused,
    };
    (Some(Change::Operations(operations)), undone)
}

/// The operation that gives the object the change cause of the revision, as `kubectl` does: that of the template that is left
/// would be wrong.
fn change_cause(metadata: &ObjectMeta, cause: Option<&str>) -> Option<Value> {
    const ANNOTATIONS: &str = "/metadata/annotations";
    let key = annotations::CHANGE_CAUSE;
    let path = || format!("{ANNOTATIONS}/{}", key.replace('/', "~1"));
    let present = metadata.annotations.as_ref();
    match cause {
        None => present
            .is_some_and(|present| present.contains_key(key))
            .then(|| json!({ "op": "remove", "path": path() })),
        Some(cause) if present.is_none_or(BTreeMap::is_empty) => {
            Some(json!({ "op": "add", "path": ANNOTATIONS, "value": { key: cause } }))
        }
        Some(cause) => Some(json!({ "op": "add", "path": path(), "value": cause })),
    }
}

#[cfg(test)]
#[path = "undo_tests.rs"]
mod tests;
