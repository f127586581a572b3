//! What isn't served, isn't allowed, or can't be read; and quota.

use crate::reference::script::{
    KnownDifferenceRow, RequestScript, delete, get, other, post, put, script, steps,
    with_known_differences,
};
use serde_json::json;

use super::objects::{config_map, pod, pod_nowhere, replica_set};

/// Known differences: the script, the reason, the step, the path.
const DIFFERS: &[KnownDifferenceRow] = &[
    ("refusals::bodies", "go-words", "an array", "body/message"),
    ("refusals::bodies", "go-words", "a string", "body/message"),
    (
        "refusals::bodies",
        "go-words",
        "another kind",
        "body/message",
    ),
    (
        "refusals::bodies",
        "go-words",
        "another version",
        "body/message",
    ),
    (
        "refusals::bodies",
        "go-words",
        "another group",
        "body/message",
    ),
    (
        "refusals::bodies",
        "go-words",
        "other options",
        "body/message",
    ),
    ("refusals::of_no_use", "admission", "no account", "body"),
    ("refusals::of_no_use", "admission", "no account", "code"),
    ("refusals::of_no_use", "admission", "no priority", "body"),
    ("refusals::of_no_use", "admission", "no priority", "code"),
    (
        "refusals::invalid_objects",
        "service",
        "a service without ports",
        "body",
    ),
    (
        "refusals::invalid_objects",
        "service",
        "a service without ports",
        "code",
    ),
    (
        "refusals::invalid_objects",
        "go-words",
        "an empty set",
        "body",
    ),
    (
        "refusals::invalid_objects",
        "go-words",
        "an expression without values",
        "body",
    ),
    (
        "refusals::invalid_objects",
        "go-words",
        "no such operator",
        "body",
    ),
];

pub(crate) fn all() -> Vec<RequestScript> {
    with_known_differences(DIFFERS, scripts())
}

fn scripts() -> Vec<RequestScript> {
    vec![
        paths_and_methods(),
        bodies(),
        invalid_objects(),
        quota(),
        of_no_use(),
    ]
}

fn paths_and_methods() -> RequestScript {
    script(
        "refusals::paths_and_methods",
        steps![
            get("/nothing"),
            get("/api/v1/nothing"),
            get("/api/v2"),
            get("/apis/nothing"),
            get("/apis/apps/v9"),
            get("/apis/apps/v1/nothing"),
            get("apps/v1:nothing/a"),
            post("nothing", json!({})),
            put("configmaps", config_map("a")),
            post("configmaps/a", config_map("a")),
            other("PATCH", "configmaps"),
            other("DELETE", "/api/v1/namespaces"),
            delete("pods/a/status"),
            post("pods/a/status", json!({})),
            get("pods/a/nothing"),
            get("pods/a/binding"),
            get("pods/a/eviction"),
            other("OPTIONS", "configmaps"),
            other("HEAD", "configmaps/a").only("/x"),
            get("/api/v1/configmaps/a"),
            get("/api/v1/namespaces/${ns}/nodes"),
            get("/apis/apps/v1/nodes"),
            get("configmaps/a/b/c/d"),
        ],
    )
}

fn bodies() -> RequestScript {
    script(
        "refusals::bodies",
        steps![
            other("POST", "configmaps")
                .text("application/json", "{")
                .called("half"),
            other("POST", "configmaps")
                .text("application/json", "")
                .called("none"),
            other("POST", "configmaps")
                .text("application/json", "[]")
                .called("an array"),
            other("POST", "configmaps")
                .text("application/json", "\"x\"")
                .called("a string"),
            other("POST", "configmaps")
                .text("text/plain", "{}")
                .called("text"),
            other("POST", "configmaps")
                .text("application/xml", "<a/>")
                .called("xml"),
            other("POST", "configmaps").called("no body"),
            post(
                "configmaps",
                json!({ "kind": "Secret", "apiVersion": "v1", "metadata": { "name": "a" } })
            )
            .called("another kind"),
            post(
                "configmaps",
                json!({ "kind": "ConfigMap", "apiVersion": "v2", "metadata": { "name": "a" } })
            )
            .called("another version"),
            post(
                "configmaps",
                json!({ "kind": "ConfigMap", "apiVersion": "apps/v1", "metadata": { "name": "a" } })
            )
            .called("another group"),
            post("configmaps", json!({ "metadata": "x" })).called("metadata is text"),
            post("configmaps", json!({ "metadata": { "name": 1 } })).called("a number for a name"),
            post(
                "configmaps",
                json!({ "metadata": { "name": "a" }, "data": [] })
            )
            .called("data is an array"),
            post(
                "configmaps",
                json!({ "metadata": { "name": "a", "labels": { "a": 1 } } })
            )
            .called("a label is a number"),
            post(
                "pods",
                json!({ "metadata": { "name": "p" }, "spec": { "containers": {} } })
            )
            .called("containers are an object"),
            other("PATCH", "configmaps/a")
                .text("text/plain", "{}")
                .called("a patch in text"),
            other("DELETE", "configmaps/a")
                .text("application/json", "{")
                .called("half the options"),
            other("DELETE", "configmaps/a")
                .text("application/json", r#"{"kind":"Foo","apiVersion":"v1"}"#)
                .called("other options"),
        ],
    )
}

fn invalid_objects() -> RequestScript {
    script("refusals::invalid_objects", steps![
            post("pods", json!({ "metadata": { "name": "p" }, "spec": {} })).called("no containers"),
            post("pods", json!({ "metadata": { "name": "p" } })).called("no spec"),
            post("pods", json!({ "metadata": { "name": "p" }, "spec": { "containers": [{}] } })).called("an empty container"),
            post("pods", json!({ "metadata": { "name": "p" }, "spec": { "restartPolicy": "Perhaps", "containers": [
                { "name": "A_", "image": "", "imagePullPolicy": "Now", "ports": [{ "containerPort": 0 }], "resources": { "requests": { "cpu": "2" }, "limits": { "cpu": "1" } } },
                { "name": "A_", "image": "x" },
            ] } })).called("much is wrong"),
            post("pods", json!({ "metadata": { "name": "p" }, "spec": { "containers": [{ "name": "a", "image": "b", "resources": { "requests": { "cpu": "much" } } }] } })).called("a bad quantity"),
            post("pods", json!({ "metadata": { "name": "p" }, "spec": { "terminationGracePeriodSeconds": -1, "nodeSelector": { "a b": "c" }, "containers": [{ "name": "a", "image": "b", "resources": { "requests": { "cpu": "-1" } } }] } })).called("negative"),
            post("apps/v1:replicasets", json!({ "metadata": { "name": "s" } })).called("an empty set"),
            post("apps/v1:replicasets", json!({ "metadata": { "name": "s" }, "spec": { "selector": {}, "template": {} } })).called("empty selector"),
            post("apps/v1:replicasets", { let mut object = replica_set("s", 0); object["spec"]["template"]["metadata"]["labels"] = json!({ "a": "b" }); object }).called("selector does not match"),
            post("apps/v1:replicasets", { let mut object = replica_set("s", 0); object["spec"]["replicas"] = json!(-1); object }).called("negative replicas"),
            post("apps/v1:replicasets", { let mut object = replica_set("s", 0); object["spec"]["minReadySeconds"] = json!(-1); object }).called("negative seconds"),
            post("apps/v1:replicasets", { let mut object = replica_set("s", 0); object["spec"]["template"]["spec"]["restartPolicy"] = json!("Never"); object }).called("restart policy"),
            post("apps/v1:replicasets", { let mut object = replica_set("s", 0); object["spec"]["selector"] = json!({ "matchExpressions": [{ "key": "a", "operator": "In" }] }); object }).called("an expression without values"),
            post("apps/v1:replicasets", { let mut object = replica_set("s", 0); object["spec"]["selector"] = json!({ "matchExpressions": [{ "key": "a", "operator": "Near", "values": ["x"] }] }); object }).called("no such operator"),
            post("/apis/rbac.authorization.k8s.io/v1/clusterroles", json!({ "metadata": { "name": "${ns}-r" }, "rules": [{ "verbs": [], "resources": ["a"] }] })).called("a role without verbs"),
            post("rbac.authorization.k8s.io/v1:rolebindings", json!({ "metadata": { "name": "b" }, "roleRef": { "kind": "Foo", "name": "" } })).called("a bad binding"),
            post("services", json!({ "metadata": { "name": "s" }, "spec": {} })).called("a service without ports"),
        ])
}

fn quota() -> RequestScript {
    script("refusals::quota", steps![
            post("resourcequotas", json!({ "metadata": { "name": "q" }, "spec": { "hard": { "pods": "1", "requests.cpu": "1", "count/configmaps": "2" } } })),
            get("resourcequotas/q").until(20, |object| !object["status"]["used"].is_null() ).only("/status/hard").only("/status/used/pods"),
            post("pods", pod_nowhere("unspecified")),
            post("pods", { let mut object = pod_nowhere("big"); object["spec"]["containers"][0]["resources"] = json!({ "requests": { "cpu": "2" } }); object }).called("too much"),
            post("pods", { let mut object = pod_nowhere("a"); object["spec"]["containers"][0]["resources"] = json!({ "requests": { "cpu": "600m" } }); object }).called("fits"),
            post("pods", { let mut object = pod_nowhere("b"); object["spec"]["containers"][0]["resources"] = json!({ "requests": { "cpu": "600m" } }); object }).called("one too many"),
            get("resourcequotas/q").only("/status/used/pods").only("/status/used/requests.cpu"),
            post("resourcequotas", json!({ "metadata": { "name": "r" }, "spec": { "hard": { "pods": "x", "foo": "1" } } })).called("bad quota"),
        ])
}

fn of_no_use() -> RequestScript {
    script(
        "refusals::of_no_use",
        steps![
            post("pods", {
                let mut object = pod("p");
                object["spec"]["serviceAccountName"] = "none".into();
                object
            })
            .called("no account"),
            post("pods", {
                let mut object = pod("p");
                object["spec"]["priorityClassName"] = "none".into();
                object
            })
            .called("no priority"),
        ],
    )
}
