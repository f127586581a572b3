//! The CRDs, generated from the types: what `fedrs crds` prints and `config/crd` holds.

pub use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSON, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use kube::CustomResourceExt;
use schemars::{Schema, SchemaGenerator, json_schema};

use serde_json::{Value, json};

use crate::{
    AvailabilitySet, EndpointSet, FederatedDeployment, FederatedReplicaSet, FieldError,
    LocalReplicaSet, Maintenance, MemberCluster, MigrationPolicy, MigrationRequest, SetKind,
    field::Errors, placement, schema,
};

/// All CRDs of a host, ready to install.
#[must_use]
pub fn all() -> Vec<CustomResourceDefinition> {
    let controlled = [
        without_rollouts(FederatedReplicaSet::crd()),
        FederatedDeployment::crd(),
        MemberCluster::crd(),
        Maintenance::crd(),
        AvailabilitySet::crd(),
    ];
    // Nobody may be asked to write the statuses of EndpointSets: without one, they say nothing.
    let endpoint_sets = tidy(EndpointSet::crd());
    let controlled = controlled.into_iter().map(finish);
    controlled.chain([endpoint_sets]).collect()
}

/// The CRDs of a cluster in which a replica set controller of fedrs runs (L1), ready to install.
#[must_use]
pub fn local() -> Vec<CustomResourceDefinition> {
    vec![
        finish(LocalReplicaSet::crd()),
        tidy(MigrationPolicy::crd()),
        tidy(MigrationRequest::crd()),
    ]
}

/// The CRD of FederatedReplicaSets, whose status has the type of that of FederatedDeployments: without the fields of rollouts.
fn without_rollouts(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    for status in schemas(&mut crd).filter_map(|schema| property(schema, "status")) {
        for field in ["currentRevision", "updateRevision", "rollout"] {
            status
                .properties
                .iter_mut()
                .for_each(|fields| _ = fields.remove(field));
        }
        if let Some(cluster) = property(status, "clusters").and_then(items) {
            cluster
                .properties
                .iter_mut()
                .for_each(|fields| _ = fields.remove("revision"));
        }
    }
    crd
}

fn schemas(crd: &mut CustomResourceDefinition) -> impl Iterator<Item = &mut JSONSchemaProps> {
    let versions = crd.spec.versions.iter_mut();
    versions.filter_map(|version| version.schema.as_mut()?.open_api_v3_schema.as_mut())
}

fn property<'a>(schema: &'a mut JSONSchemaProps, name: &str) -> Option<&'a mut JSONSchemaProps> {
    schema.properties.as_mut()?.get_mut(name)
}

fn items(list: &mut JSONSchemaProps) -> Option<&mut JSONSchemaProps> {
    match list.items.as_mut()? {
        JSONSchemaPropsOrArray::Schema(items) => Some(items),
        JSONSchemaPropsOrArray::Schemas(_) => None,
    }
}

/// CRDs as one YAML stream for `kubectl apply -f -`.
#[must_use]
pub fn to_yaml_stream(crds: &[CustomResourceDefinition]) -> String {
    crds.iter()
        .map(|crd| ["---\n".to_owned(), as_yaml(crd)].concat())
        .collect()
}

/// One CRD as YAML.
#[must_use]
pub fn as_yaml(crd: &CustomResourceDefinition) -> String {
    serde_saphyr::to_string(crd).expect("a CRD is made of strings, numbers and maps")
}

/// The errors for which an API server rejects a set by the schema of its kind: unknown fields, wrong types, missing fields.
#[must_use]
pub fn schema_errors(kind: SetKind, set: &Value) -> Vec<FieldError> {
    let crd = finish(match kind {
        SetKind::FederatedReplicaSet => without_rollouts(FederatedReplicaSet::crd()),
        SetKind::FederatedDeployment => FederatedDeployment::crd(),
    });
    let schema = crd
        .spec
        .versions
        .into_iter()
        .find_map(|version| version.schema?.open_api_v3_schema);
    let schema = schema.expect("the derive writes a schema");
    let mut errors = Errors::default();
    let Some(object) = set.as_object() else {
        errors.add("the object", "must be an object");
        return errors.into_list();
    };
    // Every object has these fields; the schema does not list them.
    let own = object
        .iter()
        .filter(|(name, _)| !["apiVersion", "kind", "metadata"].contains(&name.as_str()));
    let own = own
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    schema::check(&schema, &Value::Object(own), "", &mut errors);
    placement::check_fields(&set["spec"]["placement"], "spec.placement", &mut errors);
    errors.into_list()
}

/// Completes the derived CRD of a kind with a controller: readable descriptions, and a default status.
fn finish(crd: CustomResourceDefinition) -> CustomResourceDefinition {
    let mut crd = tidy(crd);
    schemas(&mut crd).for_each(default_status);
    crd
}

/// Completes a derived CRD: readable descriptions.
fn tidy(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    schemas(&mut crd).for_each(tidy_schema);
    crd
}

/// kstatus considers an object without a status current: a new object has to say that it has not been observed yet.
fn default_status(schema: &mut JSONSchemaProps) {
    if let Some(status) = property(schema, "status") {
        status.default = Some(JSON(json!({ "observedGeneration": -1 })));
    }
}

/// Removes what the derive adds for readers of the code: titles, and line breaks and rule numbers in descriptions.
///
/// Optional fields are absent or have a value. The derive allows `null` too, which CEL's `has` takes for a value: a rule
/// that compares it fails with a type error.
fn tidy_schema(schema: &mut JSONSchemaProps) {
    schema.nullable = None;
    schema.title = None;
    schema.description = schema.description.as_deref().map(for_users);
    for property in schema
        .properties
        .iter_mut()
        .flat_map(|properties| properties.values_mut())
    {
        tidy_schema(property);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
        tidy_schema(values);
    }
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut schema.items {
        tidy_schema(items);
    }
}

/// A description without the line breaks of the source, which `kubectl explain` would keep, and without rule numbers.
fn for_users(text: &str) -> String {
    without_rules(text).replace('\n', " ")
}

/// `text` without rule numbers such as (F2, F34).
fn without_rules(text: &str) -> String {
    let is_rule = |word: &str| {
        let number = word
            .strip_prefix(['A', 'C', 'F', 'L', 'M'])
            .unwrap_or_default();
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
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

/// The spec of a pod: the host keeps every field as written, and the members validate it, which may know newer fields than
/// the host. The schema checks only what a replica set depends on.
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
                "description": "Always is the only supported value: a replica set runs until it is deleted.",
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
    fn descriptions_lose_rule_numbers_only() {
        for (text, kept) in [
            ("Replicas (F18).", "Replicas."),
            ("Stops rollouts (L8, F1).", "Stops rollouts."),
            (
                "What runs where, and why\n(F6, F38). Also",
                "What runs where, and why. Also",
            ),
            ("(F2)", ""),
            (
                "Moves (M5) within budgets (A1, M10)",
                "Moves within budgets",
            ),
            ("a (b) (F) (Fx) (F1, b)", "a (b) (F) (Fx) (F1, b)"),
            ("open (F1", "open (F1"),
            ("plain", "plain"),
        ] {
            assert_eq!(without_rules(text), kept);
        }
    }
}
