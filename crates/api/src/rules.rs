//! CEL rules that several kinds have.

use serde_json::{Value, json};

/// A name that is a DNS label: names of members' objects and values of labels are made from it.
pub(crate) const NAME_RULE: &str =
    "self.metadata.name.size() <= 63 && !self.metadata.name.contains('.')";
/// The message of [`NAME_RULE`].
pub(crate) const IS_NO_NAME: &str =
    "the name must be a DNS label: at most 63 characters, without dots";

/// The rules of a field that never changes.
pub(crate) fn immutable(field: &str) -> Value {
    let message = format!("the {field} is immutable");
    json!([{ "rule": "self == oldSelf", "message": message }])
}
