//! The schema of custom resources: pruning, defaults, validation and rules.
//!
//! ```text
//! body -> decode (metadata, strict) -> prune -> default -> (ownership, storage) -> validate -> rules (CEL)
//! ```

use std::sync::Arc;

use serde_json::{Map, Value};

use super::rules::Rules;
use super::type_info::TypeInfo;
use super::{prune, validate};
use crate::field::{FieldError, FieldErrorKind};

/// The schema of one version of a definition, with its rules compiled. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct CustomSchema {
    schema: Arc<Value>,
    info: TypeInfo,
    rules: Arc<Rules>,
    /// The path of `spec.replicas` of its `scale`.
    replicas: Option<Arc<str>>,
}

impl CustomSchema {
    /// A schema from `openAPIV3Schema`. A rule that does not compile fails in each validation.
    pub(crate) fn new(schema: &Value) -> Self {
        Self {
            schema: Arc::new(schema.clone()),
            info: TypeInfo::custom(schema),
            rules: Arc::new(Rules::compile(schema)),
            replicas: None,
        }
    }

    /// The same schema for a version with a `scale` that has `spec.replicas` at this path.
    #[must_use]
    pub(crate) fn with_replicas_at(self, pointer: &str) -> Self {
        Self {
            replicas: Some(pointer.into()),
            ..self
        }
    }

    /// The type, for server-side apply and field ownership.
    pub(crate) fn type_info(&self) -> &TypeInfo {
        &self.info
    }

    /// The schema as it is written in the definition.
    pub(crate) fn schema(&self) -> &Value {
        &self.schema
    }

    /// Drops unspecified fields; returns their paths, sorted.
    pub(crate) fn prune(&self, object: &mut Value) -> Vec<String> {
        let mut unknown = Vec::new();
        prune::prune_object(object, &self.schema, "", true, &mut unknown);
        unknown.sort();
        unknown
    }

    /// Sets defaults, and drops nulls that are neither allowed nor defaulted.
    pub(crate) fn default(&self, object: &mut Value) {
        default_value(object, &self.schema);
    }

    /// Validates an object without its metadata. With `old` (an update) unchanged parts are not validated, and transition
    /// rules run.
    pub(crate) fn validate(&self, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let mut errors = validate::validate(object, old, &self.schema);
        let wrong_replicas = self
            .replicas
            .as_deref()
            .and_then(|pointer| replicas(object, pointer));
        errors.extend(wrong_replicas);
        if self.rules.is_empty() {
            return errors;
        }
        if errors.iter().any(blocks_rules) {
            let words = "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";
            errors.push(FieldError::invalid("<nil>", Value::Null, words));
        } else {
            errors.extend(self.rules.check(object, old, &self.schema));
        }
        errors
    }
}

/// Validates `spec.replicas` of `scale`.
fn replicas(object: &Value, pointer: &str) -> Option<FieldError> {
    let value = object.pointer(pointer).filter(|value| !value.is_null())?;
    let path = pointer.replace('/', ".");
    let invalid = |shown: Value, detail: &str| Some(FieldError::invalid(&path, shown, detail));
    let Some(number) = value.as_i64() else {
        let (shown, found) = match value {
            Value::String(text) => (text.clone(), "string"),
            Value::Number(number) => (number.to_string(), "float64"),
            Value::Bool(flag) => (flag.to_string(), "bool"),
            Value::Array(_) => (value.to_string(), "[]interface {}"),
            _ => (value.to_string(), "map[string]interface {}"),
        };
        let detail =
            format!("{path} accessor error: {shown} is of the type {found}, expected int64");
        return invalid(0.into(), &detail);
    };
    if number < 0 {
        return invalid(number.into(), "should be a non-negative integer");
    }
    if number > i64::from(i32::MAX) {
        let detail = format!("should be less than or equal to {}", i32::MAX);
        return invalid(number.into(), &detail);
    }
    None
}

/// Whether rules cannot run on an object with this error.
fn blocks_rules(error: &FieldError) -> bool {
    matches!(
        error.kind,
        FieldErrorKind::NotSupported
            | FieldErrorKind::Required
            | FieldErrorKind::TooLong
            | FieldErrorKind::TooMany
            | FieldErrorKind::TypeInvalid
    )
}

fn default_value(value: &mut Value, schema: &Value) {
    match value {
        Value::Object(fields) => default_fields(fields, schema),
        Value::Array(items) => {
            if let Some(item_schema) = schema.get("items") {
                for item in items {
                    default_value(item, item_schema);
                }
            }
        }
        _ => {}
    }
}

fn default_fields(fields: &mut Map<String, Value>, schema: &Value) {
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, child) in properties.into_iter().flatten() {
        let nullable = child.get("nullable") == Some(&Value::Bool(true));
        let absent = match fields.get(name) {
            None => true,
            Some(current) => current.is_null() && !nullable,
        };
        match child.get("default") {
            Some(default) if absent => {
                fields.insert(name.clone(), default.clone());
            }
            None if absent => {
                fields.remove(name);
            }
            _ => {}
        }
        if let Some(current) = fields.get_mut(name) {
            default_value(current, child);
        }
    }
    let Some(values) = schema
        .get("additionalProperties")
        .filter(|schema| schema.is_object())
    else {
        return;
    };
    let is_additional =
        |name: &String| properties.is_none_or(|properties| !properties.contains_key(name));
    let nullable = values.get("nullable") == Some(&Value::Bool(true));
    fields.retain(|name, current| nullable || !current.is_null() || !is_additional(name));
    for (name, current) in fields.iter_mut() {
        if is_additional(name) {
            default_value(current, values);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> CustomSchema {
        CustomSchema::new(&json!({
            "type": "object",
            "properties": {
                "spec": { "type": "object", "required": ["name"], "properties": {
                    "name": { "type": "string" },
                    "replicas": { "type": "integer", "minimum": 0, "default": 1 },
                    "nested": { "type": "object", "default": {}, "properties": { "flag": { "type": "boolean", "default": true } } },
                    "raw": { "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                        "properties": { "known": { "type": "object", "properties": {} } } }
                } },
                "status": { "type": "object", "properties": {} }
            }
        }))
    }

    #[test]
    fn defaults_reach_into_defaults() {
        let mut object = json!({ "spec": { "replicas": null, "name": null } });
        schema().default(&mut object);
        assert_eq!(
            object,
            json!({ "spec": { "replicas": 1, "nested": { "flag": true } } })
        );
    }

    #[test]
    fn unknown_fields_are_dropped_unless_they_are_preserved() {
        let mut object = json!({ "apiVersion": "g/v1", "kind": "K", "metadata": { "name": "a" },
            "spec": { "foo": 1, "raw": { "any": 1, "known": { "x": 1 } } }, "extra": {} });
        assert_eq!(
            schema().prune(&mut object),
            ["extra", "spec.foo", "spec.raw.known.x"]
        );
        assert_eq!(object["spec"], json!({ "raw": { "any": 1, "known": {} } }));
    }

    #[test]
    fn errors_have_the_reasons_of_the_api() {
        let object = json!({ "spec": { "replicas": -1, "nested": [] } });
        let texts: Vec<String> = schema()
            .validate(&object, None)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            texts,
            [
                "spec.name: Required value",
                r#"spec.nested: Invalid value: "array": spec.nested in body must be of type object: "array""#,
                "spec.replicas: Invalid value: -1: spec.replicas in body should be greater than or equal to 0",
            ]
        );
    }
}
