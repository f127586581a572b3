//! Server-side apply.

use crate::reference::script::{
    KnownDifferenceRow, RequestScript, apply, get, merge, post, put, script, steps,
    with_known_differences,
};
use serde_json::{Value, json};

use super::objects::{config_map, replica_set, seen};

const SET: &str = "apps/v1:replicasets/web";

/// Known differences: the script, the reason, the step, the path.
const DIFFERS: &[KnownDifferenceRow] = &[
    (
        "apply::replica_sets",
        "typed-duplicates",
        "twice the key",
        "body",
    ),
    (
        "apply::replica_sets",
        "typed-duplicates",
        "twice the key",
        "code",
    ),
    (
        "apply::config_maps",
        "go-words",
        "no version",
        "body/message",
    ),
];

pub(crate) fn all() -> Vec<RequestScript> {
    with_known_differences(DIFFERS, scripts())
}

fn scripts() -> Vec<RequestScript> {
    vec![
        script("apply::config_maps", steps![
            apply("configmaps/a?fieldManager=one", config_map("a")),
            apply("configmaps/a?fieldManager=one", config_map("a")).called("again"),
            apply("configmaps/a?fieldManager=two", data(&json!({ "b": "2" }))),
            apply("configmaps/a?fieldManager=two", data(&json!({ "a": "2", "b": "3" }))).called("conflict"),
            apply("configmaps/a?fieldManager=two&force=true", data(&json!({ "a": "2", "b": "3" }))).called("force"),
            apply("configmaps/a?fieldManager=one", config_map("a")).called("conflict the other way"),
            apply("configmaps/a?fieldManager=one", data(&json!({ "c": "1" }))).called("one gives up a"),
            apply("configmaps/a?fieldManager=two", data(&json!({ "b": "3" }))).called("a goes"),
            merge("configmaps/a?fieldManager=three", json!({ "data": { "b": "4" } })).called("an update takes over"),
            apply("configmaps/a?fieldManager=two", data(&json!({ "b": "5" }))).called("conflict with an update"),
            apply("configmaps/a?fieldManager=two", data(&json!({ "b": "4" }))).called("shared"),
            apply("configmaps/a", data(&json!({}))).called("no manager"),
            apply("configmaps/a?fieldManager=one", json!({ "kind": "ConfigMap", "metadata": { "name": "a" } })).called("no version"),
            apply("configmaps/a?fieldManager=one", json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "b" } })).called("another name"),
            apply("configmaps/a?fieldManager=one", json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a", "managedFields": [{ "manager": "x" }] } })).called("with managed fields"),
            apply("configmaps/a?fieldManager=one", json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a", "resourceVersion": "1" }, "data": { "z": "1" } })).called("stale"),
            apply("configmaps/a?fieldManager=one", json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a", "uid": "1" }, "data": { "z": "1" } })).called("another uid"),
            apply("configmaps/none?fieldManager=one", json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "none", "uid": "1" } })).called("none by uid"),
            apply("configmaps/a?fieldManager=one", json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" }, "dat": { "z": "1" } })).called("an unknown field"),
            put("configmaps/a?fieldManager=four", config_map("a")).called("replaced"),
            merge("configmaps/a?fieldManager=five", json!({ "metadata": { "managedFields": [] } })).called("managed fields stored"),
            merge("configmaps/a?fieldManager=five", json!({ "metadata": { "managedFields": [{}] } })).called("managed fields off"),
            apply("configmaps/a?fieldManager=one", data(&json!({ "a": "7" }))).called("before first apply"),
        ]),
        script("apply::replica_sets", steps![
            apply("apps/v1:replicasets/web?fieldManager=one", replica_set("web", 0)),
            seen(SET),
            apply("apps/v1:replicasets/web?fieldManager=two", containers(&json!([{ "name": "side", "image": "b" }]))).called("another container"),
            seen(SET),
            apply("apps/v1:replicasets/web?fieldManager=two", containers(&json!([{ "name": "main", "image": "b" }]))).called("conflict by key"),
            apply("apps/v1:replicasets/web?fieldManager=two&force=true", containers(&json!([{ "name": "main", "image": "b" }]))).called("force by key"),
            seen(SET),
            apply("apps/v1:replicasets/web?fieldManager=two", containers(&json!([{ "name": "main", "image": "b" }, { "name": "main", "image": "c" }]))).called("twice the key"),
            apply("apps/v1:replicasets/web?fieldManager=two", containers(&json!([{ "image": "b" }]))).called("no key"),
            merge("apps/v1:replicasets/web/scale", json!({ "spec": { "replicas": 0 } })).called("scale"),
            apply("apps/v1:replicasets/web/status?fieldManager=s", json!({ "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": { "name": "web" }, "status": { "conditions": [{ "type": "X", "status": "True" }] } })).called("status"),
            get(SET),
        ]),
        script("apply::labels_and_finalizers", steps![
            post("configmaps", config_map("a")),
            apply("configmaps/a?fieldManager=one", json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": { "name": "a", "labels": { "l": "1" }, "annotations": { "n": "1" }, "finalizers": ["x.example/y"] },
            })),
            apply("configmaps/a?fieldManager=two", json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": { "name": "a", "labels": { "l": "2" }, "annotations": { "n": "2" }, "finalizers": ["x.example/z"] },
            })).called("conflicts"),
            apply("configmaps/a?fieldManager=one", json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" } })).called("given up"),
        ]),
    ]
}

fn data(data: &Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" }, "data": data })
}

fn containers(containers: &Value) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": { "name": "web" },
        "spec": {
            "selector": { "matchLabels": { "app": "web" } },
            "template": { "spec": { "containers": containers } },
        },
    })
}
