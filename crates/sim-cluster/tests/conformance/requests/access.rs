//! User may do what.

use crate::reference::script::{
    KnownDifferenceRow, RequestScript, delete, get, merge, other, post, put, script, steps,
    with_known_differences,
};
use serde_json::json;

use super::objects::{config_map, replica_set};

/// Known differences: the script, the reason, the step, the path.
const DIFFERS: &[KnownDifferenceRow] = &[
    (
        "access::roles",
        "managers",
        "may she get",
        "body/metadata/managedFields",
    ),
    (
        "access::roles",
        "managers",
        "may she delete",
        "body/metadata/managedFields",
    ),
    (
        "access::roles",
        "managers",
        "a path",
        "body/metadata/managedFields",
    ),
    (
        "access::roles",
        "go-words",
        "her rules",
        "body/spec/namespace",
    ),
    ("access::roles", "go-words", "neither", "body/details/kind"),
    ("access::roles", "go-words", "neither", "body/message"),
    ("access::roles", "not-served", "local", "body"),
    ("access::roles", "not-served", "local", "code"),
    ("access::roles", "order", "another role", "body/message"),
    (
        "access::roles",
        "order",
        "another role",
        "body/details/causes/0/message",
    ),
];

pub(crate) fn all() -> Vec<RequestScript> {
    with_known_differences(DIFFERS, scripts())
}

fn scripts() -> Vec<RequestScript> {
    vec![forbidden(), nobody(), roles()]
}

fn forbidden() -> RequestScript {
    script(
        "access::forbidden",
        steps![
            get("configmaps").by("jane"),
            get("configmaps/a").by("jane"),
            post("configmaps", config_map("a")).by("jane"),
            put("configmaps/a", config_map("a")).by("jane"),
            merge("configmaps/a", json!({})).by("jane"),
            delete("configmaps/a").by("jane"),
            other("DELETE", "configmaps").by("jane"),
            get("configmaps?watch=true").by("jane"),
            get("apps/v1:replicasets/web/scale").by("jane"),
            merge("apps/v1:replicasets/web/scale", json!({})).by("jane"),
            get("/api/v1/nodes").by("jane"),
            get("/api/v1/nodes/a").by("jane"),
            get("/api/v1/pods").by("jane"),
            get("/api/v1/namespaces/${ns}").by("jane"),
            post("/api/v1/namespaces", json!({ "metadata": { "name": "x" } })).by("jane"),
            get("/metrics").by("jane"),
            get("/version").by("jane").only("/major"),
            get("/healthz").by("jane"),
            get("nothing").by("jane"),
            get("/apis/nothing").by("jane"),
            post("apps/v1:replicasets", replica_set("web", 0))
                .by("system:serviceaccount:${ns}:default")
                .called("an account"),
        ],
    )
}

fn nobody() -> RequestScript {
    script(
        "access::nobody",
        steps![
            get("configmaps").with_token(None),
            get("/api/v1/nodes").with_token(None),
            get("/version").with_token(None).only("/major"),
            get("/healthz").with_token(None),
            get("/readyz").with_token(None),
            get("/livez").with_token(None),
            get("/api")
                .with_token(None)
                .called("discovery")
                .only("/kind"),
            get("/apis").with_token(None),
            post("configmaps", config_map("a")).with_token(None),
            get("configmaps")
                .with_token(Some("wrong"))
                .called("a wrong token"),
            get("configmaps")
                .with_token(Some("a.b.c"))
                .called("three parts"),
        ],
    )
}

fn roles() -> RequestScript {
    script("access::roles", steps![
            post("rbac.authorization.k8s.io/v1:roles", json!({ "metadata": { "name": "r" }, "rules": [
                { "apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"], },
                { "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["s"], "verbs": ["get"], },
            ] })),
            post("rbac.authorization.k8s.io/v1:rolebindings", json!({
                "metadata": { "name": "r" }, "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r" },
                "subjects": [{ "kind": "User", "name": "${ns}-jane", "apiGroup": "rbac.authorization.k8s.io" }],
            })),
            get("configmaps/none").by("${ns}-jane").until(10, |object| object["code"] == 404),
            get("secrets/s").by("${ns}-jane"),
            get("secrets/t").by("${ns}-jane"),
            get("secrets").by("${ns}-jane"),
            post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", json!({ "spec": { "resourceAttributes": { "namespace": "${ns}", "verb": "get", "resource": "configmaps" } } })).by("${ns}-jane").called("may she get"),
            post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", json!({ "spec": { "resourceAttributes": { "namespace": "${ns}", "verb": "delete", "resource": "configmaps" } } })).by("${ns}-jane").called("may she delete"),
            post("/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", json!({ "spec": { "namespace": "${ns}" } })).by("${ns}-jane").called("her rules"),
            post("/apis/authorization.k8s.io/v1/subjectaccessreviews", json!({ "spec": { "user": "${ns}-jane", "nonResourceAttributes": { "path": "/x", "verb": "get" } } })).called("a path"),
            post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", json!({ "spec": {} })).called("neither"),
            post("authorization.k8s.io/v1:localsubjectaccessreviews", json!({ "spec": { "user": "${ns}-jane", "resourceAttributes": { "namespace": "${ns}", "verb": "list", "resource": "configmaps" } } })).called("local"),
            post("rbac.authorization.k8s.io/v1:roles", json!({ "metadata": { "name": "x" }, "rules": [{ "apiGroups": [""], "resources": ["pods"], "verbs": ["get"] }] })).by("${ns}-jane").called("she makes a role"),
            put("rbac.authorization.k8s.io/v1:rolebindings/r", json!({
                "metadata": { "name": "r" }, "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "other" },
            })).called("another role"),
        ])
}
