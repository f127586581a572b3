//! Finalizers of objects: whether an object has one, and the patches that add and remove it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

/// Whether the object has the finalizer.
#[must_use]
pub fn is_present(metadata: &ObjectMeta, finalizer: &str) -> bool {
    let mut finalizers = metadata.finalizers.iter().flatten();
    finalizers.any(|each| each == finalizer)
}

/// A merge patch that adds the finalizer.
#[must_use]
pub fn addition(metadata: &ObjectMeta, finalizer: &str) -> Value {
    patch(metadata, finalizer, Some(finalizer))
}

/// A merge patch that removes the finalizer.
#[must_use]
pub fn removal(metadata: &ObjectMeta, finalizer: &str) -> Value {
    patch(metadata, finalizer, None)
}

/// The other finalizers.
#[must_use]
pub fn others<'a>(metadata: &'a ObjectMeta, finalizer: &str) -> Vec<&'a str> {
    let finalizers = metadata.finalizers.iter().flatten();
    let finalizers = finalizers.map(String::as_str);
    finalizers.filter(|each| *each != finalizer).collect()
}

/// Keeps the finalizers of others. Conditional on the version that was read: a merge patch replaces the whole list.
fn patch(metadata: &ObjectMeta, finalizer: &str, own: Option<&str>) -> Value {
    let others = others(metadata, finalizer).into_iter();
    json!({
        "metadata": {
            "uid": metadata.uid,
            "resourceVersion": metadata.resource_version,
            "finalizers": others.chain(own).collect::<Vec<_>>(),
        },
    })
}
