//! Validation of label selectors and of the requirements of node selectors.

use super::metadata::validate_labels;
use crate::names::{validate_label_value, validate_qualified_name};
use crate::validation::Field;

/// Validates a label selector.
pub(super) fn validate_label_selector(selector: &Field<'_>) {
    validate_labels(&selector.field("matchLabels"));
    for expression in selector.field("matchExpressions").items() {
        validate_requirement(&expression, Operators::OfObjects);
    }
}

/// Which operators there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operators {
    /// Those of label selectors.
    OfObjects,
    /// `Gt` and `Lt` too.
    OfNodes,
}

/// Validates one `{key, operator, values}`.
pub(super) fn validate_requirement(requirement: &Field<'_>, operators: Operators) {
    let (key, operator) = (requirement.field("key"), requirement.field("operator"));
    let values = requirement.field("values");
    match (operator.text(), values.len()) {
        ("In" | "NotIn", 0) => {
            values.required("must be specified when `operator` is 'In' or 'NotIn'");
        }
        ("Exists" | "DoesNotExist", 1..) => {
            values.forbidden("may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
        }
        ("In" | "NotIn" | "Exists" | "DoesNotExist", _) => {}
        ("Gt" | "Lt", count) if operators == Operators::OfNodes => {
            if count != 1 {
                values.required("must be specified single value when `operator` is 'Lt' or 'Gt'");
            }
        }
        (other, _) => operator.invalid_as(other, "not a valid selector operator"),
    }
    key.invalid_text(key.text(), validate_qualified_name(key.text()));
    for value in values.items() {
        value.invalid_text(value.text(), validate_label_value(value.text()));
    }
}
