//! Small readings and changes of `metadata`.

use serde_json::{Value, json};

/// Keeps dependants: the garbage collector takes the owner reference off them, then this finalizer.
pub const ORPHAN_FINALIZER: &str = "orphan";
/// Waits for dependants: the garbage collector deletes them, then takes this finalizer off.
pub const FOREGROUND_FINALIZER: &str = "foregroundDeletion";

pub(crate) fn finalizers(object: &Value) -> Vec<String> {
    let listed = object
        .pointer("/metadata/finalizers")
        .and_then(Value::as_array);
    listed
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

pub(crate) fn set_finalizers(object: &mut Value, finalizers: &[String]) {
    if finalizers.is_empty() {
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("finalizers");
        }
    } else {
        object["metadata"]["finalizers"] = json!(finalizers);
    }
}

pub(crate) fn is_deleting(object: &Value) -> bool {
    object
        .pointer("/metadata/deletionTimestamp")
        .is_some_and(|time| !time.is_null())
}

pub(crate) fn grace_period(object: &Value) -> Option<i64> {
    object
        .pointer("/metadata/deletionGracePeriodSeconds")?
        .as_i64()
}

pub(crate) fn generation(object: &Value) -> i64 {
    let generation = object.pointer("/metadata/generation");
    generation.and_then(Value::as_i64).unwrap_or(0)
}

/// Takes a metadata field over from `old`, absence included.
pub(crate) fn keep(object: &mut Value, old: &Value, field: &str) {
    match old["metadata"].get(field) {
        Some(value) => object["metadata"][field] = value.clone(),
        None => remove(object, field),
    }
}

pub(crate) fn remove(object: &mut Value, field: &str) {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove(field);
    }
}
