//! The description of a kind for the documents, and references to its definition.

use serde_json::{Value, json};

use crate::schema::{REFERENCE_PREFIX, builtin_kind};

/// The key of a group and version in the index: `api/v1`, `apis/apps/v1`.
pub(crate) fn document_path(group: &str, version: &str) -> String {
    if group.is_empty() {
        format!("api/{version}")
    } else {
        format!("apis/{group}/{version}")
    }
}

/// A kind to describe.
#[derive(Debug, Clone)]
pub(crate) struct KindEntry<'a> {
    /// API group; empty for the core group.
    pub group: &'a str,
    /// API version.
    pub version: &'a str,
    /// `ReplicaSet`
    pub kind: &'a str,
    /// `replicasets`
    pub plural: &'a str,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    /// `status`, `scale`, ...
    pub subresources: Vec<&'a str>,
    /// `openAPIV3Schema` of a custom resource; none for built-in kinds.
    pub schema: Option<&'a Value>,
}

impl KindEntry<'_> {
    /// The name of its definition; none for a built-in kind without a schema.
    pub(super) fn definition_name(&self) -> Option<String> {
        if self.schema.is_some() {
            let reversed: Vec<&str> = self.group.split('.').rev().collect();
            return Some(format!(
                "{}.{}.{}",
                reversed.join("."),
                self.version,
                self.kind
            ));
        }
        builtin_kind(self.group, self.version, self.kind).map(|known| known.definition.to_owned())
    }

    pub(super) fn group_version_kind(&self) -> Value {
        json!({ "group": self.group, "kind": self.kind, "version": self.version })
    }
}

/// A reference to a definition of the same document.
pub(super) fn reference(name: &str) -> Value {
    json!({ "$ref": format!("{REFERENCE_PREFIX}{name}") })
}
