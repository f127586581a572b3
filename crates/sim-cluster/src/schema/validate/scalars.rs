//! Validation of texts and numbers: their length, form and range.

use std::collections::HashMap;
use std::sync::LazyLock;

use parking_lot::RwLock;
use regex::Regex;
use serde_json::{Number, Value};

use crate::field::{FieldError, FieldErrorKind, quote};
use crate::schema::formats::fits_format;

/// A limit of the schema: `maxLength`, `minItems`, ...
pub(super) fn limit(schema: &Value, name: &str) -> Option<u64> {
    schema.get(name).and_then(Value::as_u64)
}

pub(super) fn check_string(text: &str, schema: &Value, path: &str, errors: &mut Vec<FieldError>) {
    errors.extend(text_error(text, schema, path));
    if let Some(format) = schema
        .get("format")
        .and_then(Value::as_str)
        .filter(|format| !fits_format(format, text))
    {
        let detail = format!("{path} in body must be of type {format}: {}", quote(text));
        errors.push(FieldError::new(
            FieldErrorKind::TypeInvalid,
            path,
            text,
            detail,
        ));
    }
}

/// The first of what is wrong with a text's length and form.
fn text_error(text: &str, schema: &Value, path: &str) -> Option<FieldError> {
    let length = text.chars().count() as u64;
    if let Some(max) = limit(schema, "maxLength").filter(|max| length > *max) {
        return Some(FieldError::too_long(path, max));
    }
    let words = if let Some(min) = limit(schema, "minLength").filter(|min| length < *min) {
        format!("be at least {min} chars long")
    } else {
        let pattern = schema.get("pattern").and_then(Value::as_str);
        let pattern = pattern.filter(|pattern| !matches(pattern, text))?;
        format!("match '{pattern}'")
    };
    let detail = format!("{path} in body should {words}");
    Some(FieldError::invalid(path, text, detail))
}

/// Whether `text` has a match of `pattern`; one that does not compile matches nothing. Patterns are few and stay.
fn matches(pattern: &str, text: &str) -> bool {
    static COMPILED: LazyLock<RwLock<HashMap<String, Option<Regex>>>> =
        LazyLock::new(RwLock::default);
    if let Some(known) = COMPILED.read().get(pattern) {
        return known.as_ref().is_some_and(|regex| regex.is_match(text));
    }
    let regex = Regex::new(pattern).ok();
    let found = regex.as_ref().is_some_and(|regex| regex.is_match(text));
    COMPILED.write().insert(pattern.to_owned(), regex);
    found
}

pub(super) fn check_number(
    number: &Number,
    schema: &Value,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    let value = number.as_f64().unwrap_or_default();
    let bound = |name: &str| schema.get(name).filter(|bound| bound.is_number());
    let exclusive = |name: &str| schema.get(name) == Some(&Value::Bool(true));
    let mut wrong = |words: String| {
        errors.push(FieldError::invalid(
            path,
            number.clone(),
            format!("{path} in body should be {words}"),
        ));
    };
    if let Some(max) = bound("maximum") {
        let limit = max.as_f64().unwrap_or_default();
        if exclusive("exclusiveMaximum") && value >= limit {
            wrong(format!("less than {max}"));
        } else if value > limit {
            wrong(format!("less than or equal to {max}"));
        }
    }
    if let Some(min) = bound("minimum") {
        let limit = min.as_f64().unwrap_or_default();
        if exclusive("exclusiveMinimum") && value <= limit {
            wrong(format!("greater than {min}"));
        } else if value < limit {
            wrong(format!("greater than or equal to {min}"));
        }
    }
    if let Some(factor) = bound("multipleOf") {
        let quotient = value / factor.as_f64().unwrap_or(1.0);
        if quotient.fract() != 0.0 {
            wrong(format!("a multiple of {factor}"));
        }
    }
    let fits = match schema.get("format").and_then(Value::as_str) {
        Some("int32") => {
            number
                .as_i64()
                .is_none_or(|whole| i32::try_from(whole).is_ok())
                && number.as_i64().is_some()
        }
        Some("int64") => number.as_i64().is_some() || number.is_f64(),
        _ => true,
    };
    if !fits && let Some(format) = schema.get("format").and_then(Value::as_str) {
        let detail =
            format!("Checked value must be of type integer with format {format} in {path}");
        errors.push(FieldError::invalid("<nil>", "", detail));
    }
}
