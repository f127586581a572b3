//! Kubernetes objects as JSON: the type they are stored as, and how the rest of the crate reads and edits them.
//!
//! ```text
//! Object (shared JSON) -> at, text, integer, list, ... by path -> name, uid, finalizers, conditions
//! ```
//!
//! A path names nested fields, `/spec/nodeName`. An absent field reads as empty, false or `None`, as Go's zero values do.
//! Nothing here validates: the API server does that on every write.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::clock::to_time;

/// A stored object: shared between readers, never changed in place.
pub type Object = Arc<Value>;

/// The owner keeps its dependents: the garbage collector removes the owner references, then this finalizer.
pub(crate) const ORPHAN_FINALIZER: &str = "orphan";
/// The owner waits for its dependents: the garbage collector deletes them, then removes this finalizer.
pub(crate) const FOREGROUND_FINALIZER: &str = "foregroundDeletion";

/// The value at a path, unless it is null. Unlike [`Value::pointer`] this allocates nothing and knows no escapes: field
/// names with a slash (annotations, labels) have to be looked up in their map.
pub(crate) fn at<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    let mut found = object;
    let mut rest = path.strip_prefix('/');
    while let Some(fields) = rest {
        // Paths are too short for the search of `split`.
        let end = fields.bytes().position(|byte| byte == b'/');
        let (field, after) = fields.split_at(end.unwrap_or(fields.len()));
        found = found.as_object()?.get(field)?;
        rest = after.strip_prefix('/');
    }
    (!found.is_null()).then_some(found)
}

/// The string at a path; empty if there is none.
pub(crate) fn text<'a>(object: &'a Value, path: &str) -> &'a str {
    at(object, path).and_then(Value::as_str).unwrap_or_default()
}

/// The integer at a path.
pub(crate) fn integer(object: &Value, path: &str) -> Option<i64> {
    at(object, path).and_then(Value::as_i64)
}

/// The boolean at a path; false if there is none.
pub(crate) fn flag(object: &Value, path: &str) -> bool {
    at(object, path)
        .and_then(Value::as_bool)
        .unwrap_or_default()
}

/// The time at a path.
pub(crate) fn time(object: &Value, path: &str) -> Option<Timestamp> {
    text(object, path).parse().ok()
}

/// The list at a path; empty if there is none.
pub(crate) fn list<'a>(object: &'a Value, path: &str) -> &'a [Value] {
    at(object, path)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// The strings in the list at a path.
pub(crate) fn strings<'a>(
    object: &'a Value,
    path: &str,
) -> impl Iterator<Item = &'a str> + use<'a> {
    list(object, path).iter().filter_map(Value::as_str)
}

/// The map at a path, for example the labels.
pub(crate) fn map<'a>(object: &'a Value, path: &str) -> Option<&'a Map<String, Value>> {
    at(object, path).and_then(Value::as_object)
}

/// Sets the value at a path and creates the maps above it.
pub(crate) fn set(object: &mut Value, path: &str, value: Value) {
    let mut place = object;
    for field in path.split('/').skip(1) {
        if !place.is_object() {
            *place = json!({});
        }
        place = &mut place[field];
    }
    *place = value;
}

/// `metadata.name`.
pub(crate) fn name(object: &Value) -> &str {
    text(object, "/metadata/name")
}

/// `metadata.namespace`; empty for cluster-scoped objects.
pub(crate) fn namespace(object: &Value) -> &str {
    text(object, "/metadata/namespace")
}

/// `metadata.uid`.
pub(crate) fn uid(object: &Value) -> &str {
    text(object, "/metadata/uid")
}

/// `metadata.generation`; 0 if there is none.
pub(crate) fn generation(object: &Value) -> i64 {
    integer(object, "/metadata/generation").unwrap_or(0)
}

/// `metadata.deletionGracePeriodSeconds`.
pub(crate) fn deletion_grace_period(object: &Value) -> Option<i64> {
    integer(object, "/metadata/deletionGracePeriodSeconds")
}

/// Whether the object is being deleted: it has a `deletionTimestamp`.
pub(crate) fn is_terminating(object: &Value) -> bool {
    at(object, "/metadata/deletionTimestamp").is_some()
}

/// The value of an annotation.
pub(crate) fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    map(object, "/metadata/annotations")?.get(key)?.as_str()
}

/// The owner reference with `controller: true`.
pub(crate) fn controller_of(object: &Value) -> Option<&Value> {
    list(object, "/metadata/ownerReferences")
        .iter()
        .find(|owner| flag(owner, "/controller"))
}

/// `metadata.finalizers`.
pub(crate) fn finalizers(object: &Value) -> Vec<String> {
    strings(object, "/metadata/finalizers")
        .map(str::to_owned)
        .collect()
}

/// Whether `finalizer` is among `metadata.finalizers`.
pub(crate) fn has_finalizer(object: &Value, finalizer: &str) -> bool {
    strings(object, "/metadata/finalizers").any(|each| each == finalizer)
}

/// Replaces `metadata.finalizers`; an empty list is left out.
pub(crate) fn set_finalizers(object: &mut Value, finalizers: &[String]) {
    if finalizers.is_empty() {
        remove_metadata(object, "finalizers");
    } else {
        object["metadata"]["finalizers"] = json!(finalizers);
    }
}

/// Gives a metadata field the value that it has in `old`, or removes it if `old` has none.
pub(crate) fn keep_metadata(object: &mut Value, old: &Value, field: &str) {
    match old["metadata"].get(field) {
        Some(value) => object["metadata"][field] = value.clone(),
        None => remove_metadata(object, field),
    }
}

/// Removes a metadata field.
pub(crate) fn remove_metadata(object: &mut Value, field: &str) {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove(field);
    }
}

/// The condition of this type in `status.conditions`.
pub(crate) fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    list(object, "/status/conditions")
        .iter()
        .find(|condition| condition["type"] == kind)
}

/// The condition of this type, to be edited.
pub(crate) fn condition_mut<'a>(object: &'a mut Value, kind: &str) -> Option<&'a mut Value> {
    object
        .pointer_mut("/status/conditions")?
        .as_array_mut()?
        .iter_mut()
        .find(|condition| condition["type"] == kind)
}

/// A condition for [`set_condition`]. An empty reason or message is left out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Condition<'a> {
    pub(crate) kind: &'a str,
    pub(crate) status: &'a str,
    pub(crate) reason: &'a str,
    pub(crate) message: &'a str,
}

/// Puts a condition into `status.conditions`. `lastTransitionTime` changes with the status only.
/// Returns whether anything but that time changed.
pub(crate) fn set_condition(object: &mut Value, new: Condition<'_>, now: Timestamp) -> bool {
    let previous = condition(object, new.kind);
    let same = |field: &str, value: &str| {
        previous.is_some_and(|old| old[field].as_str().unwrap_or_default() == value)
    };
    if same("status", new.status) && same("reason", new.reason) && same("message", new.message) {
        return false;
    }
    let since = match previous {
        Some(old) if old["status"] == new.status => text(old, "/lastTransitionTime").to_owned(),
        _ => to_time(now),
    };
    // Other fields that clients set, such as `lastProbeTime` or `observedGeneration`, stay.
    let mut built = previous
        .cloned()
        .unwrap_or_else(|| json!({"type": new.kind}));
    built["status"] = json!(new.status);
    built["lastTransitionTime"] = json!(since);
    for (field, value) in [("reason", new.reason), ("message", new.message)] {
        if value.is_empty() {
            built.as_object_mut().map(|fields| fields.remove(field));
        } else {
            built[field] = json!(value);
        }
    }
    put_condition(object, built);
    true
}

/// Replaces the condition of the same type, or appends it.
pub(crate) fn put_condition(object: &mut Value, condition: Value) {
    let conditions = &mut object["status"]["conditions"];
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let conditions = conditions.as_array_mut().expect("made an array above");
    match conditions
        .iter_mut()
        .find(|each| each["type"] == condition["type"])
    {
        Some(place) => *place = condition,
        None => conditions.push(condition),
    }
}

/// Removes the condition of this type.
pub(crate) fn remove_condition(object: &mut Value, kind: &str) {
    if let Some(conditions) = object
        .pointer_mut("/status/conditions")
        .and_then(Value::as_array_mut)
    {
        conditions.retain(|condition| condition["type"] != kind);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn last_transition_time_changes_with_the_status_only() {
        let mut pod = json!({});
        let mut new = Condition {
            kind: "Ready",
            status: "False",
            reason: "A",
            message: "",
        };
        assert!(set_condition(&mut pod, new, second(0)));
        assert!(!set_condition(&mut pod, new, second(1)));
        new.reason = "B";
        assert!(set_condition(&mut pod, new, second(2)));
        let since = |pod: &Value| condition(pod, "Ready").unwrap()["lastTransitionTime"].clone();
        assert_eq!(since(&pod), "1970-01-01T00:00:00Z");
        new.status = "True";
        assert!(set_condition(&mut pod, new, second(3)));
        assert_eq!(since(&pod), "1970-01-01T00:00:03Z");
        remove_condition(&mut pod, "Ready");
        assert!(condition(&pod, "Ready").is_none());
    }

    #[test]
    fn set_creates_the_maps_above_a_field() {
        let mut object = json!({"spec": null});
        set(&mut object, "/spec/template/replicas", json!(3));
        assert_eq!(object, json!({"spec": {"template": {"replicas": 3}}}));
        assert_eq!(integer(&object, "/spec/template/replicas"), Some(3));
        assert_eq!(at(&object, "/spec/other/replicas"), None);
    }
}
