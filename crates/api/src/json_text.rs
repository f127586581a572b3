//! JSON that is kept as its text.

use serde::Serialize;
use serde_json::{Value, value::RawValue};

/// JSON as its text: a [`Value`] may take more than eighty times as many bytes.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub struct JsonText(Box<RawValue>);

impl JsonText {
    /// The text of `value`: equal values have equal texts.
    #[must_use]
    pub fn of(value: &Value) -> Self {
        Self(serde_json::value::to_raw_value(value).expect("a value is JSON"))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.get()
    }
}

impl PartialEq for JsonText {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}
