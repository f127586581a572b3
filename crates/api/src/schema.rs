//! Validates an object against the schema of its CRD, as an API server does before it evaluates CEL rules.
//!
//! Finds unknown fields, values of the wrong type, and missing required fields. [`ValidFrs`](crate::ValidFrs) checks
//! ranges, names and rules over several fields.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use serde_json::Value;

use crate::field::Errors;

/// Adds the errors of `value` at `field` to `errors`.
pub(crate) fn check(schema: &JSONSchemaProps, value: &Value, field: &str, errors: &mut Errors) {
    let is_int_or_string = schema.x_kubernetes_int_or_string == Some(true);
    let expected = schema.type_.as_deref().filter(|_| !is_int_or_string);
    if let Some(expected) = expected
        && !is_of_type(value, expected)
    {
        return errors.add(field, format!("must be of type {expected}, not {value}"));
    }
    if is_int_or_string && !value.is_i64() && !value.is_string() {
        return errors.add(
            field,
            format!("must be of type integer or string, not {value}"),
        );
    }
    if let Some(allowed) = &schema.enum_
        && !allowed.iter().any(|allowed| allowed.0 == *value)
    {
        let allowed: Vec<_> = allowed
            .iter()
            .map(|allowed| allowed.0.to_string())
            .collect();
        errors.add(
            field,
            format!("must be one of {}, not {value}", allowed.join(", ")),
        );
    }
    if let Value::Object(object) = value {
        for name in schema
            .required
            .iter()
            .flatten()
            .filter(|name| !object.contains_key(*name))
        {
            errors.add(join(field, name), "is required");
        }
        for (name, value) in object {
            check_property(schema, name, value, field, errors);
        }
    }
    if let (Value::Array(list), Some(JSONSchemaPropsOrArray::Schema(items))) =
        (value, &schema.items)
    {
        for (index, value) in list.iter().enumerate() {
            check(items, value, &format!("{field}[{index}]"), errors);
        }
    }
}

fn check_property(
    schema: &JSONSchemaProps,
    name: &str,
    value: &Value,
    field: &str,
    errors: &mut Errors,
) {
    let property = schema
        .properties
        .as_ref()
        .and_then(|properties| properties.get(name));
    match (property, &schema.additional_properties) {
        (Some(property), _) => check(property, value, &join(field, name), errors),
        (None, Some(JSONSchemaPropsOrBool::Schema(values))) => {
            check(values, value, &format!("{field}[{name}]"), errors);
        }
        (None, _) if schema.x_kubernetes_preserve_unknown_fields == Some(true) => {}
        (None, _) => errors.add(join(field, name), "is not a known field"),
    }
}

fn join(field: &str, name: &str) -> String {
    if field.is_empty() {
        name.to_owned()
    } else {
        format!("{field}.{name}")
    }
}

fn is_of_type(value: &Value, expected: &str) -> bool {
    match expected {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64(),
        _ => true,
    }
}
