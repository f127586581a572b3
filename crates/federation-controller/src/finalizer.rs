//! The finalizer of a FederatedReplicaSet, [`finalizers::MEMBERS`] (F5): it is added before the first local ReplicaSet is
//! created, and removed when the members are released. No other object has a finalizer of fedrs.

use fedrs_api::finalizers;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

/// Whether the object has the finalizer.
pub(crate) fn is_present(metadata: &ObjectMeta) -> bool {
    let finalizers = metadata.finalizers.iter().flatten();
    finalizers
        .into_iter()
        .any(|finalizer| finalizer == finalizers::MEMBERS)
}

/// A merge patch that adds the finalizer.
pub(crate) fn addition(metadata: &ObjectMeta) -> Value {
    patch(metadata, Some(finalizers::MEMBERS))
}

/// A merge patch that removes the finalizer.
pub(crate) fn removal(metadata: &ObjectMeta) -> Value {
    patch(metadata, None)
}

/// The finalizers of others.
pub(crate) fn others(metadata: &ObjectMeta) -> Vec<&str> {
    let finalizers = metadata.finalizers.iter().flatten();
    finalizers
        .map(String::as_str)
        .filter(|finalizer| *finalizer != finalizers::MEMBERS)
        .collect()
}

/// Keeps the finalizers of others. Conditional on the version that was read: a merge patch replaces the whole list.
fn patch(metadata: &ObjectMeta, own: Option<&str>) -> Value {
    let others = others(metadata).into_iter();
    json!({
        "metadata": {
            "uid": metadata.uid,
            "resourceVersion": metadata.resource_version,
            "finalizers": others.chain(own).collect::<Vec<_>>(),
        },
    })
}
