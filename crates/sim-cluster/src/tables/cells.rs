//! Cells that several kinds have.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::age::human;
use crate::clock::parse_time;
use crate::object::{integer, text};

/// Text at a pointer; empty if there is none.
pub(super) fn text_cell(object: &Value, pointer: &str) -> Value {
    json!(text(object, pointer))
}

pub(super) fn name(object: &Value) -> Value {
    object["metadata"]["name"].clone()
}

/// How long ago the object was created.
pub(super) fn age(object: &Value, now: Timestamp) -> Value {
    since(text(object, "/metadata/creationTimestamp"), now)
}

/// How long ago a time was; `<unknown>` if there is none.
pub(super) fn since(time: &str, now: Timestamp) -> Value {
    match parse_time(time) {
        Some(time) => json!(human(now.duration_since(time))),
        None => json!("<unknown>"),
    }
}

/// Text, or `<none>`.
pub(super) fn or_none(text: &str) -> Value {
    json!(if text.is_empty() { "<none>" } else { text })
}

pub(super) fn number(object: &Value, pointer: &str) -> i64 {
    integer(object, pointer).unwrap_or(0)
}

pub(super) fn join<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    texts.collect::<Vec<&str>>().join(",")
}

/// `a=1,b=2`, or `<none>`.
pub(super) fn labels_text(labels: &Value) -> Value {
    let pairs: Vec<String> = (labels.as_object().into_iter().flatten())
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    or_none(&pairs.join(","))
}
