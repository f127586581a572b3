//! The CRDs, generated from the types: what `fedrs crds` prints and `config/crd` holds.

pub use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use kube::CustomResourceExt;
use schemars::{Schema, SchemaGenerator, json_schema};

use serde_json::Value;

use crate::{FederatedReplicaSet, FieldError, MemberCluster, field::Errors, schema};

/// All CRDs of fedrs, as they are to be installed.
#[must_use]
pub fn all() -> Vec<CustomResourceDefinition> {
    [FederatedReplicaSet::crd(), MemberCluster::crd()]
        .into_iter()
        .map(tidied)
        .collect()
}

/// All CRDs as one YAML text, as `kubectl apply -f -` takes it.
#[must_use]
pub fn all_as_yaml() -> String {
    all()
        .iter()
        .map(|crd| ["---\n".to_owned(), as_yaml(crd)].concat())
        .collect()
}

/// One CRD as YAML.
#[must_use]
pub fn as_yaml(crd: &CustomResourceDefinition) -> String {
    serde_saphyr::to_string(crd).expect("a CRD is made of strings, numbers and maps")
}

/// What an API server would refuse in a FederatedReplicaSet because of the schema: unknown fields, wrong types,
/// missing fields.
#[must_use]
pub fn schema_errors(frs: &Value) -> Vec<FieldError> {
    let crd = tidied(FederatedReplicaSet::crd());
    let schema = crd
        .spec
        .versions
        .into_iter()
        .find_map(|version| version.schema?.open_api_v3_schema);
    let schema = schema.expect("the derive writes a schema");
    let mut errors = Errors::default();
    let Some(object) = frs.as_object() else {
        errors.add("the object", "must be an object");
        return errors.into_list();
    };
    // These are not the CRD's: every object has them.
    let own = object
        .iter()
        .filter(|(name, _)| !["apiVersion", "kind", "metadata"].contains(&name.as_str()));
    let own = own
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    schema::check(&schema, &Value::Object(own), "", &mut errors);
    errors.into_list()
}

/// Takes out what the derive adds and a user would stumble over.
fn tidied(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    for version in &mut crd.spec.versions {
        if let Some(schema) = version
            .schema
            .as_mut()
            .and_then(|schema| schema.open_api_v3_schema.as_mut())
        {
            tidy(schema);
        }
    }
    crd
}

/// Titles and the numbers of rules are for those who read the code.
///
/// Optional fields are absent or have a value. The derive would allow `null` too, which CEL's `has` takes for a
/// value: a rule that compares it would fail with an error about types.
fn tidy(schema: &mut JSONSchemaProps) {
    schema.nullable = None;
    schema.title = None;
    schema.description = schema.description.as_deref().map(without_rules);
    for property in schema
        .properties
        .iter_mut()
        .flat_map(|properties| properties.values_mut())
    {
        tidy(property);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
        tidy(values);
    }
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut schema.items {
        tidy(items);
    }
}

/// `text` without the numbers of rules, such as (F2, F34).
fn without_rules(text: &str) -> String {
    let is_rule = |word: &str| {
        let number = word.strip_prefix('F').unwrap_or_default();
        !number.is_empty() && number.bytes().all(|it| it.is_ascii_digit())
    };
    let mut parts = text.split('(');
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once(')') {
            Some((inside, rest)) if inside.split(", ").all(is_rule) => {
                kept.truncate(kept.trim_end().len());
                kept.push_str(rest);
            }
            _ => {
                kept.push('(');
                kept.push_str(part);
            }
        }
    }
    kept
}

/// A pod's spec: every field is kept as it was written and validated by the members, which may know newer
/// fields than the host does. What a replica set can't do without is checked here.
pub(crate) fn pod_spec(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": true,
        "required": ["containers"],
        "properties": {
            "containers": {
                "description": "The pod's containers, at least one.",
                "type": "array",
                "minItems": 1,
                "items": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
            },
            "restartPolicy": {
                "description": "Always, and nothing else: a replica set never ends by itself.",
                "type": "string",
                "enum": ["Always"],
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_rules_are_taken_out_and_nothing_else() {
        for (text, kept) in [
            ("Replicas (F18).", "Replicas."),
            (
                "What runs where, and why\n(F6, F38). Also",
                "What runs where, and why. Also",
            ),
            ("(F2)", ""),
            ("a (b) (F) (Fx) (F1, b)", "a (b) (F) (Fx) (F1, b)"),
            ("open (F1", "open (F1"),
            ("plain", "plain"),
        ] {
            assert_eq!(without_rules(text), kept);
        }
    }
}
