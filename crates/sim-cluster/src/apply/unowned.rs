//! What no manager owns.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use super::field_set::FieldSet;

/// The metadata that no manager owns.
pub(super) const UNOWNED_METADATA: &[&str] = &[
    "name",
    "namespace",
    "creationTimestamp",
    "selfLink",
    "uid",
    "clusterName",
    "generation",
    "managedFields",
    "resourceVersion",
];

/// The fields that no manager owns: identity and the server's own.
pub(super) static UNOWNED: LazyLock<FieldSet> = LazyLock::new(|| {
    let metadata: Map<String, Value> = UNOWNED_METADATA
        .iter()
        .map(|name| format!("f:{name}"))
        .chain([".".to_owned()])
        .map(|name| (name, json!({})))
        .collect();
    FieldSet::parse(&json!({ "f:apiVersion": {}, "f:kind": {}, "f:metadata": metadata }))
        .expect("the set is a constant")
});
