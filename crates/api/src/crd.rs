//! The CRDs, generated from the types.

use schemars::{Schema, SchemaGenerator, json_schema};

/// An object whose fields are kept as they were written.
pub(crate) fn any_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}
