//! Dry run and field validation.

use crate::reference::script::{
    KnownDifferenceRow, RequestScript, apply, delete, get, merge, other, post, put, script, steps,
    strategic, with_known_differences,
};
use serde_json::json;

use super::objects::{config_map, replica_set};

/// Known differences: the script, the reason, the step, the path.
const DIFFERS: &[KnownDifferenceRow] = &[
    ("options::validation_strict", "order", "merge", "body"),
    (
        "options::validation_strict",
        "duplicates",
        "yaml twice",
        "body/message",
    ),
    (
        "options::validation_default",
        "duplicates",
        "twice a field",
        "body/data",
    ),
    (
        "options::validation_default",
        "duplicates",
        "twice a field",
        "body/metadata/managedFields",
    ),
    (
        "options::validation_default",
        "duplicates",
        "yaml twice",
        "body",
    ),
    (
        "options::validation_default",
        "duplicates",
        "yaml twice",
        "code",
    ),
    (
        "options::validation_default",
        "duplicates",
        "yaml twice",
        "warnings",
    ),
    (
        "options::validation_ignore",
        "duplicates",
        "twice a field",
        "body/data",
    ),
    (
        "options::validation_ignore",
        "duplicates",
        "twice a field",
        "body/metadata/managedFields",
    ),
    (
        "options::validation_ignore",
        "duplicates",
        "yaml twice",
        "body",
    ),
    (
        "options::validation_ignore",
        "duplicates",
        "yaml twice",
        "code",
    ),
    (
        "options::validation_warn",
        "duplicates",
        "twice a field",
        "body/data",
    ),
    (
        "options::validation_warn",
        "duplicates",
        "twice a field",
        "body/metadata/managedFields",
    ),
    (
        "options::validation_warn",
        "duplicates",
        "yaml twice",
        "body",
    ),
    (
        "options::validation_warn",
        "duplicates",
        "yaml twice",
        "code",
    ),
    (
        "options::validation_warn",
        "duplicates",
        "yaml twice",
        "warnings",
    ),
];

pub(crate) fn all() -> Vec<RequestScript> {
    with_known_differences(DIFFERS, scripts())
}

fn scripts() -> Vec<RequestScript> {
    vec![
        script(
            "options::dry_run",
            steps![
                post("configmaps?dryRun=All", config_map("a")),
                get("configmaps/a"),
                post("configmaps", config_map("a")),
                put(
                    "configmaps/a?dryRun=All",
                    json!({ "metadata": { "name": "a" }, "data": { "b": "2" } })
                ),
                merge("configmaps/a?dryRun=All", json!({ "data": { "b": "2" } })),
                apply("configmaps/b?dryRun=All&fieldManager=x", config_map("b")),
                delete("configmaps/a?dryRun=All"),
                get("configmaps/a").called("still there"),
                post("configmaps?dryRun=Some", config_map("a")).called("a bad value"),
                post("configmaps?fieldManager=${ns}%01", config_map("b")).called("a bad manager"),
                post("configmaps?fieldValidation=Maybe", config_map("b"))
                    .called("a bad validation"),
                post("apps/v1:replicasets?dryRun=All", replica_set("web", 3)),
            ],
        ),
        validation("options::validation_strict", "Strict"),
        validation("options::validation_warn", "Warn"),
        validation("options::validation_ignore", "Ignore"),
        validation("options::validation_default", ""),
    ]
}

fn validation(name: &'static str, level: &str) -> RequestScript {
    let at = |path: &str| format!("{path}?fieldValidation={level}&fieldManager=m");
    let mut unknown = replica_set("web", 0);
    unknown["spec"]["replica"] = 3.into();
    unknown["spec"]["template"]["spec"]["containers"][0]["imagine"] = "x".into();
    script(name, steps![
        post(&at("apps/v1:replicasets"), unknown.clone()).called("post"),
        post(&at("apps/v1:replicasets"), replica_set("other", 0)).called("post valid"),
        put(&at("apps/v1:replicasets/other"), {
            let mut set = replica_set("other", 0);
            set["foo"] = "bar".into();
            set["metadata"]["foo"] = "bar".into();
            set
        }).called("put").spec(),
        merge(&at("apps/v1:replicasets/other"), json!({ "spec": { "foo": 1 } })).called("merge").spec(),
        strategic(&at("apps/v1:replicasets/other"), json!({ "spec": { "foo": 1, "template": { "spec": { "containers": [{ "name": "main", "bar": 1 }] } } } })).called("strategic").spec(),
        apply(&at("apps/v1:replicasets/other"), json!({ "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": { "name": "other" }, "spec": { "foo": 1 } })).called("apply").spec(),
        other("POST", &at("configmaps")).text("application/json", r#"{"metadata":{"name":"d"},"data":{"a":"1"},"data":{"b":"2"}}"#).called("twice a field"),
        other("POST", &at("configmaps")).text("application/yaml", "metadata:\n  name: y\ndata:\n  a: \"1\"\nfoo: bar\n").called("yaml"),
        other("POST", &at("configmaps")).text("application/yaml", "metadata:\n  name: yy\ndata:\n  a: \"1\"\n  a: \"2\"\n").called("yaml twice"),
        post(&at("configmaps"), json!({ "metadata": { "name": "e" }, "Data": { "a": "1" } })).called("another case"),
    ])
}
