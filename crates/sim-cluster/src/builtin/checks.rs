//! Reading an object.

use serde_json::{Map, Value};

/// The fields of an object, or none.
pub(super) fn fields(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    static NONE: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
    value.as_object().unwrap_or(&NONE).iter()
}

/// The items of a list in an object, with their positions.
pub(super) fn items<'a>(object: &'a Value, list: &str) -> impl Iterator<Item = (usize, &'a Value)> {
    object[list].as_array().into_iter().flatten().enumerate()
}
