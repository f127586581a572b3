//! Reading values field by field: every error is found, and says where it is.

use std::collections::BTreeMap;

use fedrs_api::FieldError;
use serde_json::Value;

/// Parses JSON or YAML. JSON is told by its first character and gets messages about JSON.
pub(super) fn parse(text: &str) -> Result<Value, String> {
    if text.trim_start().starts_with(['{', '[']) {
        // YAML's flow style starts with the same characters: `{replicas: 5}`.
        serde_json::from_str(text).or_else(|error| {
            serde_saphyr::from_str(text).map_err(|_| format!("is not JSON: {error}"))
        })
    } else {
        serde_saphyr::from_str(text).map_err(|error| format!("is not YAML: {error}"))
    }
}

/// The errors of one object.
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

    /// A whole number from 0 to `i64::MAX`, as Kubernetes has them.
    pub(super) fn count(&mut self, value: &Value, field: &str) -> Option<u64> {
        let count = value.as_i64().and_then(|count| u64::try_from(count).ok());
        if count.is_none() {
            self.error(
                field,
                format!("must be a whole number from 0 to {}, not {value}", i64::MAX),
            );
        }
        count
    }

    /// Counts by name.
    pub(super) fn counts(&mut self, value: &Value, field: &str) -> BTreeMap<String, u64> {
        let Some(object) = value.as_object() else {
            self.error(
                field,
                format!("must be an object of counts by cluster, not {value}"),
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

    /// Names, each of them once.
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

    /// Checks that each name is there once, and is none that means something else.
    pub(super) fn check_names(&mut self, names: &[String], field: &str) {
        let mut seen = std::collections::BTreeSet::new();
        for (place, name) in names.iter().enumerate() {
            if name.is_empty() || name == "*" {
                self.error(
                    format!("{field}[{place}]"),
                    format!("{name:?} can't be the name of a cluster"),
                );
            } else if !seen.insert(name) {
                self.error(
                    format!("{field}[{place}]"),
                    format!("{name:?} is listed twice"),
                );
            }
        }
    }
}
