//! Objects in the version that a request asks for.
//!
//! Objects are stored in the version in which they were written. Versions of a custom kind differ in their `apiVersion`
//! only (no conversion webhooks), core events and events of `events.k8s.io` in the names of some fields, and autoscalers in
//! their metrics.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::autoscaler;
use super::kind::Kind;
use crate::object::Object;

/// Fields of core events and what `events.k8s.io/v1` calls them.
const EVENT_FIELDS: &[(&str, &str)] = &[
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

/// The object as `kind` shows it; the same allocation if it was written in that version.
pub(crate) fn to_version(kind: &Kind, object: &Object) -> Object {
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    if is_version(kind, api_version) {
        return Arc::clone(object);
    }
    let mut converted = Value::clone(object);
    convert(kind, &mut converted);
    Arc::new(converted)
}

/// Turns an object into the version that `kind` is.
pub(crate) fn convert(kind: &Kind, object: &mut Value) {
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    if is_version(kind, api_version) {
        return;
    }
    match &*kind.storage {
        "events" => {
            if let Some(fields) = object.as_object_mut() {
                rename_event_fields(fields, kind.group.is_empty());
            }
        }
        "horizontalpodautoscalers.autoscaling" if kind.version == "v1" => autoscaler::to_v1(object),
        "horizontalpodautoscalers.autoscaling" => autoscaler::to_v2(object),
        _ => {}
    }
    object["apiVersion"] = Value::String(kind.api_version());
}

fn is_version(kind: &Kind, api_version: &str) -> bool {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    kind.group == group && kind.version == version
}

fn rename_event_fields(fields: &mut Map<String, Value>, to_core: bool) {
    for (core, newer) in EVENT_FIELDS {
        let (from, to) = if to_core {
            (*newer, *core)
        } else {
            (*core, *newer)
        };
        if let Some(value) = fields.remove(from) {
            fields.insert(to.to_owned(), value);
        }
    }
    // Only the core form has these fields if they are empty.
    if !to_core {
        for name in ["reportingController", "reportingInstance"] {
            if fields.get(name).is_some_and(|value| value == "") {
                fields.remove(name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::builtin::kinds;
    use super::*;

    #[test]
    fn events_keep_their_meaning_in_both_groups() {
        let core = Arc::new(
            json!({"apiVersion": "v1", "kind": "Event", "involvedObject": {"name": "a"},
            "message": "m", "reason": "r", "count": 2}),
        );
        let newer = to_version(&kinds::EVENTS_V1, &core);
        assert_eq!(newer["apiVersion"], "events.k8s.io/v1");
        assert_eq!(newer["regarding"]["name"], "a");
        assert_eq!(newer["deprecatedCount"], 2);
        assert_eq!(*to_version(&kinds::EVENTS, &newer), *core);
    }
}
