//! The objects that conversations are about.

use fedrs_tests::truth::talk::{Ask, get};
use serde_json::{Value, json};

/// A `ConfigMap` with one entry.
pub(crate) fn config_map(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": { "a": "1" } })
}

/// A `ConfigMap` with a label.
pub(crate) fn labelled(name: &str, key: &str, value: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": name, "labels": { key: value } },
        "data": { "a": "1" },
    })
}

/// What pods of tests are made of.
pub(crate) fn pod_spec() -> Value {
    json!({
        // What a token would be mounted for is compared on its own.
        "automountServiceAccountToken": false,
        "containers": [{ "name": "main", "image": "registry.example/app:1" }],
    })
}

/// A pod.
pub(crate) fn pod(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name }, "spec": pod_spec() })
}

/// A pod that no node can take.
pub(crate) fn pod_nowhere(name: &str) -> Value {
    let mut pod = pod(name);
    pod["spec"]["nodeSelector"] = json!({ "nowhere": "true" });
    pod
}

/// A ReplicaSet.
pub(crate) fn replica_set(name: &str, replicas: u32) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": { "name": name },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": { "app": name } },
            "template": { "metadata": { "labels": { "app": name } }, "spec": pod_spec() },
        },
    })
}

/// Waits until the controller has seen what a ReplicaSet without replicas asks for, and written all that it will.
pub(crate) fn seen(path: &str) -> Ask {
    get(path)
        .until(20, |it| {
            it["status"]["observedGeneration"] == it["metadata"]["generation"]
        })
        .called("seen")
}

/// A Lease.
pub(crate) fn lease(name: &str, holder: &str) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": { "name": name },
        "spec": { "holderIdentity": holder, "leaseDurationSeconds": 15 },
    })
}
