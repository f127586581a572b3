//! Objects for the scripts.

use crate::reference::script::{ApiRequest, get};
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

/// The spec of test pods.
pub(crate) fn pod_spec() -> Value {
    json!({
        // Token volumes are compared separately.
        "automountServiceAccountToken": false,
        "containers": [{ "name": "main", "image": "registry.example/app:1" }],
    })
}

/// A pod.
pub(crate) fn pod(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name }, "spec": pod_spec() })
}

/// A pod that no node can run.
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

/// A Deployment that replaces one pod after the other.
pub(crate) fn deployment(name: &str, replicas: u32) -> Value {
    let mut deployment = replica_set(name, replicas);
    deployment["kind"] = json!("Deployment");
    deployment["spec"]["strategy"] = json!({
        "type": "RollingUpdate", "rollingUpdate": { "maxSurge": 1, "maxUnavailable": 0 },
    });
    deployment
}

/// Waits until the controller has observed a ReplicaSet without replicas and written its status.
pub(crate) fn seen(path: &str) -> ApiRequest {
    get(path)
        .until(20, |object| {
            object["status"]["observedGeneration"] == object["metadata"]["generation"]
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
