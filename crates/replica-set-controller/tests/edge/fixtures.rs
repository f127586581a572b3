//! The set of the tests.

use fedrs_api::{LocalReplicaSet, ValidLocalReplicaSet};
use serde_json::{Value, json};

/// The set `web` in the namespace `shop`, with these fields in its spec and in that of its pods.
pub(crate) fn set_with(fields: &Value, pods: &Value) -> ValidLocalReplicaSet {
    let mut spec = json!({ "containers": [{ "name": "main", "image": "main:1" }] });
    merge(&mut spec, pods);
    let mut object = json!({
        "apiVersion": "fedrs.dev/v1alpha1", "kind": "LocalReplicaSet",
        "metadata": { "name": "web", "namespace": "shop", "uid": "set" },
        "spec": {
            "replicas": 4,
            "selector": { "matchLabels": { "app": "web" } },
            "template": { "metadata": { "labels": { "app": "web" } }, "spec": spec },
        },
    });
    merge(&mut object["spec"], fields);
    let set: LocalReplicaSet = serde_json::from_value(object).unwrap();
    ValidLocalReplicaSet::check(&set).unwrap()
}

pub(crate) fn set() -> ValidLocalReplicaSet {
    set_with(&json!({}), &json!({}))
}

fn merge(target: &mut Value, fields: &Value) {
    for (name, value) in fields.as_object().unwrap() {
        target[name] = value.clone();
    }
}
