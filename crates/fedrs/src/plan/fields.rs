//! Reads values field by field, and collects all errors with their fields.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context;
use fedrs_api::{FieldError, FieldErrors};
use serde_json::Value;

/// Parses JSON or YAML. The first character decides which of the two an error is about.
pub(super) fn parse(text: &str) -> anyhow::Result<Value> {
    if text.trim_start().starts_with(['{', '[']) {
        // YAML in flow style begins with the same characters: `{replicas: 5}`.
        let json = serde_json::from_str(text).context("not JSON");
        json.or_else(|error| serde_saphyr::from_str(text).map_err(|_| error))
    } else {
        serde_saphyr::from_str(text).context("not YAML")
    }
}

/// Errors of fields, as those of a command.
pub(super) fn invalid(errors: Vec<FieldError>) -> Vec<anyhow::Error> {
    errors.into_iter().map(anyhow::Error::new).collect()
}

/// A string.
pub(super) fn text(value: &Value, field: &str, errors: &mut FieldErrors) -> Option<String> {
    let text = value.as_str();
    if text.is_none() {
        errors.add(field, format!("must be a string, not {value}"));
    }
    text.map(str::to_owned)
}

/// An integer from 0 to `i64::MAX`.
pub(super) fn count(value: &Value, field: &str, errors: &mut FieldErrors) -> Option<u64> {
    let count = value.as_i64().and_then(|count| u64::try_from(count).ok());
    if count.is_none() {
        let max = i64::MAX;
        errors.add(
            field,
            format!("must be an integer from 0 to {max}, not {value}"),
        );
    }
    count
}

/// Counts by cluster.
pub(super) fn counts(
    value: &Value,
    field: &str,
    errors: &mut FieldErrors,
) -> BTreeMap<String, u64> {
    if !value.is_object() {
        let message = format!("must be an object with a count for each cluster, not {value}");
        errors.add(field, message);
    }
    let entries = value.as_object().into_iter().flatten();
    let counts = entries.filter_map(|(name, value)| {
        let count = count(value, &format!("{field}[{name}]"), errors)?;
        Some((name.clone(), count))
    });
    counts.collect()
}

/// A list of distinct names.
pub(super) fn names(value: &Value, field: &str, errors: &mut FieldErrors) -> Vec<String> {
    if !value.is_array() {
        errors.add(field, format!("must be a list of names, not {value}"));
    }
    let list = value.as_array().into_iter().flatten();
    let names = list.enumerate();
    let names =
        names.filter_map(|(place, value)| text(value, &format!("{field}[{place}]"), errors));
    let names = names.collect::<Vec<_>>();
    check_names(&names, field, errors);
    names
}

/// Checks that names are distinct, and that none is empty or `*`.
pub(super) fn check_names(names: &[String], field: &str, errors: &mut FieldErrors) {
    let mut seen = BTreeSet::new();
    for (place, name) in names.iter().enumerate() {
        let problem = match name.as_str() {
            "" | "*" => "is not a valid cluster name",
            _ if !seen.insert(name) => "is a duplicate",
            _ => continue,
        };
        errors.add(format!("{field}[{place}]"), format!("{name:?} {problem}"));
    }
}
