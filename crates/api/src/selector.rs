//! Label selectors: validation, string form, and matching.

use std::collections::{BTreeMap, BTreeSet};

pub use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelectorRequirement;

use kube::core::{Selector, SelectorExt};

use crate::{
    FieldError,
    dns::{is_label_key, is_label_value},
    field::Errors,
};

/// Checks `selector`, whose path is `field`: it must not be empty, because an empty selector selects every pod.
pub fn check(selector: &LabelSelector, field: &str) -> Result<(), Vec<FieldError>> {
    let mut errors = Errors::default();
    let no_labels = selector
        .match_labels
        .as_ref()
        .is_none_or(BTreeMap::is_empty);
    let no_expressions = selector
        .match_expressions
        .as_ref()
        .is_none_or(Vec::is_empty);
    errors.require(
        !(no_labels && no_expressions),
        field,
        "must not be empty: an empty selector matches every pod",
    );
    for (key, value) in selector.match_labels.iter().flatten() {
        let field = format!("{field}.matchLabels[{key}]");
        errors.require(is_label_key(key), &field, "is not a valid label key");
        errors.require(is_label_value(value), &field, "is not a valid label value");
    }
    for (index, expression) in selector.match_expressions.iter().flatten().enumerate() {
        check_expression(
            expression,
            &format!("{field}.matchExpressions[{index}]"),
            &mut errors,
        );
    }
    errors.or(())
}

fn check_expression(expression: &LabelSelectorRequirement, field: &str, errors: &mut Errors) {
    let values = expression.values.as_deref().unwrap_or_default();
    errors.require(
        is_label_key(&expression.key),
        &format!("{field}.key"),
        "is not a valid label key",
    );
    let values_field = format!("{field}.values");
    match expression.operator.as_str() {
        "In" | "NotIn" => errors.require(
            !values.is_empty(),
            &values_field,
            "must not be empty for In and NotIn",
        ),
        "Exists" | "DoesNotExist" => {
            errors.require(
                values.is_empty(),
                &values_field,
                "must be empty for Exists and DoesNotExist",
            );
        }
        other => errors.add(
            format!("{field}.operator"),
            format!("{other:?} is none of In, NotIn, Exists and DoesNotExist"),
        ),
    }
    for value in values {
        errors.require(
            is_label_value(value),
            &values_field,
            "contains an invalid label value",
        );
    }
}

/// `selector` as an API server returns it: without empty lists and maps, so that equal selectors are equal.
#[must_use]
pub fn normalized(selector: &LabelSelector) -> LabelSelector {
    let expressions = selector.match_expressions.iter().flatten();
    let expressions: Vec<_> = expressions
        .map(|expression| LabelSelectorRequirement {
            values: expression
                .values
                .clone()
                .filter(|values| !values.is_empty()),
            ..expression.clone()
        })
        .collect();
    LabelSelector {
        match_labels: selector
            .match_labels
            .clone()
            .filter(|labels| !labels.is_empty()),
        match_expressions: (!expressions.is_empty()).then_some(expressions),
    }
}

/// Whether `narrow` has every requirement of `wide`, however they are written: it selects a part of what `wide` selects, whatever pods
/// exist. If each contains the other one, they are equal.
#[must_use]
pub fn contains(wide: &LabelSelector, narrow: &LabelSelector) -> bool {
    requirements(wide).is_subset(&requirements(narrow))
}

/// The key, the operator and the values of each requirement.
fn requirements(selector: &LabelSelector) -> BTreeSet<(&str, &str, BTreeSet<&str>)> {
    let of_labels = selector.match_labels.iter().flatten();
    let of_labels =
        of_labels.map(|(key, value)| (key.as_str(), "In", BTreeSet::from([value.as_str()])));
    let expressions = selector.match_expressions.iter().flatten();
    let of_expressions = expressions.map(|expression| {
        let values = expression.values.iter().flatten().map(String::as_str);
        (&*expression.key, &*expression.operator, values.collect())
    });
    of_labels.chain(of_expressions).collect()
}

/// The keys of the labels that `selector` is about.
pub fn keys(selector: &LabelSelector) -> impl Iterator<Item = &str> {
    let of_labels = selector.match_labels.iter().flatten().map(|(key, _)| key);
    let expressions = selector.match_expressions.iter().flatten();
    let of_expressions = expressions.map(|expression| &expression.key);
    of_labels.chain(of_expressions).map(String::as_str)
}

/// Whether `labels` match `selector`, which must be valid.
#[must_use]
pub fn matches(selector: &LabelSelector, labels: &BTreeMap<String, String>) -> bool {
    Selector::try_from(selector.clone()).is_ok_and(|selector| selector.matches(labels))
}

/// `selector` as `kubectl -l` and the scale subresource take it: `app=web,tier in (a,b),!canary`, by key.
#[must_use]
pub fn to_text(selector: &LabelSelector) -> String {
    let selector = Selector::try_from(selector.clone()).unwrap_or_default();
    let mut terms: Vec<_> = selector.into_iter().map(|term| term.to_string()).collect();
    terms.sort_by_key(|term| {
        let key = term.trim_start_matches('!').split(['=', ' ']).next();
        key.map(str::to_owned)
    });
    terms.join(",")
}
