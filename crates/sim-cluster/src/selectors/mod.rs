//! Selectors as lists and watches take them in their query.

mod field;
mod label;

use std::borrow::Cow;

use serde_json::Value;

pub use field::FieldSelector;
pub use label::LabelSelector;

/// Both selectors of a list or watch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    /// By labels.
    pub labels: LabelSelector,
    /// By fields.
    pub fields: FieldSelector,
}

impl Selector {
    /// Whether it takes everything.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// Whether the object is selected.
    pub fn matches(&self, object: &Value) -> bool {
        self.labels.matches(object) && self.fields.matches(object)
    }
}

/// A scalar as selectors compare it.
fn as_text(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        Value::Null => Cow::Borrowed(""),
        other => Cow::Owned(other.to_string()),
    }
}
