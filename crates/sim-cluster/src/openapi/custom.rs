//! The definition of a custom resource: its own schema with the fields of every object.

use serde_json::{Value, json};

use super::kind_entry::{KindEntry, reference};

pub(super) const API_VERSION_WORDS: &str = "APIVersion defines the versioned schema of this representation of an object. Servers should convert recognized schemas to the latest internal value, and may reject unrecognized values. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources";
pub(super) const KIND_WORDS: &str = "Kind is a string value representing the REST resource this object represents. Servers may infer this from the endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds";
const METADATA_WORDS: &str = "Standard object's metadata. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";

pub(super) fn definition(kind: &KindEntry<'_>, schema: &Value) -> Value {
    let mut definition = schema.clone();
    if !definition["properties"].is_object() {
        definition["properties"] = json!({});
    }
    let properties = &mut definition["properties"];
    properties["apiVersion"] = json!({ "description": API_VERSION_WORDS, "type": "string" });
    properties["kind"] = json!({ "description": KIND_WORDS, "type": "string" });
    properties["metadata"] = json!({
        "description": METADATA_WORDS, "allOf": [reference("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")]
    });
    definition["x-kubernetes-group-version-kind"] = json!([kind.group_version_kind()]);
    definition
}
