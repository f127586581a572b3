//! Reading an object to be validated, and the checks that several kinds share.

use serde_json::{Map, Value};

use crate::field::FieldError;

/// The fields of an object, or none.
pub(super) fn fields(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    static NONE: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
    value.as_object().unwrap_or(&NONE).iter()
}

/// The items of a list in an object, with their positions.
pub(super) fn items<'a>(object: &'a Value, list: &str) -> impl Iterator<Item = (usize, &'a Value)> {
    object[list].as_array().into_iter().flatten().enumerate()
}

/// The value of a field that must be one of `supported`.
pub(super) fn one_of(
    object: &Value,
    path: &str,
    field: &str,
    supported: &[&str],
) -> Option<FieldError> {
    let at = format!("{path}.{field}");
    match object[field].as_str().unwrap_or_default() {
        "" => Some(FieldError::required(at, "")),
        value if supported.contains(&value) => None,
        value => Some(FieldError::not_supported(at, value, supported)),
    }
}

/// A field that no update may change.
pub(super) fn immutable(path: &str, value: &Value) -> FieldError {
    FieldError::invalid(path, value.clone(), "field is immutable")
}

/// A number that must not be negative.
pub(super) fn not_negative(object: &Value, path: &str, field: &str) -> Option<FieldError> {
    let number = object[field].as_i64().filter(|number| *number < 0)?;
    Some(FieldError::invalid(
        format!("{path}.{field}"),
        number,
        "must be greater than or equal to 0",
    ))
}
