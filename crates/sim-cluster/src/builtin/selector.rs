//! Validation of label selectors and of the requirements of node selectors.

use serde_json::Value;

use super::metadata::validate_labels;
use crate::field::FieldError;
use crate::names::{validate_label_value, validate_qualified_name};

/// A label selector at `path`.
pub(super) fn validate_label_selector(selector: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = validate_labels(&selector["matchLabels"], &format!("{path}.matchLabels"));
    let expressions = selector["matchExpressions"]
        .as_array()
        .into_iter()
        .flatten();
    for (index, expression) in expressions.enumerate() {
        let at = format!("{path}.matchExpressions[{index}]");
        errors.extend(validate_requirement(expression, &at, Operators::OfObjects));
    }
    errors
}

/// Which operators there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operators {
    /// Those of label selectors.
    OfObjects,
    /// `Gt` and `Lt` too.
    OfNodes,
}

/// One `{key, operator, values}` at `path`.
pub(super) fn validate_requirement(
    expression: &Value,
    path: &str,
    operators: Operators,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let values = || expression["values"].as_array().into_iter().flatten();
    let (count, at) = (values().count(), format!("{path}.values"));
    match expression["operator"].as_str().unwrap_or_default() {
        "In" | "NotIn" if count == 0 => errors.push(FieldError::required(
            at.clone(),
            "must be specified when `operator` is 'In' or 'NotIn'",
        )),
        "Exists" | "DoesNotExist" if count > 0 => errors.push(FieldError::forbidden(
            at.clone(),
            "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
        )),
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        "Gt" | "Lt" if operators == Operators::OfNodes => {
            let detail = "must be specified single value when `operator` is 'Lt' or 'Gt'";
            let wrong = (count != 1).then(|| FieldError::required(at.clone(), detail));
            errors.extend(wrong);
        }
        other => errors.push(FieldError::invalid(
            format!("{path}.operator"),
            other,
            "not a valid selector operator",
        )),
    }
    let key = expression["key"].as_str().unwrap_or_default();
    let wrong = validate_qualified_name(key).into_iter();
    errors.extend(wrong.map(|what| FieldError::invalid(format!("{path}.key"), key, what)));
    for (position, value) in values().enumerate() {
        let text = value.as_str().unwrap_or_default();
        let wrong = validate_label_value(text).into_iter();
        errors
            .extend(wrong.map(|what| FieldError::invalid(format!("{at}[{position}]"), text, what)));
    }
    errors
}
