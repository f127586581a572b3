//! Deletion: finalizers, preconditions, propagation.

use crate::reference::script::{
    RequestScript, Step, delete, delete_with, get, merge, post, put, script, steps,
};
use serde_json::{Value, json};

use super::objects::{config_map, pod, replica_set};

pub(crate) fn all() -> Vec<RequestScript> {
    vec![
        script("deletion::preconditions", steps![
            post("configmaps", config_map("a")).keep("uid", "/metadata/uid").keep("rv", "/metadata/resourceVersion"),
            delete_with("configmaps/a", json!({ "preconditions": { "uid": "other" } })).called("another uid"),
            delete_with("configmaps/a", json!({ "preconditions": { "resourceVersion": "1" } })).called("another version"),
            delete_with("configmaps/a", json!({ "preconditions": { "uid": "other", "resourceVersion": "1" } })).called("both"),
            delete_with("configmaps/a", json!({ "propagationPolicy": "Sideways" })).called("a bad policy"),
            delete_with("configmaps/a", json!({ "propagationPolicy": "Orphan", "orphanDependents": true })).called("both policies"),
            delete_with("configmaps/a", json!({ "kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 5, "preconditions": { "uid": "${uid}", "resourceVersion": "${rv}" } })),
            delete_with("configmaps/a", json!({ "preconditions": { "uid": "${uid}" } })).called("the object is deleted"),
        ]),
        script("deletion::finalizers", steps![
            post("configmaps", json!({ "metadata": { "name": "a", "finalizers": ["a.example/b"] }, "data": { "a": "1" } })),
            delete("configmaps/a"),
            delete("configmaps/a").called("again"),
            merge("configmaps/a", json!({ "data": { "b": "2" } })).called("changed while terminating"),
            merge("configmaps/a", json!({ "metadata": { "finalizers": ["a.example/b", "c.example/d"] } })).called("one more"),
            put("configmaps/a", config_map("a")).called("off"),
            get("configmaps/a"),
            post("configmaps", json!({ "metadata": { "name": "b", "deletionTimestamp": "2026-01-01T00:00:00Z" } })).called("born dying"),
        ]),
        policy("deletion::background", &json!({ "propagationPolicy": "Background" })),
        policy("deletion::orphan", &json!({ "propagationPolicy": "Orphan" })),
        policy("deletion::foreground", &json!({ "propagationPolicy": "Foreground" })),
        policy("deletion::default", &json!({})),
        script("deletion::of_pods", steps![
            post("pods", pod("p")),
            get("pods/p").until(20, |object| object["status"]["phase"] == "Running").only("/status/phase"),
            delete_with("pods/p", json!({ "gracePeriodSeconds": 0 })).called("at once").only("/metadata/name").only("/metadata/deletionGracePeriodSeconds"),
            get("pods/p"),
            post("pods", {
                let mut pod = pod("q");
                pod["metadata"]["finalizers"] = json!(["a.example/b"]);
                pod["spec"]["schedulerName"] = "nobody".into();
                pod
            }),
            delete("pods/q"),
            get("pods/q").called("held"),
            merge("pods/q", json!({ "metadata": { "finalizers": null } })),
            delete_with("pods/q", json!({ "gracePeriodSeconds": -1 })).called("negative"),
        ]),
        script("deletion::of_namespaces", steps![
            post("/api/v1/namespaces", json!({ "metadata": { "name": "${ns}-gone" } })),
            post("/api/v1/namespaces/${ns}-gone/configmaps", json!({ "metadata": { "name": "a", "finalizers": ["a.example/b"] } })),
            delete("/api/v1/namespaces/${ns}-gone"),
            get("/api/v1/namespaces/${ns}-gone").until(20, |object| {
                let all = object["status"]["conditions"].as_array();
                all.is_some_and(|all| all.iter().any(|condition| condition["type"] == "NamespaceFinalizersRemaining" && condition["status"] == "True"))
            }).called("remaining"),
            post("/api/v1/namespaces/${ns}-gone/configmaps", config_map("b")).called("create while terminating"),
            merge("/api/v1/namespaces/${ns}-gone/configmaps/a", json!({ "metadata": { "finalizers": null } })).called("off"),
            get("/api/v1/namespaces/${ns}-gone").until(30, |object| object["kind"] == "Status").called("the object is deleted"),
        ]),
        script("deletion::owners", steps![
            post("configmaps", config_map("owner")).keep("uid", "/metadata/uid"),
            post("configmaps", owned("child", "${uid}")),
            post("configmaps", owned("lost", "00000000-0000-0000-0000-000000000000")),
            get("configmaps/lost").until(20, |object| object["kind"] == "Status").called("without an owner"),
            delete("configmaps/owner"),
            get("configmaps/child").until(20, |object| object["kind"] == "Status").called("after its owner"),
        ]),
    ]
}

fn owned(name: &str, uid: &str) -> Value {
    json!({ "metadata": { "name": name, "ownerReferences": [
        { "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid, "blockOwnerDeletion": true },
    ] } })
}

fn policy(name: &'static str, options: &Value) -> RequestScript {
    let orphan = options["propagationPolicy"] == "Orphan";
    let mut steps: Vec<Step> = steps![
        post("apps/v1:replicasets", replica_set("web", 2)),
        get("apps/v1:replicasets/web")
            .until(30, |object| object["status"]["readyReplicas"] == 2)
            .called("ready"),
        delete_with("apps/v1:replicasets/web", options.clone()).called("delete"),
        get("apps/v1:replicasets/web")
            .until(30, |object| object["kind"] == "Status")
            .called("the set is gone"),
    ];
    steps.push(if orphan {
        get("pods")
            .called("pods stay")
            .only("/items/0/metadata/ownerReferences")
            .only("/items/1/metadata/name")
            .into()
    } else {
        get("pods")
            .until(30, |object| {
                object["items"].as_array().is_some_and(Vec::is_empty)
            })
            .called("pods are gone")
            .into()
    });
    script(name, steps)
}
