//! Reads values field by field, and collects all errors with their fields.

use std::collections::BTreeMap;

use fedrs_api::FieldError;
use serde_json::Value;

/// Why a text can't be parsed.
#[derive(Debug, thiserror::Error)]
pub(super) enum SyntaxError {
    /// It begins like JSON.
    #[error("not JSON: {0}")]
    Json(serde_json::Error),
    /// It does not begin like JSON.
    #[error("not YAML: {0}")]
    Yaml(serde_saphyr::Error),
}

/// Parses JSON or YAML. The first character decides which of the two an error is about.
pub(super) fn parse(text: &str) -> Result<Value, SyntaxError> {
    if text.trim_start().starts_with(['{', '[']) {
        // YAML in flow style begins with the same characters: `{replicas: 5}`.
        serde_json::from_str(text)
            .or_else(|error| serde_saphyr::from_str(text).map_err(|_| SyntaxError::Json(error)))
    } else {
        serde_saphyr::from_str(text).map_err(SyntaxError::Yaml)
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
        let mut seen = std::collections::BTreeSet::new();
        for (place, name) in names.iter().enumerate() {
            if name.is_empty() || name == "*" {
                self.error(
                    format!("{field}[{place}]"),
                    format!("{name:?} is not a valid cluster name"),
                );
            } else if !seen.insert(name) {
                self.error(
                    format!("{field}[{place}]"),
                    format!("{name:?} is a duplicate"),
                );
            }
        }
    }
}
