//! The CRDs of the Multi-Cluster Services API, as far as the controller depends on them: the version `v1alpha1` with the fields of
//! sigs.k8s.io/mcs-api v0.5.2.

use serde_json::{Value, json};

/// Where CRDs are created.
pub(crate) const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

fn texts() -> Value {
    json!({ "type": "object", "additionalProperties": { "type": "string" } })
}

fn list(item: &Value, key: &str) -> Value {
    json!({
        "type": "array", "items": item,
        "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key],
    })
}

fn conditions() -> Value {
    let text = json!({ "type": "string" });
    let condition = json!({
        "type": "object",
        "required": ["lastTransitionTime", "message", "reason", "status", "type"],
        "properties": {
            "type": text, "message": text,
            "status": { "type": "string", "enum": ["True", "False", "Unknown"] },
            "reason": {
                "type": "string", "minLength": 1,
                "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
            },
            "lastTransitionTime": { "type": "string", "format": "date-time" },
            "observedGeneration": { "type": "integer", "format": "int64" },
        },
    });
    list(&condition, "type")
}

fn crd((kind, plural): (&str, &str), spec: &Value, status: &Value) -> Value {
    let schema = json!({
        "type": "object",
        "properties": { "spec": spec, "status": { "type": "object", "properties": status } },
    });
    let version = json!({
        "name": "v1alpha1", "served": true, "storage": true,
        "subresources": { "status": {} },
        "schema": { "openAPIV3Schema": schema },
    });
    // Groups of *.x-k8s.io are reserved, and need a note of where the API was approved.
    let annotations = json!({ "api-approved.kubernetes.io": "unapproved, for tests" });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.multicluster.x-k8s.io"), "annotations": annotations },
        "spec": {
            "group": "multicluster.x-k8s.io", "scope": "Namespaced",
            "names": { "kind": kind, "plural": plural, "singular": kind.to_lowercase() },
            "versions": [version],
        },
    })
}

/// Both CRDs.
pub(crate) fn all() -> [Value; 2] {
    let text = json!({ "type": "string" });
    let number = json!({ "type": "integer", "format": "int32" });
    let exports = json!({
        "type": "object",
        "properties": { "exportedLabels": texts(), "exportedAnnotations": texts() },
    });
    let port = json!({
        "type": "object", "required": ["port"],
        "properties": { "name": text, "protocol": text, "appProtocol": text, "port": number },
    });
    let client_ip = json!({ "type": "object", "properties": { "timeoutSeconds": number } });
    let imports = json!({
        "type": "object", "required": ["ports", "type"],
        "properties": {
            "type": { "type": "string", "enum": ["ClusterSetIP", "Headless"] },
            "ports": { "type": "array", "items": port, "x-kubernetes-list-type": "atomic" },
            "ips": { "type": "array", "maxItems": 2, "items": text },
            "ipFamilies": { "type": "array", "maxItems": 2, "items": text },
            "sessionAffinity": text,
            "sessionAffinityConfig": { "type": "object", "properties": { "clientIP": client_ip } },
            "internalTrafficPolicy": text,
            "trafficDistribution": text,
        },
    });
    let cluster =
        json!({ "type": "object", "required": ["cluster"], "properties": { "cluster": text } });
    let status = json!({
        "clusters": list(&cluster, "cluster"),
        "conditions": conditions(),
        "endpointSliceObjects": { "type": "string", "enum": ["Present", "Absent"] },
    });
    let of_exports = json!({ "conditions": conditions() });
    [
        crd(("ServiceExport", "serviceexports"), &exports, &of_exports),
        crd(("ServiceImport", "serviceimports"), &imports, &status),
    ]
}
