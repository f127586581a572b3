//! The three kinds of patches that are not applying.

use crate::reference::script::{
    KnownDifferenceRow, RequestScript, get, json_patch, merge, other, post, script, steps,
    strategic, with_known_differences,
};
use serde_json::json;

use super::objects::{config_map, pod_nowhere, replica_set, seen};

const SET: &str = "apps/v1:replicasets/web";

/// Known differences: the script, the reason, the step, the path.
const DIFFERS: &[KnownDifferenceRow] = &[
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
    (
        "patches::strategic_of_pods",
        "go-words",
        "env",
        "body/message",
    ),
    (
        "patches::strategic_of_pods",
        "go-words",
        "env",
        "body/details/causes/0/message",
    ),
    (
        "patches::strategic_of_pods",
        "go-words",
        "a list for a map",
        "body/message",
    ),
    (
        "patches::strategic_of_pods",
        "go-words",
        "a list for a map",
        "body/details/causes/0/message",
    ),
    (
        "patches::strategic_of_pods",
        "go-words",
        "a map for a list",
        "body/message",
    ),
    (
        "patches::strategic_of_pods",
        "go-words",
        "a map for a list",
        "body/details/causes/0/message",
    ),
];

pub(crate) fn all() -> Vec<RequestScript> {
    with_known_differences(DIFFERS, scripts())
}

fn scripts() -> Vec<RequestScript> {
    vec![
        script("patches::json", steps![
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
        script("patches::merge", steps![
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
        script("patches::strategic", steps![
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
        of_pods(),
        json_pointers(),
    ]
}

fn of_pods() -> RequestScript {
    let p = "pods/p";
    script("patches::strategic_of_pods", steps![
            post("pods", {
                let mut pod = pod_nowhere("p");
                pod["spec"]["volumes"] = json!([{ "name": "v", "emptyDir": {} }]);
                pod["spec"]["containers"][0]["env"] = json!([{ "name": "A", "value": "1" }, { "name": "B", "value": "2" }]);
                pod["spec"]["tolerations"] = json!([{ "key": "x", "operator": "Exists" }]);
                pod["metadata"]["finalizers"] = json!(["a.example/b", "a.example/c"]);
                pod["metadata"]["labels"] = json!({ "a": "1" });
                pod
            }).only("/metadata/labels"),
            get(p).until(20, |object| !object["status"]["conditions"].is_null()).only("/spec"),
            strategic(p, json!({ "spec": { "containers": [{ "name": "main", "image": "other:2" }] } })).called("image").only("/spec"),
            strategic(p, json!({ "spec": { "containers": [{ "name": "main", "env": [{ "name": "C", "value": "3" }] }] } })).called("env").only("/spec"),
            strategic(p, json!({ "spec": { "tolerations": [{ "key": "y", "operator": "Exists" }] } })).called("tolerations").only("/spec"),
            strategic(p, json!({ "spec": { "tolerations": [{ "key": "x", "operator": "Exists" }, { "key": "y", "operator": "Exists" }] } })).called("more tolerations").only("/spec/tolerations"),
            strategic(p, json!({ "metadata": { "finalizers": ["a.example/d"] } })).called("one more finalizer").only("/metadata/finalizers"),
            strategic(p, json!({ "metadata": { "$setElementOrder/finalizers": ["a.example/c", "a.example/b"], "$deleteFromPrimitiveList/finalizers": ["a.example/d"] } })).called("order").only("/metadata/finalizers"),
            strategic(p, json!({ "metadata": { "labels": { "$patch": "delete" } } })).called("labels deleted").only("/metadata/labels"),
            strategic(p, json!({ "metadata": { "labels": { "$patch": "jump" } } })).called("unknown directive"),
            strategic(p, json!({ "metadata": { "$retainKeys": ["name"], "annotations": { "a": "b" } } })).called("bad retain keys"),
            strategic(p, json!({ "metadata": { "$setElementOrder/finalizers": "x" } })).called("bad order"),
            strategic(p, json!({ "metadata": { "$deleteFromPrimitiveList/finalizers": "x" } })).called("bad list"),
            strategic(p, json!({ "metadata": { "labels": ["a"] } })).called("a list for a map"),
            strategic(p, json!({ "spec": { "containers": { "name": "x" } } })).called("a map for a list"),
            strategic(p, json!({ "metadata": null })).called("no metadata"),
            strategic(p, json!({ "metadata": { "resourceVersion": "1" } })).called("stale"),
            strategic("pods/none", json!({})).called("none"),
            merge(p, json!({ "metadata": { "finalizers": null } })).only("/metadata/finalizers").called("free"),
        ])
}

fn json_pointers() -> RequestScript {
    script("patches::json_pointers", steps![
            post("configmaps", json!({ "metadata": { "name": "a", "labels": { "a/b": "1", "c~d": "2" }, "finalizers": ["a.example/1", "a.example/2"] }, "data": { "x": "1" } })),
            json_patch("configmaps/a", json!([{ "op": "replace", "path": "/metadata/labels/a~1b", "value": "2" }])).called("escaped"),
            json_patch("configmaps/a", json!([{ "op": "add", "path": "/metadata/finalizers/-", "value": "a.example/3" }])).called("at the end"),
            json_patch("configmaps/a", json!([{ "op": "add", "path": "/metadata/finalizers/0", "value": "a.example/0" }])).called("at the beginning"),
            json_patch("configmaps/a", json!([{ "op": "remove", "path": "/metadata/finalizers/9" }])).called("out of range"),
            json_patch("configmaps/a", json!([{ "op": "add", "path": "/metadata/finalizers/9", "value": "a.example/9" }])).called("add out of range"),
            json_patch("configmaps/a", json!([{ "op": "add", "path": "/metadata/finalizers/x", "value": "a.example/9" }])).called("no number"),
            json_patch("configmaps/a", json!([{ "op": "remove", "path": "/metadata/finalizers/-1" }])).called("negative"),
            json_patch("configmaps/a", json!([{ "op": "test", "path": "/metadata/finalizers", "value": ["a.example/0", "a.example/1", "a.example/2", "a.example/3"] }])).called("test of a list"),
            json_patch("configmaps/a", json!([{ "op": "test", "path": "/metadata/nothing", "value": null }])).called("test of null"),
            json_patch("configmaps/a", json!([{ "op": "test", "path": "/data/x" }])).called("test without value"),
            json_patch("configmaps/a", json!([{ "op": "add", "path": "/data/y" }])).called("add without value"),
            json_patch("configmaps/a", json!([{ "op": "copy", "path": "/data/z" }])).called("copy from nowhere"),
            json_patch("configmaps/a", json!([{ "op": "move", "from": "/data/none", "path": "/data/z" }])).called("move from none"),
            json_patch("configmaps/a", json!([{ "op": "replace", "path": "", "value": { "metadata": { "name": "a" } } }])).called("the whole"),
            json_patch("configmaps/a", json!([{ "op": "remove", "path": "" }])).called("remove all"),
            json_patch("configmaps/a", json!([{ "op": "add", "path": "data", "value": {} }])).called("no pointer"),
            json_patch("configmaps/a", json!([{ "path": "/data", "value": {} }])).called("no op"),
            json_patch("configmaps/a", json!([{ "op": "replace", "path": "/data", "value": null }])).called("null"),
            json_patch("configmaps/a", json!([])).called("empty"),
            json_patch("configmaps/a", json!([{ "op": "remove", "path": "/metadata/finalizers" }])).called("off"),
            json_patch("configmaps/a?fieldValidation=Strict", json!([{ "op": "add", "path": "/foo", "value": 1, "bar": 2 }])).called("strict"),
        ])
}
