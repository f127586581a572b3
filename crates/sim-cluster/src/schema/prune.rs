//! Pruning: fields that a structural schema does not specify are dropped.

use serde_json::{Map, Value};

use crate::field::join;

/// Drops unspecified fields of `value` and adds their paths to `unknown`. The root of an object and embedded resources
/// (`is_resource`) keep `apiVersion`, `kind` and `metadata`.
pub(super) fn prune_object(
    value: &mut Value,
    schema: &Value,
    path: &str,
    is_resource: bool,
    unknown: &mut Vec<String>,
) {
    match value {
        Value::Object(fields) => prune_fields(fields, schema, path, is_resource, unknown),
        Value::Array(items) => {
            let Some(item_schema) = schema.get("items") else {
                return;
            };
            for (index, item) in items.iter_mut().enumerate() {
                prune_object(
                    item,
                    item_schema,
                    &format!("{path}[{index}]"),
                    is_embedded(item_schema),
                    unknown,
                );
            }
        }
        _ => {}
    }
}

fn is_embedded(schema: &Value) -> bool {
    schema.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true))
}

fn prune_fields(
    fields: &mut Map<String, Value>,
    schema: &Value,
    path: &str,
    is_resource: bool,
    unknown: &mut Vec<String>,
) {
    let preserves = schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true));
    let additional = schema.get("additionalProperties");
    fields.retain(|name, value| {
        if is_resource && ["apiVersion", "kind", "metadata"].contains(&name.as_str()) {
            return true;
        }
        let at = join(path, name);
        if let Some(child) = schema
            .get("properties")
            .and_then(|properties| properties.get(name))
        {
            prune_object(value, child, &at, is_embedded(child), unknown);
            return true;
        }
        match additional {
            Some(Value::Bool(true)) => true,
            Some(child @ Value::Object(_)) => {
                prune_object(value, child, &at, is_embedded(child), unknown);
                true
            }
            _ if preserves => true,
            _ => {
                unknown.push(at);
                false
            }
        }
    });
}
