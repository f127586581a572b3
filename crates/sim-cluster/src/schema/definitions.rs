//! The built-in kinds' schemas, as the `OpenAPI` document of the API server names them.
//!
//! k8s-openapi's types -> schemars -> definitions with `x-kubernetes-*` extensions, built once per process.

use std::sync::LazyLock;

use k8s_openapi::api::{
    admissionregistration::v1 as admissionregistration,
    apps::v1 as apps,
    authentication::v1 as authentication,
    authorization::v1 as authorization,
    autoscaling::{v1 as autoscaling, v2 as autoscaling_v2},
    coordination::v1 as coordination,
    core::v1 as core,
    discovery::v1 as discovery,
    events::v1 as events,
    policy::v1 as policy,
    rbac::v1 as rbac,
    scheduling::v1 as scheduling,
    storage::v1 as storage,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1 as apiextensions;
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::merge_keys;

/// The prefix of a reference to a definition.
pub(crate) const REFERENCE_PREFIX: &str = "#/components/schemas/";

/// A built-in kind and the name of its definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BuiltinKind {
    /// API group; empty for the core group.
    pub group: &'static str,
    /// API version.
    pub version: &'static str,
    /// Kind.
    pub kind: &'static str,
    /// Name under `components/schemas`.
    pub definition: &'static str,
}

const fn kind(
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    definition: &'static str,
) -> BuiltinKind {
    BuiltinKind {
        group,
        version,
        kind,
        definition,
    }
}

/// Declares the table of kinds and the function that generates their schemas from one list, so that they cannot differ.
macro_rules! builtin_kinds {
    ($($group:literal $version:literal $prefix:literal: $($type:path as $kind:literal),+;)+) => {
        /// Every built-in kind with a schema.
        const KINDS: &[BuiltinKind] = &[$($(kind($group, $version, $kind, concat!($prefix, ".", $kind))),+),+];

        fn generate(generator: &mut SchemaGenerator) {
            $($(generator.subschema_for::<$type>();)+)+
            generator.subschema_for::<meta::DeleteOptions>();
            generator.subschema_for::<meta::Status>();
        }
    };
}

builtin_kinds! {
    "" "v1" "io.k8s.api.core.v1":
        core::Binding as "Binding", core::ConfigMap as "ConfigMap", core::Endpoints as "Endpoints",
        core::Event as "Event", core::LimitRange as "LimitRange", core::Namespace as "Namespace", core::Node as "Node",
        core::PersistentVolume as "PersistentVolume", core::PersistentVolumeClaim as "PersistentVolumeClaim", core::Pod as "Pod", core::PodTemplate as "PodTemplate",
        core::ReplicationController as "ReplicationController", core::ResourceQuota as "ResourceQuota", core::Secret as "Secret", core::Service as "Service",
        core::ServiceAccount as "ServiceAccount";
    "apps" "v1" "io.k8s.api.apps.v1":
        apps::ControllerRevision as "ControllerRevision", apps::DaemonSet as "DaemonSet", apps::Deployment as "Deployment",
        apps::ReplicaSet as "ReplicaSet", apps::StatefulSet as "StatefulSet";
    "admissionregistration.k8s.io" "v1" "io.k8s.api.admissionregistration.v1":
        admissionregistration::MutatingWebhookConfiguration as "MutatingWebhookConfiguration",
        admissionregistration::ValidatingWebhookConfiguration as "ValidatingWebhookConfiguration";
    "authentication.k8s.io" "v1" "io.k8s.api.authentication.v1":
        authentication::SelfSubjectReview as "SelfSubjectReview", authentication::TokenRequest as "TokenRequest",
        authentication::TokenReview as "TokenReview";
    "authorization.k8s.io" "v1" "io.k8s.api.authorization.v1":
        authorization::LocalSubjectAccessReview as "LocalSubjectAccessReview",
        authorization::SelfSubjectAccessReview as "SelfSubjectAccessReview",
        authorization::SelfSubjectRulesReview as "SelfSubjectRulesReview",
        authorization::SubjectAccessReview as "SubjectAccessReview";
    "autoscaling" "v1" "io.k8s.api.autoscaling.v1":
        autoscaling::HorizontalPodAutoscaler as "HorizontalPodAutoscaler", autoscaling::Scale as "Scale";
    "autoscaling" "v2" "io.k8s.api.autoscaling.v2":
        autoscaling_v2::HorizontalPodAutoscaler as "HorizontalPodAutoscaler";
    "coordination.k8s.io" "v1" "io.k8s.api.coordination.v1": coordination::Lease as "Lease";
    "discovery.k8s.io" "v1" "io.k8s.api.discovery.v1": discovery::EndpointSlice as "EndpointSlice";
    "events.k8s.io" "v1" "io.k8s.api.events.v1": events::Event as "Event";
    "policy" "v1" "io.k8s.api.policy.v1":
        policy::Eviction as "Eviction", policy::PodDisruptionBudget as "PodDisruptionBudget";
    "rbac.authorization.k8s.io" "v1" "io.k8s.api.rbac.v1":
        rbac::ClusterRole as "ClusterRole", rbac::ClusterRoleBinding as "ClusterRoleBinding", rbac::Role as "Role",
        rbac::RoleBinding as "RoleBinding";
    "scheduling.k8s.io" "v1" "io.k8s.api.scheduling.v1": scheduling::PriorityClass as "PriorityClass";
    "storage.k8s.io" "v1" "io.k8s.api.storage.v1": storage::StorageClass as "StorageClass";
    "apiextensions.k8s.io" "v1" "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1":
        apiextensions::CustomResourceDefinition as "CustomResourceDefinition";
}

/// The built-in kind of that name, if there is a schema for it.
pub(crate) fn builtin_kind(group: &str, version: &str, kind: &str) -> Option<BuiltinKind> {
    KINDS
        .iter()
        .find(|known| known.group == group && known.version == version && known.kind == kind)
        .copied()
}

/// All definitions by name.
pub(super) fn definitions() -> &'static Map<String, Value> {
    static DEFINITIONS: LazyLock<Map<String, Value>> = LazyLock::new(build);
    &DEFINITIONS
}

/// The definition of that name.
pub(crate) fn definition(name: &str) -> Option<&'static Value> {
    definitions().get(name)
}

fn build() -> Map<String, Value> {
    let mut settings = SchemaSettings::openapi3();
    settings.definitions_path = "/components/schemas".into();
    settings.transforms.clear();
    settings.meta_schema = None;
    let mut generator = SchemaGenerator::new(settings);
    generate(&mut generator);
    let mut definitions = generator.take_definitions(false);
    for (name, definition) in &mut definitions {
        rewrite(definition);
        merge_keys::annotate(name, definition);
    }
    for known in KINDS {
        if let Some(Value::Object(definition)) = definitions.get_mut(known.definition) {
            definition.insert(
                "x-kubernetes-group-version-kind".to_owned(),
                json!([{ "group": known.group, "kind": known.kind, "version": known.version }]),
            );
        }
    }
    definitions
}

/// Converts schemars' form into the API server's: references with siblings move below `allOf`, numbers-or-strings become
/// a `oneOf`.
fn rewrite(schema: &mut Value) {
    let Value::Object(object) = schema else {
        if let Value::Array(items) = schema {
            items.iter_mut().for_each(rewrite);
        }
        return;
    };
    if object
        .remove("x-kubernetes-int-or-string")
        .is_some_and(|flag| flag == Value::Bool(true))
    {
        let quantity = object["description"]
            .as_str()
            .is_some_and(|text| text.starts_with("Quantity"));
        let number = if quantity { "number" } else { "integer" };
        if !quantity {
            object.insert("format".to_owned(), "int-or-string".into());
        }
        object.insert(
            "oneOf".to_owned(),
            json!([{ "type": "string" }, { "type": number }]),
        );
        return;
    }
    if object.len() > 1
        && let Some(reference) = object.remove("$ref")
    {
        object.insert("allOf".to_owned(), json!([{ "$ref": reference }]));
        return;
    }
    if let Some(Value::Object(items)) = object.get_mut("items")
        && items.len() == 1
        && let Some(reference) = items.remove("$ref")
    {
        items.insert("allOf".to_owned(), json!([{ "$ref": reference }]));
        items.insert("default".to_owned(), json!({}));
    }
    for (key, child) in object.iter_mut() {
        match (key.as_str(), child) {
            ("properties", Value::Object(properties)) => properties.values_mut().for_each(rewrite),
            ("items" | "additionalProperties" | "allOf" | "oneOf", child) => rewrite(child),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_definition_and_every_reference_leads_to_one() {
        for known in KINDS {
            assert!(
                definition(known.definition).is_some(),
                "{}",
                known.definition
            );
        }
        let text = serde_json::to_string(definitions()).unwrap();
        for reference in text.split("\"$ref\":\"").skip(1) {
            let name = reference
                .split('"')
                .next()
                .unwrap()
                .strip_prefix(REFERENCE_PREFIX)
                .unwrap();
            assert!(definition(name).is_some(), "{name}");
        }
    }

    #[test]
    fn quantities_and_ports_accept_numbers_or_strings() {
        let quantity = definition("io.k8s.apimachinery.pkg.api.resource.Quantity").unwrap();
        assert_eq!(
            quantity["oneOf"],
            json!([{ "type": "string" }, { "type": "number" }])
        );
        let port = definition("io.k8s.apimachinery.pkg.util.intstr.IntOrString").unwrap();
        assert_eq!(port["format"], "int-or-string");
    }
}
