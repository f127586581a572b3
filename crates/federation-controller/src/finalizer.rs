//! The finalizer of a FederatedReplicaSet, [`finalizers::MEMBERS`] (F5): it is added before the first local workload is
//! created, and removed when the members are released. No other object has a finalizer of fedrs.

use fedrs_api::{FederatedReplicaSet, finalizers};
use serde_json::{Value, json};

/// Whether `frs` has the finalizer.
pub(crate) fn is_present(frs: &FederatedReplicaSet) -> bool {
    let finalizers = frs.metadata.finalizers.iter().flatten();
    finalizers
        .into_iter()
        .any(|finalizer| finalizer == finalizers::MEMBERS)
}

/// A merge patch that adds the finalizer.
pub(crate) fn addition(frs: &FederatedReplicaSet) -> Value {
    patch(frs, Some(finalizers::MEMBERS))
}

/// A merge patch that removes the finalizer.
pub(crate) fn removal(frs: &FederatedReplicaSet) -> Value {
    patch(frs, None)
}

/// Keeps the finalizers of others. Conditional on the version that was read: a merge patch replaces the whole list.
fn patch(frs: &FederatedReplicaSet, own: Option<&str>) -> Value {
    let finalizers = frs.metadata.finalizers.iter().flatten();
    let others = finalizers
        .map(String::as_str)
        .filter(|finalizer| *finalizer != finalizers::MEMBERS);
    json!({
        "metadata": {
            "uid": frs.metadata.uid,
            "resourceVersion": frs.metadata.resource_version,
            "finalizers": others.chain(own).collect::<Vec<_>>(),
        },
    })
}
