//! Deleting a FederatedReplicaSet (F5): its local sets are released or deleted before it goes.
//!
//! ```text
//! deletionTimestamp --> orphan or delete? --> each member: release / delete its set --> marker --> finalizer
//! ```
//!
//! With `--cascade=foreground` Kubernetes' garbage collector takes its finalizer off at once unless a dependant
//! blocks. So every FederatedReplicaSet owns a marker on the host that does: it keeps the finalizer, and with it
//! the user's intent, until the members are done.

use fedrs_api::{DeletionPolicy, FederatedReplicaSet, SetKey, finalizers, labels, names};
use jiff::Timestamp;
use serde_json::{Value, json};

/// What the garbage collector puts on an object that is deleted with `--cascade=foreground`.
const FOREGROUND: &str = "foregroundDeletion";

/// What becomes of the local sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// They go on running without our marks.
    Release,
    /// They are deleted with their pods.
    Delete,
}

/// What becomes of the local sets of `frs`, which is being deleted (F5).
pub(crate) fn fate(frs: &FederatedReplicaSet) -> Fate {
    let foreground = has_finalizer(frs, FOREGROUND);
    if foreground || frs.spec.deletion_policy == DeletionPolicy::Delete {
        Fate::Delete
    } else {
        Fate::Release
    }
}

pub(crate) fn has_finalizer(frs: &FederatedReplicaSet, finalizer: &str) -> bool {
    frs.metadata
        .finalizers
        .iter()
        .flatten()
        .any(|it| it == finalizer)
}

/// Until when members that don't answer are waited for (F5).
pub(crate) fn deadline(frs: &FederatedReplicaSet, patience: std::time::Duration) -> Timestamp {
    let since = frs.metadata.deletion_timestamp.as_ref();
    since.map_or(Timestamp::MIN, |time| crate::check::after(time.0, patience))
}

/// The marker's name: FRS names are DNS labels, so no other FRS's marker has it.
fn marker_name(key: &SetKey) -> String {
    format!("{}.cascade.fedrs.dev", key.name)
}

/// The path of markers.
pub(crate) fn markers_path(key: &SetKey) -> String {
    format!(
        "/apis/apps/v1/namespaces/{}/controllerrevisions",
        key.namespace
    )
}

/// The path of the marker of `key`.
pub(crate) fn marker_path(key: &SetKey) -> String {
    format!("{}/{}", markers_path(key), marker_name(key))
}

/// The marker: a dependant that blocks, with a finalizer of ours.
pub(crate) fn marker(key: &SetKey, uid: &str) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": marker_name(key),
            "namespace": &*key.namespace,
            "finalizers": [finalizers::CASCADE],
            "labels": { labels::REPLICA_SET: &*key.name },
            "ownerReferences": [{
                "apiVersion": names::API_VERSION,
                "kind": "FederatedReplicaSet",
                "name": &*key.name,
                "uid": uid,
                "controller": true,
                "blockOwnerDeletion": true,
            }],
        },
        "revision": 1,
        "data": { "purpose": "keeps a foreground deletion waiting for the members" },
    })
}

/// A patch that leaves `frs` without `finalizer`, or with it; conditional on its version.
pub(crate) fn finalizer_patch(frs: &FederatedReplicaSet, finalizer: &str, present: bool) -> Value {
    let mut finalizers: Vec<&str> = frs
        .metadata
        .finalizers
        .iter()
        .flatten()
        .map(String::as_str)
        .collect();
    finalizers.retain(|it| *it != finalizer);
    if present {
        finalizers.push(finalizer);
    }
    json!({
        "metadata": {
            "uid": frs.metadata.uid,
            "resourceVersion": frs.metadata.resource_version,
            "finalizers": finalizers,
        },
    })
}
