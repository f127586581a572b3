//! Our own custom resources: defaults, pruning, enums, validation rules.
//!
//! Each script installs its CRD in a group of its own, named after its namespace: CRDs belong to the whole cluster, and
//! other scripts run at the same time.

use std::path::Path;

use crate::reference::script::{
    KnownDifferenceRow, Predicate, RequestScript, Step, TABLE, apply, delete, get, json_patch,
    merge, post, put, script, steps, strategic, with_known_differences,
};
use serde_json::{Value, json};

use super::objects::pod_spec;

/// The group of our kinds in a script.
const GROUP: &str = "${ns}.fedrs.dev";
const VERSION: &str = "${ns}.fedrs.dev/v1alpha1";
const SETS: &str = "${ns}.fedrs.dev/v1alpha1:federatedreplicasets";
const MEMBERS: &str = "/apis/${ns}.fedrs.dev/v1alpha1/memberclusters";

/// The CRD of one of our kinds, in the group of the script.
fn definition(plural: &str) -> Value {
    let file = format!("../../config/crd/fedrs.dev_{plural}.yaml");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let text = std::fs::read_to_string(&path).expect("the definitions are generated");
    let mut definition: Value = serde_saphyr::from_str(&text).expect("a definition is YAML");
    definition["metadata"]["name"] = format!("{plural}.{GROUP}").into();
    definition["spec"]["group"] = GROUP.into();
    definition
}

/// Creates a CRD, and waits until its objects are served.
fn install(plural: &str, list: &str, is_served: Predicate) -> Vec<Step> {
    let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{plural}.{GROUP}");
    steps![
        apply(&format!("{path}?fieldManager=scripts"), definition(plural),)
            .called("install")
            .only("/spec"),
        get(&path)
            .until(20, |object| {
                let all = object["status"]["conditions"].as_array();
                all.is_some_and(|all| {
                    all.iter().any(|condition| {
                        condition["type"] == "Established" && condition["status"] == "True"
                    })
                })
            })
            .called("established")
            .only("/status"),
        get(list)
            .until(20, is_served)
            .called("served")
            .only("/kind"),
    ]
}

fn about_sets(name: &'static str, rest: Vec<Step>) -> RequestScript {
    let mut steps = install("federatedreplicasets", SETS, |list| {
        list["kind"] == "FederatedReplicaSetList"
    });
    steps.extend(rest);
    script(name, steps)
}

fn about_members(name: &'static str, rest: Vec<Step>) -> RequestScript {
    let mut steps = install("memberclusters", MEMBERS, |list| {
        list["kind"] == "MemberClusterList"
    });
    steps.extend(rest);
    script(name, steps)
}

fn set(name: &str) -> Value {
    json!({
        "apiVersion": VERSION, "kind": "FederatedReplicaSet",
        "metadata": { "name": name },
        "spec": {
            "replicas": 3,
            "selector": { "matchLabels": { "app": name } },
            "template": { "metadata": { "labels": { "app": name } }, "spec": pod_spec() },
        },
    })
}

/// A set with preferences for clusters.
fn placed(name: &str, clusters: &Value) -> Value {
    changed(name, "/spec/placement", json!({ "clusters": clusters }))
}

/// Whether a response rejects an object with a message that contains `named`.
fn is_invalid(body: &Value, named: &str) -> bool {
    let message = body["message"].as_str().unwrap_or_default();
    body["code"] == 422 && message.contains(named)
}

/// Whether a response rejects the unknown field `wieght` of the cluster `eu`.
fn names_the_cluster(body: &Value) -> bool {
    is_invalid(body, "spec.placement.clusters[eu]") && is_invalid(body, "unknown field wieght")
}

fn changed(name: &str, pointer: &str, value: Value) -> Value {
    let mut set = set(name);
    let (parent, field) = pointer.rsplit_once('/').expect("a pointer");
    let parent = if parent.is_empty() {
        &mut set
    } else {
        set.pointer_mut(parent).expect("it is there")
    };
    parent[field] = value;
    set
}

/// Known differences: the script, the reason, the step, the path.
const DIFFERS: &[KnownDifferenceRow] = &[
    (
        "custom::federated_replica_sets",
        "unset-time",
        "status",
        "body/metadata/managedFields/script Update scale/time",
    ),
    (
        "custom::federated_replica_sets",
        "unset-time",
        "no status by the object",
        "body/metadata/managedFields/script Update scale/time",
    ),
    (
        "custom::federated_replica_sets",
        "unset-time",
        "GET ${ns}.fedrs.dev/v1alpha1:federatedreplicasets/web/status",
        "body/metadata/managedFields/script Update scale/time",
    ),
    (
        "custom::federated_replica_sets",
        "unset-time",
        "GET ${ns}.fedrs.dev/v1alpha1:federatedreplicasets?fieldSelector=metadata.name%3Dweb",
        "body/items/web/metadata/managedFields/script Update scale/time",
    ),
    ("custom::validation", "go-words", "no spec", "body/message"),
    ("custom::validation", "warned", "a bad name", "warnings"),
    (
        "custom::validation",
        "warned",
        "another version",
        "warnings",
    ),
    ("custom::validation", "custom-body", "another kind", "body"),
    ("custom::validation", "custom-body", "another kind", "code"),
    (
        "custom::member_clusters",
        "warned",
        "wrong types",
        "warnings",
    ),
];

pub(crate) fn all() -> Vec<RequestScript> {
    with_known_differences(DIFFERS, scripts())
}

fn scripts() -> Vec<RequestScript> {
    let one = &format!("{SETS}/web");
    vec![
        about_sets("custom::federated_replica_sets", steps![
            post(SETS, set("web")).keep("rv", "/metadata/resourceVersion").keep("uid", "/metadata/uid"),
            post(SETS, set("web")).called("twice"),
            get(one),
            get(SETS),
            get(SETS).accept(TABLE).called("table"),
            get(one).accept(TABLE).called("one in a table"),
            put(one, set("web")).called("put without a version"),
            put(one, { let mut object = set("web"); object["metadata"]["resourceVersion"] = "${rv}".into(); object["spec"]["replicas"] = 4.into(); object }).called("put"),
            put(one, { let mut object = set("web"); object["metadata"]["resourceVersion"] = "${rv}".into(); object["spec"]["replicas"] = 5.into(); object }).called("stale"),
            put(&format!("{SETS}/none"), set("none")).called("PUT creates nothing"),
            put(&format!("{SETS}/none"), { let mut object = set("none"); object["metadata"]["resourceVersion"] = "${rv}".into(); object }).called("PUT of none"),
            merge(one, json!({ "spec": { "replicas": 2 } })),
            merge(one, json!({ "metadata": { "resourceVersion": "1" } })).called("stale merge"),
            json_patch(one, json!([{ "op": "replace", "path": "/spec/replicas", "value": 1 }])),
            strategic(one, json!({})).called("strategic"),
            apply(&format!("{one}?fieldManager=x"), set("web")).called("apply conflict"),
            apply(&format!("{one}?fieldManager=x&force=true"), set("web")).called("apply"),
            get(&format!("{one}/scale")),
            merge(&format!("{one}/scale"), json!({ "spec": { "replicas": 9 } })).called("scale"),
            merge(&format!("{one}/scale"), json!({ "spec": { "replicas": -9 } })).called("scale below"),
            put(&format!("{one}/scale"), json!({ "apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": { "name": "web" }, "spec": { "replicas": 5 } })).called("put scale"),
            merge(&format!("{one}/status"), json!({ "status": { "observedGeneration": 1 }, "spec": { "replicas": 77 } })).called("status"),
            merge(one, json!({ "status": { "observedGeneration": 99 } })).called("no status by the object"),
            get(&format!("{one}/status")),
            get(&format!("{SETS}?fieldSelector=metadata.name%3Dweb")),
            get(&format!("{SETS}?fieldSelector=spec.replicas%3D1")),
            delete(one),
            delete(one).called("the object is deleted"),
        ]),
        about_sets("custom::validation", steps![
            post(SETS, changed("a", "/spec/replicas", json!(-1))).called("negative"),
            post(SETS, changed("a", "/spec/replicas", json!("x"))).called("wrong type"),
            post(SETS, changed("a", "/spec/replicas", json!(1.5))).called("a fraction"),
            post(SETS, changed("a", "/spec/replicas", json!(99_999_999_999_u64))).called("too much"),
            post(SETS, changed("a", "/spec/replicas", Value::Null)).called("null"),
            post(SETS, changed("b", "/spec", json!({}))).called("nothing"),
            post(SETS, json!({ "metadata": { "name": "c" } })).called("no spec"),
            post(SETS, changed("d", "/spec/selector", json!({ "matchLabels": { "app": "other" } }))).called("another selector"),
            post(SETS, changed("d", "/spec/selector", json!({}))).called("no selector"),
            post(SETS, changed("e", "/spec/foo", json!("bar"))).called("pruned"),
            post(&format!("{SETS}?fieldValidation=Strict"), changed("f", "/spec/foo", json!("bar"))).called("strict"),
            post(&format!("{SETS}?fieldValidation=Warn"), changed("g", "/spec/foo", json!("bar"))).called("warn"),
            post(SETS, changed("h", "/spec/template/spec/containers/0/foo", json!("bar"))).called("unknown in the template"),
            post(&format!("{SETS}?fieldValidation=Strict"), changed("h2", "/spec/template/spec/containers/0/foo", json!("bar"))).called("strict in the template"),
            post(SETS, changed("UPPER", "/spec/foo", json!("bar"))).called("a bad name"),
            post(SETS, changed("i", "/spec/preferences", json!({ "x": 1 }))).called("preferences"),
            post(SETS, changed("j", "/spec/template", json!({ "metadata": { "labels": { "app": "j" } } }))).called("no template spec"),
            post(SETS, set("k")),
            merge(&format!("{SETS}/k"), json!({ "spec": { "selector": { "matchLabels": { "app": "l" } } } })).called("selector changed"),
            merge(&format!("{SETS}/k"), json!({ "spec": { "federation": "blue" } })).until(1, |status| is_invalid(status, "the federation is immutable")).called("a federation added"),
            post(SETS, changed("n", "/spec/federation", json!("blue"))),
            merge(&format!("{SETS}/n"), json!({ "spec": { "federation": null } })).until(1, |status| is_invalid(status, "the federation is immutable")).called("a federation removed"),
            apply(&format!("{SETS}/l?fieldManager=x"), changed("l", "/spec/foo", json!("bar"))).called("apply unknown"),
            post(SETS, changed("m", "/apiVersion", json!(format!("{GROUP}/v1")))).called("another version"),
            post(SETS, changed("m", "/kind", json!("Foo"))).called("another kind"),
        ]),
        about_sets("custom::f2_unknown_fields_of_preferences_are_rejected", steps![
            apply(&format!("{SETS}/a?fieldManager=x"), placed("a", &json!({ "eu": { "wieght": 1 } }))).until(1, names_the_cluster).called("apply"),
            apply(&format!("{SETS}/a?fieldManager=x&force=true&fieldValidation=Ignore"), placed("a", &json!({ "eu": { "wieght": 1 } }))).until(1, names_the_cluster).called("apply without validation"),
            post(SETS, placed("a", &json!({ "eu": { "wieght": 1 } }))).until(1, names_the_cluster).called("create"),
            post(&format!("{SETS}?fieldValidation=Ignore"), placed("a", &json!({ "eu": { "wieght": 1 } }))).until(1, names_the_cluster).called("create without validation"),
            post(&format!("{SETS}?fieldValidation=Strict"), placed("a", &json!({ "eu": { "wieght": 1 } }))).until(1, names_the_cluster).called("create with strict validation"),
            post(SETS, placed("a", &json!({ "*": { "weight": 1 }, "eu": { "weight": 1, "maxReplica": 3, "minReplicas": 2 } }))).called("beside known fields"),
            post(SETS, placed("a", &json!({ "*": { "weight": 1 }, "eu": { "MinReplicas": 2 } }))).called("in upper case"),
            post(SETS, placed("a", &json!({ "eu": { "minReplicas": 3, "maxReplicas": 2 } }))).until(1, |status| is_invalid(status, "maxReplicas must not be below minReplicas")).called("a maximum below the minimum"),
            post(SETS, placed("a", &json!({ "eu": { "weight": -1 } }))).called("a negative weight"),
            post(SETS, placed("a", &json!({ "eu": { "weight": "1" } }))).called("a weight as text"),
            post(SETS, placed("a", &json!({ "eu": { "weight": null } }))).called("a null"),
            post(SETS, placed("a", &json!({ "eu": 5 }))).called("a number as preferences"),
            post(SETS, placed("a", &json!({ "": { "weight": 1 } }))).called("a cluster without a name"),
            post(SETS, placed("b", &json!({ "*": { "weight": 1 }, "eu": { "minReplicas": 2, "maxReplicas": 2, "weight": 3 }, "us": {} }))).called("all fields"),
            get(&format!("{SETS}/b")).until(1, |object| object["status"]["observedGeneration"] == -1),
            merge(&format!("{SETS}/b"), json!({ "spec": { "placement": { "clusters": { "us": { "wieght": 1 } } } } })).until(1, |status| is_invalid(status, "spec.placement.clusters[us]")).called("patch"),
            json_patch(&format!("{SETS}/b"), json!([{ "op": "add", "path": "/spec/placement/clusters/eu/wieght", "value": 1 }])).until(1, names_the_cluster).called("JSON patch"),
            apply(&format!("{SETS}/c?fieldManager=x"), placed("c", &json!({}))).called("no clusters"),
            apply(&format!("{SETS}/d?fieldManager=x"), changed("d", "/spec/placement", json!({ "rebalance": true }))).called("no entry for clusters"),
            apply(&format!("{SETS}/d?fieldManager=x"), changed("d", "/spec/placement", json!({ "rebalance": true, "cluster": {} }))).called("unknown beside the clusters"),
        ]),
        about_members("custom::member_clusters", steps![
            post(MEMBERS, json!({ "apiVersion": VERSION, "kind": "MemberCluster", "metadata": { "name": "${ns}-m" } })).called("bare"),
            post(MEMBERS, json!({ "apiVersion": VERSION, "kind": "MemberCluster", "metadata": { "name": "${ns}-n" }, "spec": {} })).called("empty spec"),
            post(MEMBERS, json!({ "apiVersion": VERSION, "kind": "MemberCluster", "metadata": { "name": "${ns}-o" }, "spec": { "unschedulable": "x", "kubeconfigSecretRef": 1 } })).called("wrong types"),
            get(&format!("{MEMBERS}/${{ns}}-n")).accept(TABLE).called("table"),
            merge(&format!("{MEMBERS}/${{ns}}-n/status"), json!({ "status": { "conditions": [{ "type": "Ready", "status": "Maybe", "reason": "A", "message": "b", "lastTransitionTime": "2026-01-01T00:00:00Z" }] } })).called("an enum"),
            merge(&format!("{MEMBERS}/${{ns}}-n/status"), json!({ "status": { "conditions": [{ "type": "Ready", "status": "True", "reason": "A", "message": "b", "lastTransitionTime": "2026-01-01T00:00:00Z" }] } })).called("ready"),
            get(&format!("{MEMBERS}/${{ns}}-n")).accept(TABLE).called("table when ready"),
            delete(&format!("{MEMBERS}/${{ns}}-n")),
            delete(&format!("{MEMBERS}/${{ns}}-m")).called("delete bare"),
        ]),
    ]
}
