//! Reading objects as JSON: one place for the paths, so that controllers name fields and not pointers.
//!
//! `Value -> &str, i64, Timestamp`. Absent fields read as empty or `None`, as Kubernetes' zero values do; nothing here
//! validates (the API server did) or writes, but [`set_condition`] which keeps a condition's time while its status stays.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// A Kubernetes time, whole seconds in UTC: `2026-01-02T03:04:05Z`.
pub(crate) fn stamp(now: Timestamp) -> String {
    now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A Kubernetes `MicroTime`: `2026-01-02T03:04:05.000006Z`.
pub(crate) fn micro_stamp(now: Timestamp) -> String {
    now.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

/// The value below `path`, if it's there and not null.
pub(crate) fn at<'a>(object: &'a Value, path: &[&str]) -> Option<&'a Value> {
    let mut value = object;
    for name in path {
        value = value.get(name)?;
    }
    (!value.is_null()).then_some(value)
}

/// The text below `path`; empty if there is none.
pub(crate) fn text<'a>(object: &'a Value, path: &[&str]) -> &'a str {
    at(object, path).and_then(Value::as_str).unwrap_or_default()
}

/// The integer below `path`.
pub(crate) fn integer(object: &Value, path: &[&str]) -> Option<i64> {
    at(object, path).and_then(Value::as_i64)
}

/// The flag below `path`; false if there is none.
pub(crate) fn flag(object: &Value, path: &[&str]) -> bool {
    at(object, path)
        .and_then(Value::as_bool)
        .unwrap_or_default()
}

/// The time below `path`.
pub(crate) fn time(object: &Value, path: &[&str]) -> Option<Timestamp> {
    text(object, path).parse().ok()
}

/// The list below `path`; empty if there is none.
pub(crate) fn list<'a>(object: &'a Value, path: &[&str]) -> &'a [Value] {
    at(object, path)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// The object below `path`, a map of labels for instance.
pub(crate) fn map<'a>(object: &'a Value, path: &[&str]) -> Option<&'a Map<String, Value>> {
    at(object, path).and_then(Value::as_object)
}

/// `metadata.name`.
pub(crate) fn name(object: &Value) -> &str {
    text(object, &["metadata", "name"])
}

/// `metadata.namespace`; empty for cluster-scoped objects.
pub(crate) fn namespace(object: &Value) -> &str {
    text(object, &["metadata", "namespace"])
}

/// `metadata.uid`.
pub(crate) fn uid(object: &Value) -> &str {
    text(object, &["metadata", "uid"])
}

/// Is the object on its way out, that is, has it a `deletionTimestamp`?
pub(crate) fn is_terminating(object: &Value) -> bool {
    at(object, &["metadata", "deletionTimestamp"]).is_some()
}

/// Is `finalizer` in `metadata.finalizers`?
pub(crate) fn has_finalizer(object: &Value, finalizer: &str) -> bool {
    list(object, &["metadata", "finalizers"])
        .iter()
        .any(|f| f == finalizer)
}

/// The value of an annotation.
pub(crate) fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    at(object, &["metadata", "annotations", key]).and_then(Value::as_str)
}

/// The owner reference with `controller: true`.
pub(crate) fn controller_of(object: &Value) -> Option<&Value> {
    list(object, &["metadata", "ownerReferences"])
        .iter()
        .find(|owner| flag(owner, &["controller"]))
}

/// The condition of this type in `status.conditions`.
pub(crate) fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    list(object, &["status", "conditions"])
        .iter()
        .find(|c| text(c, &["type"]) == kind)
}

/// A condition to be set by [`set_condition`]. Empty reason and message are left out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Condition<'a> {
    pub(crate) kind: &'a str,
    pub(crate) status: &'a str,
    pub(crate) reason: &'a str,
    pub(crate) message: &'a str,
}

/// Puts `new` into `status.conditions` of `object`; `lastTransitionTime` moves with the status alone.
/// Returns whether anything but that time changed.
pub(crate) fn set_condition(object: &mut Value, new: Condition<'_>, now: Timestamp) -> bool {
    let previous = condition(object, new.kind);
    let same = |field: &str, value: &str| previous.is_some_and(|old| text(old, &[field]) == value);
    if same("status", new.status) && same("reason", new.reason) && same("message", new.message) {
        return false;
    }
    let since = match previous {
        Some(old) if text(old, &["status"]) == new.status => {
            text(old, &["lastTransitionTime"]).to_owned()
        }
        _ => stamp(now),
    };
    // Kept: what others put there, `lastProbeTime` or `observedGeneration` for instance.
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

fn put_condition(object: &mut Value, built: Value) {
    if !object["status"]["conditions"].is_array() {
        object["status"]["conditions"] = json!([]);
    }
    let conditions = object["status"]["conditions"]
        .as_array_mut()
        .expect("made an array above");
    match conditions.iter_mut().find(|c| c["type"] == built["type"]) {
        Some(place) => *place = built,
        None => conditions.push(built),
    }
}

/// Takes the condition of this type away.
pub(crate) fn remove_condition(object: &mut Value, kind: &str) {
    if let Some(conditions) = object
        .pointer_mut("/status/conditions")
        .and_then(Value::as_array_mut)
    {
        conditions.retain(|c| c["type"] != kind);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(s: i64) -> Timestamp {
        Timestamp::from_second(s).unwrap()
    }

    #[test]
    fn a_conditions_time_moves_with_its_status_alone() {
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
        assert_eq!(
            text(condition(&pod, "Ready").unwrap(), &["lastTransitionTime"]),
            "1970-01-01T00:00:00Z"
        );
        new.status = "True";
        assert!(set_condition(&mut pod, new, second(3)));
        assert_eq!(
            text(condition(&pod, "Ready").unwrap(), &["lastTransitionTime"]),
            "1970-01-01T00:00:03Z"
        );
        remove_condition(&mut pod, "Ready");
        assert!(condition(&pod, "Ready").is_none());
    }

    #[test]
    fn times_are_whole_seconds() {
        assert_eq!(
            stamp(Timestamp::from_millisecond(1_999).unwrap()),
            "1970-01-01T00:00:01Z"
        );
        assert_eq!(
            micro_stamp(Timestamp::from_millisecond(1_999).unwrap()),
            "1970-01-01T00:00:01.999000Z"
        );
    }
}
