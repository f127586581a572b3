//! The three kinds of patches that are not applying.

use fedrs_tests::{
    steps,
    truth::talk::{
        Conversation, Meant, conversation, differing, json_patch, merge, other, post, strategic,
    },
};
use serde_json::json;

use crate::objects::{config_map, replica_set, seen};

const SET: &str = "apps/v1:replicasets/web";

/// What differs on purpose: the conversation, the reason, the step, the place.
const DIFFERS: &[Meant] = &[
    ("patches::json", "order", "wrong type", "body"),
    ("patches::merge", "order", "a number", "body"),
    ("patches::merge", "patched-kind", "another kind", "body"),
    ("patches::merge", "patched-kind", "another kind", "code"),
    (
        "patches::merge",
        "go-words",
        "strategic array",
        "body/message",
    ),
    (
        "patches::strategic",
        "strategic-replace",
        "labels replaced",
        "body/~1metadata~1labels",
    ),
];

pub(crate) fn all() -> Vec<Conversation> {
    differing(DIFFERS, conversations())
}

fn conversations() -> Vec<Conversation> {
    vec![
        conversation("patches::json", steps![
            post("apps/v1:replicasets", replica_set("web", 0)).keep("uid", "/metadata/uid"),
            seen(SET),
            json_patch(SET, json!([{ "op": "replace", "path": "/spec/replicas", "value": 0 }])).called("no change"),
            json_patch(SET, json!([
                { "op": "test", "path": "/metadata/uid", "value": "${uid}" },
                { "op": "test", "path": "/metadata/generation", "value": 1 },
                { "op": "add", "path": "/metadata/labels", "value": { "a": "b" } },
            ])),
            json_patch(SET, json!([{ "op": "test", "path": "/metadata/uid", "value": "other" }])).called("test fails"),
            json_patch(SET, json!([{ "op": "test", "path": "/metadata/none", "value": "other" }])).called("test of nothing"),
            json_patch(SET, json!([{ "op": "test", "path": "/spec/replicas", "value": 7 }])).called("test of a number"),
            json_patch(SET, json!([{ "op": "remove", "path": "/metadata/none" }])).called("remove nothing"),
            json_patch(SET, json!([{ "op": "replace", "path": "/metadata/none", "value": 1 }])).called("replace nothing"),
            json_patch(SET, json!([{ "op": "add", "path": "/a/b/c", "value": 1 }])).called("add nowhere"),
            json_patch(SET, json!([{ "op": "jump", "path": "/a" }])).called("no such operation"),
            json_patch(SET, json!({ "a": 1 })).called("an object"),
            json_patch(SET, json!([{ "op": "replace", "path": "/metadata/resourceVersion", "value": "1" }])).called("stale"),
            json_patch(SET, json!([{ "op": "replace", "path": "/metadata/uid", "value": "1" }])).called("another uid"),
            json_patch(SET, json!([{ "op": "replace", "path": "/metadata/name", "value": "b" }])).called("another name"),
            json_patch(SET, json!([{ "op": "replace", "path": "/spec/replicas", "value": -1 }])).called("negative"),
            json_patch(SET, json!([{ "op": "replace", "path": "/spec/replicas", "value": "x" }])).called("wrong type"),
            json_patch(SET, json!([
                { "op": "copy", "from": "/metadata/labels/a", "path": "/metadata/labels/c" },
                { "op": "move", "from": "/metadata/labels/a", "path": "/metadata/labels/d" },
            ])).called("copy and move"),
            json_patch("apps/v1:replicasets/none", json!([])).called("none"),
        ]),
        conversation("patches::merge", steps![
            post("configmaps", config_map("a")).keep("uid", "/metadata/uid"),
            merge("configmaps/a", json!({ "data": { "a": null, "b": "2" }, "metadata": { "labels": { "x": "y" } } })),
            merge("configmaps/a", json!({ "data": { "b": "2" } })).called("no change"),
            merge("configmaps/a", json!({ "metadata": { "resourceVersion": "1" } })).called("stale"),
            merge("configmaps/a", json!({ "metadata": { "uid": "${uid}" }, "data": { "c": "3" } })).called("by uid"),
            merge("configmaps/a", json!({ "metadata": { "uid": "other" } })).called("by another uid"),
            merge("configmaps/a", json!({ "data": { "a": 1 } })).called("a number"),
            merge("configmaps/a", json!({ "data": null })).called("no data"),
            merge("configmaps/a", json!([1])).called("an array"),
            merge("configmaps/a", json!({ "kind": "Secret" })).called("another kind"),
            merge("configmaps/none", json!({})).called("none"),
            merge("configmaps/none", json!({ "metadata": { "uid": "${uid}" } })).called("none by uid"),
            other("PATCH", "configmaps/a").text("application/merge-patch+json", "{").called("half"),
            other("PATCH", "configmaps/a").text("application/json", "{}").called("no kind of patch"),
            other("PATCH", "configmaps/a").text("application/strategic-merge-patch+json", "[]").called("strategic array"),
        ]),
        conversation("patches::strategic", steps![
            post("apps/v1:replicasets", replica_set("web", 0)).spec(),
            strategic(SET, json!({ "spec": { "template": { "spec": { "containers": [{ "name": "side", "image": "b:2" }] } } } })).called("another container").spec(),
            strategic(SET, json!({ "spec": { "template": { "spec": { "containers": [{ "name": "main", "image": "c:3", "ports": [{ "containerPort": 80 }] }] } } } })).called("merged by key").spec(),
            strategic(SET, json!({ "spec": { "template": { "spec": { "containers": [{ "name": "side", "$patch": "delete" }] } } } })).called("deleted by key").spec(),
            strategic(SET, json!({ "spec": { "template": { "spec": { "$setElementOrder/containers": [{ "name": "b" }, { "name": "main" }], "containers": [{ "name": "b", "image": "b" }] } } } })).called("in order").spec(),
            strategic(SET, json!({ "spec": { "template": { "spec": { "containers": [{ "$patch": "replace" }, { "name": "only", "image": "o" }] } } } })).called("replaced").spec(),
            strategic(SET, json!({ "spec": { "template": { "spec": { "containers": [{ "image": "x" }] } } } })).called("no key").spec(),
            strategic(SET, json!({ "metadata": { "finalizers": ["a.example/b"] } })).called("finalizers").spec(),
            strategic(SET, json!({ "metadata": { "$deleteFromPrimitiveList/finalizers": ["a.example/b"] } })).called("finalizers off").spec(),
            strategic(SET, json!({ "metadata": { "labels": { "$patch": "replace", "q": "r" } } })).called("labels replaced").spec(),
            strategic(SET, json!({ "metadata": { "labels": null } })).called("labels off").spec(),
        ]),
    ]
}
