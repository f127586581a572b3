//! `OpenAPI` v3: the index and a document for each group and version, as `kubectl` reads them.
//!
//! kinds of a group and version -> [`document`]; all groups and versions -> [`index`], which has a fingerprint of each
//! document, so that clients can cache it. Responses have schemas only; `/openapi/v2` is not served.

mod custom;
mod kind_entry;
mod operations;

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::{Map, Value, json};

use crate::schema::{REFERENCE_PREFIX, definition};
use kind_entry::reference;
pub(crate) use kind_entry::{KindEntry, document_path};

/// The index over all kinds.
pub(crate) fn index(kinds: &[KindEntry<'_>]) -> Value {
    let paths: BTreeSet<String> = kinds
        .iter()
        .map(|kind| document_path(kind.group, kind.version))
        .collect();
    let entries = paths.into_iter().map(|path| {
        let url = format!("/openapi/v3/{path}?hash={}", fingerprint(kinds, &path));
        (path, json!({ "serverRelativeURL": url }))
    });
    json!({ "paths": entries.collect::<Map<_, _>>() })
}

/// A fingerprint of the document at `path`.
pub(crate) fn fingerprint(kinds: &[KindEntry<'_>], path: &str) -> String {
    let mut hasher = DefaultHasher::new();
    for kind in kinds
        .iter()
        .filter(|kind| document_path(kind.group, kind.version) == path)
    {
        (kind.kind, kind.plural, kind.namespaced, &kind.subresources).hash(&mut hasher);
        kind.schema.map(Value::to_string).hash(&mut hasher);
    }
    format!("{:016X}", hasher.finish())
}

/// The document of the kinds, which share a group and a version.
pub(crate) fn document(kinds: &[KindEntry<'_>], server_version: &str) -> Value {
    let mut paths = Map::new();
    let mut schemas = Map::new();
    for kind in kinds {
        let Some(name) = kind.definition_name() else {
            continue;
        };
        if let Some(schema) = kind.schema {
            schemas.insert(name.clone(), custom::definition(kind, schema));
        }
        schemas.insert(format!("{name}List"), list_definition(kind, &name));
        operations::add(kind, &name, &mut paths);
    }
    let text =
        Value::Object(paths.clone()).to_string() + &Value::Object(schemas.clone()).to_string();
    add_referenced(&text, &mut schemas);
    json!({
        "openapi": "3.0.0",
        "info": { "title": "Kubernetes", "version": server_version },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": { "BearerToken": {
                "description": "Bearer Token authentication", "in": "header", "name": "authorization", "type": "apiKey"
            } },
        },
    })
}

/// Adds the definitions that a JSON text refers to, recursively.
fn add_referenced(text: &str, schemas: &mut Map<String, Value>) {
    for part in text.split(REFERENCE_PREFIX).skip(1) {
        let name = part.split('"').next().unwrap_or_default();
        if schemas.contains_key(name) {
            continue;
        }
        if let Some(found) = definition(name) {
            let mut found = found.clone();
            metadata_is_optional(&mut found);
            schemas.insert(name.to_owned(), found.clone());
            add_referenced(&found.to_string(), schemas);
        }
    }
}

/// No kind requires its metadata, but the types from which these schemas are generated do.
fn metadata_is_optional(schema: &mut Value) {
    let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) else {
        return;
    };
    required.retain(|field| field != "metadata");
    if required.is_empty()
        && let Some(fields) = schema.as_object_mut()
    {
        fields.remove("required");
    }
}

fn list_definition(kind: &KindEntry<'_>, name: &str) -> Value {
    let list = format!("{}List", kind.kind);
    json!({
        "description": format!("{list} is a list of {}", kind.kind),
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": { "description": custom::API_VERSION_WORDS, "type": "string" },
            "items": { "description": format!("List of {}.", kind.plural), "type": "array", "items": { "allOf": [reference(name)], "default": {} } },
            "kind": { "description": custom::KIND_WORDS, "type": "string" },
            "metadata": { "description": "Standard list metadata.", "default": {}, "allOf": [reference("io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta")] },
        },
        "x-kubernetes-group-version-kind": [{ "group": kind.group, "kind": list, "version": kind.version }],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry<'a>(
        group: &'a str,
        kind: &'a str,
        plural: &'a str,
        schema: Option<&'a Value>,
    ) -> KindEntry<'a> {
        KindEntry {
            group,
            version: "v1",
            kind,
            plural,
            namespaced: true,
            subresources: vec!["status"],
            schema,
        }
    }

    #[test]
    fn a_document_has_all_referenced_definitions() {
        let document = document(
            &[entry("apps", "ReplicaSet", "replicasets", None)],
            "v1.36.0",
        );
        let schemas = document["components"]["schemas"].as_object().unwrap();
        for part in document.to_string().split(REFERENCE_PREFIX).skip(1) {
            let name = part.split('"').next().unwrap();
            assert!(schemas.contains_key(name), "{name}");
        }
        assert!(schemas.contains_key("io.k8s.api.core.v1.Container"));
        let containers = &schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"];
        assert_eq!(containers["x-kubernetes-patch-merge-key"], "name");
        assert_eq!(containers["x-kubernetes-patch-strategy"], "merge");
    }

    #[test]
    fn kubectl_finds_the_field_validation_parameter() {
        let document = document(
            &[entry("apps", "ReplicaSet", "replicasets", None)],
            "v1.36.0",
        );
        let patch =
            &document["paths"]["/apis/apps/v1/namespaces/{namespace}/replicasets/{name}"]["patch"];
        assert_eq!(
            patch["x-kubernetes-group-version-kind"],
            json!({ "group": "apps", "kind": "ReplicaSet", "version": "v1" })
        );
        let names: Vec<&str> = patch["parameters"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["name"].as_str().unwrap())
            .collect();
        assert!(names.contains(&"fieldValidation") && names.contains(&"dryRun"));
    }

    #[test]
    fn a_custom_resource_is_described_with_its_object_fields() {
        let schema = json!({ "type": "object", "description": "A thing.", "properties": { "spec": { "type": "object", "description": "What." } } });
        let document = document(
            &[entry(
                "stable.example.com",
                "Thing",
                "things",
                Some(&schema),
            )],
            "v1.36.0",
        );
        let thing = &document["components"]["schemas"]["com.example.stable.v1.Thing"];
        assert_eq!(
            thing["properties"]["metadata"]["allOf"][0]["$ref"],
            "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
        );
        assert_eq!(thing["properties"]["spec"]["description"], "What.");
        assert_eq!(thing["x-kubernetes-group-version-kind"][0]["kind"], "Thing");
    }

    #[test]
    fn custom_resources_have_no_strategic_merge_patch() {
        let schema = json!({ "type": "object" });
        let formats = |entry: KindEntry<'_>| {
            let path = format!(
                "/{}/namespaces/{{namespace}}/{}/{{name}}",
                document_path(entry.group, entry.version),
                entry.plural
            );
            document(&[entry], "v1.36.0")["paths"][path]["patch"]["requestBody"]["content"].clone()
        };
        let strategic = "application/strategic-merge-patch+json";
        assert!(
            formats(entry("apps", "ReplicaSet", "replicasets", None))
                .get(strategic)
                .is_some()
        );
        assert!(
            formats(entry("g.io", "K", "ks", Some(&schema)))
                .get(strategic)
                .is_none()
        );
    }

    #[test]
    fn the_index_changes_with_the_schema() {
        let (one, two) = (
            json!({ "type": "object" }),
            json!({ "type": "object", "description": "x" }),
        );
        let url = |schema: &Value| {
            index(&[entry("g.io", "K", "ks", Some(schema))])["paths"]["apis/g.io/v1"]["serverRelativeURL"].clone()
        };
        assert_ne!(url(&one), url(&two));
        assert!(
            url(&one)
                .as_str()
                .unwrap()
                .starts_with("/openapi/v3/apis/g.io/v1?hash=")
        );
    }
}
