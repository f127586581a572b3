//! Preferences as JSON (F2): the annotation's form of [`Placement`], in the spelling of the API or of
//! Kubernetes Federation v1.
//!
//! Reads field by field from a JSON value, to report every error with its path (F4).

use serde_json::{Map, Value};

use crate::{
    ClusterPreference, FieldError, Placement, field::Errors, placement::PREFERENCE_FIELDS,
};

/// Reads preferences from the text of the annotation, whose path is `field`.
pub fn parse(text: &str, field: &str) -> Result<Placement, Vec<FieldError>> {
    match serde_json::from_str(text) {
        Ok(value) => from_value(&value, field),
        // serde_json says what and where: "expected `,` or `}` at line 1 column 17".
        Err(error) => Err(vec![FieldError {
            field: field.to_owned(),
            message: format!("is not JSON: {error}"),
        }]),
    }
}

/// Reads preferences from a JSON value whose path is `field`.
///
/// Accepts any text as the name of a cluster. [`ValidFrs`](crate::ValidFrs) requires DNS labels.
pub fn from_value(value: &Value, field: &str) -> Result<Placement, Vec<FieldError>> {
    let mut errors = Errors::default();
    let mut placement = Placement::default();
    let known = ["rebalance", "clusters"];
    for (name, value, path) in fields(value, field, known, &mut errors) {
        match name {
            "rebalance" => match value {
                Value::Bool(rebalance) => placement.rebalance = *rebalance,
                other => errors.add(path, format!("must be true or false, not {}", kind(other))),
            },
            _ => {
                for (cluster, value) in object(value, &path, &mut errors).into_iter().flatten() {
                    let path = format!("{path}[{cluster}]");
                    placement
                        .clusters
                        .insert(cluster.clone(), preference(value, &path, &mut errors));
                }
            }
        }
    }
    errors.or(placement)
}

/// Reads the preferences for one cluster.
fn preference(value: &Value, field: &str, errors: &mut Errors) -> ClusterPreference {
    let mut preference = ClusterPreference::default();
    for (name, value, path) in fields(value, field, PREFERENCE_FIELDS, errors) {
        match name {
            "minReplicas" => preference.min_replicas = count(value, &path, errors),
            "maxReplicas" if value.is_null() => {}
            "maxReplicas" => preference.max_replicas = Some(count(value, &path, errors)),
            _ => preference.weight = count(value, &path, errors),
        }
    }
    if let Some(error) = max_below_min(&preference, field) {
        errors.extend(vec![error]);
    }
    preference
}

/// An error if the maximum is below the minimum.
pub(crate) fn max_below_min(preference: &ClusterPreference, field: &str) -> Option<FieldError> {
    let &ClusterPreference {
        min_replicas,
        max_replicas,
        ..
    } = preference;
    max_replicas
        .filter(|&max| max < min_replicas)
        .map(|max| FieldError {
            field: format!("{field}.maxReplicas"),
            message: format!("must not be below minReplicas ({min_replicas}), but is {max}"),
        })
}

/// The fields of an object that are `known`, with their paths as written. Another field is an error, as is one in both
/// spellings.
fn fields<'a, const N: usize>(
    value: &'a Value,
    field: &str,
    known: [&'static str; N],
    errors: &mut Errors,
) -> Vec<(&'static str, &'a Value, String)> {
    let mut fields: Vec<(&str, &Value, String)> = Vec::new();
    for (name, value) in object(value, field, errors).into_iter().flatten() {
        let in_api = api_spelling(name);
        let path = || format!("{field}.{name}");
        match known.into_iter().find(|known| *known == in_api) {
            // A tenant can write very many of them, each with a long path.
            None if errors.is_full() => {}
            None => {
                let (last, others) = known.split_last().expect("an object has fields");
                let known = format!("{} and {last}", others.join(", "));
                let message = format!("is not a known field; the fields are {known}");
                errors.add(path(), message);
            }
            Some(known) if fields.iter().any(|(other, ..)| *other == known) => {
                let message = format!("duplicates {known}, which is set in the other spelling");
                errors.add(path(), message);
            }
            Some(known) => fields.push((known, value, path())),
        }
    }
    fields
}

/// The API's spelling of a field: Federation v1 has `Clusters` for `clusters`.
fn api_spelling(name: &str) -> String {
    let mut characters = name.chars();
    characters.next().map_or_else(String::new, |first| {
        first.to_lowercase().chain(characters).collect()
    })
}

fn object<'a>(
    value: &'a Value,
    field: &str,
    errors: &mut Errors,
) -> Option<&'a Map<String, Value>> {
    let object = value.as_object();
    if object.is_none() {
        errors.add(field, format!("must be an object, not {}", kind(value)));
    }
    object
}

/// An integer from 0 to `i64::MAX`; 0 and an error for anything else.
fn count(value: &Value, field: &str, errors: &mut Errors) -> i64 {
    match value.as_i64() {
        Some(count) if count >= 0 => return count,
        Some(count) => errors.add(field, format!("must not be negative, but is {count}")),
        None if value.is_number() => {
            errors.add(
                field,
                format!("must be an integer from 0 to {}, not {value}", i64::MAX),
            );
        }
        None => errors.add(field, format!("must be an integer, not {}", kind(value))),
    }
    0
}

/// The type of a JSON value, for messages.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
