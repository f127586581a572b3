//! Reads values field by field, and collects all errors with their fields.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context;
use fedrs_api::FieldError;
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

/// Collects the errors of one object.
#[derive(Default)]
pub(super) struct Fields {
    pub(super) errors: Vec<FieldError>,
}

impl Fields {
    pub(super) fn error(&mut self, field: impl Into<String>, message: impl Into<String>) {
        self.errors.push(FieldError {
            field: field.into(),
            message: message.into(),
        });
    }

    /// `value` if there is no error.
    pub(super) fn or<T, E: From<FieldError>>(self, value: T) -> Result<T, Vec<E>> {
        if self.errors.is_empty() {
            Ok(value)
        } else {
            Err(self.errors.into_iter().map(E::from).collect())
        }
    }

    /// A string.
    pub(super) fn text(&mut self, value: &Value, field: &str) -> Option<String> {
        let text = value.as_str();
        if text.is_none() {
            self.error(field, format!("must be a string, not {value}"));
        }
        text.map(str::to_owned)
    }

    /// An integer from 0 to `i64::MAX`.
    pub(super) fn count(&mut self, value: &Value, field: &str) -> Option<u64> {
        let count = value.as_i64().and_then(|count| u64::try_from(count).ok());
        if count.is_none() {
            self.error(
                field,
                format!("must be an integer from 0 to {}, not {value}", i64::MAX),
            );
        }
        count
    }

    /// Counts by cluster.
    pub(super) fn counts(&mut self, value: &Value, field: &str) -> BTreeMap<String, u64> {
        let Some(object) = value.as_object() else {
            self.error(
                field,
                format!("must be an object with a count for each cluster, not {value}"),
            );
            return BTreeMap::new();
        };
        let mut counts = BTreeMap::new();
        for (name, value) in object {
            if let Some(count) = self.count(value, &format!("{field}[{name}]")) {
                counts.insert(name.clone(), count);
            }
        }
        counts
    }

    /// A list of distinct names.
    pub(super) fn names(&mut self, value: &Value, field: &str) -> Vec<String> {
        let Some(list) = value.as_array() else {
            self.error(field, format!("must be a list of names, not {value}"));
            return Vec::new();
        };
        let mut names = Vec::with_capacity(list.len());
        for (place, value) in list.iter().enumerate() {
            let field = format!("{field}[{place}]");
            names.extend(self.text(value, &field));
        }
        self.check_names(&names, field);
        names
    }

    /// Checks that names are distinct, and that none is empty or `*`.
    pub(super) fn check_names(&mut self, names: &[String], field: &str) {
        let mut seen = BTreeSet::new();
        for (place, name) in names.iter().enumerate() {
            let problem = match name.as_str() {
                "" | "*" => "is not a valid cluster name",
                _ if !seen.insert(name) => "is a duplicate",
                _ => continue,
            };
            self.error(format!("{field}[{place}]"), format!("{name:?} {problem}"));
        }
    }
}
