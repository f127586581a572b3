//! The part of an object's metadata that the controller needs.

use std::collections::BTreeMap;

use reflector::partial::{is_present, null_as_default};
use serde::Deserialize;

/// An object's metadata.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Meta {
    #[serde(deserialize_with = "null_as_default")]
    pub(crate) namespace: String,
    #[serde(deserialize_with = "null_as_default")]
    pub(crate) name: String,
    #[serde(deserialize_with = "null_as_default")]
    pub(crate) uid: String,
    #[serde(deserialize_with = "null_as_default")]
    pub(crate) resource_version: String,
    pub(crate) generation: Option<i64>,
    /// RFC 3339 in UTC with whole seconds: the order of texts is that of times.
    #[serde(deserialize_with = "null_as_default")]
    pub(crate) creation_timestamp: String,
    #[serde(deserialize_with = "is_present", rename = "deletionTimestamp")]
    pub(crate) is_deleted: bool,
    #[serde(deserialize_with = "null_as_default")]
    pub(crate) labels: BTreeMap<String, String>,
    #[serde(deserialize_with = "null_as_default")]
    pub(crate) annotations: BTreeMap<String, String>,
    #[serde(deserialize_with = "null_as_default")]
    pub(crate) owner_references: Vec<Owner>,
}

/// An owner of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct Owner {
    pub(crate) uid: String,
}

impl Meta {
    /// The value of a label, or nothing.
    pub(crate) fn label(&self, key: &str) -> Option<&str> {
        self.labels.get(key).map(String::as_str)
    }
}
