//! Custom resources: defaults, pruning, enums, validation rules.
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

/// The group of the kinds in a script.
const GROUP: &str = "${ns}.example.com";
const VERSION: &str = "${ns}.example.com/v1alpha1";
const APPLICATIONS: &str = "${ns}.example.com/v1alpha1:applications";
const SITES: &str = "/apis/${ns}.example.com/v1alpha1/sites";

/// The CRD of a kind, in the group of the script.
fn definition(plural: &str) -> Value {
    let file = format!("tests/conformance/crds/{plural}.yaml");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let text = std::fs::read_to_string(&path).expect("the definition is a file");
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

fn about_applications(name: &'static str, rest: Vec<Step>) -> RequestScript {
    let mut steps = install("applications", APPLICATIONS, |list| {
        list["kind"] == "ApplicationList"
    });
    steps.extend(rest);
    script(name, steps)
}

fn about_sites(name: &'static str, rest: Vec<Step>) -> RequestScript {
    let mut steps = install("sites", SITES, |list| list["kind"] == "SiteList");
    steps.extend(rest);
    script(name, steps)
}

fn application(name: &str) -> Value {
    json!({
        "apiVersion": VERSION, "kind": "Application",
        "metadata": { "name": name },
        "spec": {
            "replicas": 3,
            "selector": { "matchLabels": { "app": name } },
            "template": { "metadata": { "labels": { "app": name } }, "spec": pod_spec() },
        },
    })
}

/// An application with preferences for regions.
fn placed(name: &str, regions: &Value) -> Value {
    changed(name, "/spec/placement", json!({ "regions": regions }))
}

/// Whether a response rejects an object with a message that contains `named`.
fn is_invalid(body: &Value, named: &str) -> bool {
    let message = body["message"].as_str().unwrap_or_default();
    body["code"] == 422 && message.contains(named)
}

/// Whether a response rejects the unknown field `wieght` of the region `eu`.
fn names_the_region(body: &Value) -> bool {
    is_invalid(body, "spec.placement.regions[eu]") && is_invalid(body, "unknown field wieght")
}

fn changed(name: &str, pointer: &str, value: Value) -> Value {
    let mut application = application(name);
    let (parent, field) = pointer.rsplit_once('/').expect("a pointer");
    let parent = if parent.is_empty() {
        &mut application
    } else {
        application.pointer_mut(parent).expect("it is there")
    };
    parent[field] = value;
    application
}

/// Known differences: the script, the reason, the step, the path.
const DIFFERS: &[KnownDifferenceRow] = &[
    (
        "custom::applications",
        "unset-time",
        "status",
        "body/metadata/managedFields/script Update scale/time",
    ),
    (
        "custom::applications",
        "unset-time",
        "no status by the object",
        "body/metadata/managedFields/script Update scale/time",
    ),
    (
        "custom::applications",
        "unset-time",
        "GET ${ns}.example.com/v1alpha1:applications/web/status",
        "body/metadata/managedFields/script Update scale/time",
    ),
    (
        "custom::applications",
        "unset-time",
        "GET ${ns}.example.com/v1alpha1:applications?fieldSelector=metadata.name%3Dweb",
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
];

pub(crate) fn all() -> Vec<RequestScript> {
    with_known_differences(DIFFERS, scripts())
}

fn scripts() -> Vec<RequestScript> {
    let one = &format!("{APPLICATIONS}/web");
    vec![
        about_applications("custom::applications", steps![
            post(APPLICATIONS, application("web")).keep("rv", "/metadata/resourceVersion").keep("uid", "/metadata/uid"),
            post(APPLICATIONS, application("web")).called("twice"),
            get(one),
            get(APPLICATIONS),
            get(APPLICATIONS).accept(TABLE).called("table"),
            get(one).accept(TABLE).called("one in a table"),
            put(one, application("web")).called("put without a version"),
            put(one, { let mut object = application("web"); object["metadata"]["resourceVersion"] = "${rv}".into(); object["spec"]["replicas"] = 4.into(); object }).called("put"),
            put(one, { let mut object = application("web"); object["metadata"]["resourceVersion"] = "${rv}".into(); object["spec"]["replicas"] = 5.into(); object }).called("stale"),
            put(&format!("{APPLICATIONS}/none"), application("none")).called("PUT creates nothing"),
            put(&format!("{APPLICATIONS}/none"), { let mut object = application("none"); object["metadata"]["resourceVersion"] = "${rv}".into(); object }).called("PUT of none"),
            merge(one, json!({ "spec": { "replicas": 2 } })),
            merge(one, json!({ "metadata": { "resourceVersion": "1" } })).called("stale merge"),
            json_patch(one, json!([{ "op": "replace", "path": "/spec/replicas", "value": 1 }])),
            strategic(one, json!({})).called("strategic"),
            apply(&format!("{one}?fieldManager=x"), application("web")).called("apply conflict"),
            apply(&format!("{one}?fieldManager=x&force=true"), application("web")).called("apply"),
            get(&format!("{one}/scale")),
            merge(&format!("{one}/scale"), json!({ "spec": { "replicas": 9 } })).called("scale"),
            merge(&format!("{one}/scale"), json!({ "spec": { "replicas": -9 } })).called("scale below"),
            put(&format!("{one}/scale"), json!({ "apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": { "name": "web" }, "spec": { "replicas": 5 } })).called("put scale"),
            merge(&format!("{one}/status"), json!({ "status": { "observedGeneration": 1 }, "spec": { "replicas": 77 } })).called("status"),
            merge(one, json!({ "status": { "observedGeneration": 99 } })).called("no status by the object"),
            get(&format!("{one}/status")),
            get(&format!("{APPLICATIONS}?fieldSelector=metadata.name%3Dweb")),
            get(&format!("{APPLICATIONS}?fieldSelector=spec.replicas%3D1")),
            delete(one),
            delete(one).called("the object is deleted"),
        ]),
        about_applications("custom::validation", steps![
            post(APPLICATIONS, changed("a", "/spec/replicas", json!(-1))).called("negative"),
            post(APPLICATIONS, changed("a", "/spec/replicas", json!("x"))).called("wrong type"),
            post(APPLICATIONS, changed("a", "/spec/replicas", json!(1.5))).called("a fraction"),
            post(APPLICATIONS, changed("a", "/spec/replicas", json!(99_999_999_999_u64))).called("too much"),
            post(APPLICATIONS, changed("a", "/spec/replicas", Value::Null)).called("null"),
            post(APPLICATIONS, changed("b", "/spec", json!({}))).called("nothing"),
            post(APPLICATIONS, json!({ "metadata": { "name": "c" } })).called("no spec"),
            post(APPLICATIONS, changed("d", "/spec/selector", json!({ "matchLabels": { "app": "other" } }))).called("another selector"),
            post(APPLICATIONS, changed("d", "/spec/selector", json!({}))).called("no selector"),
            post(APPLICATIONS, changed("e", "/spec/foo", json!("bar"))).called("pruned"),
            post(&format!("{APPLICATIONS}?fieldValidation=Strict"), changed("f", "/spec/foo", json!("bar"))).called("strict"),
            post(&format!("{APPLICATIONS}?fieldValidation=Warn"), changed("g", "/spec/foo", json!("bar"))).called("warn"),
            post(APPLICATIONS, changed("h", "/spec/template/spec/containers/0/foo", json!("bar"))).called("unknown in the template"),
            post(&format!("{APPLICATIONS}?fieldValidation=Strict"), changed("h2", "/spec/template/spec/containers/0/foo", json!("bar"))).called("strict in the template"),
            post(APPLICATIONS, changed("UPPER", "/spec/foo", json!("bar"))).called("a bad name"),
            post(APPLICATIONS, changed("i", "/spec/preferences", json!({ "x": 1 }))).called("preferences"),
            post(APPLICATIONS, changed("j", "/spec/template", json!({ "metadata": { "labels": { "app": "j" } } }))).called("no template spec"),
            post(APPLICATIONS, application("k")),
            merge(&format!("{APPLICATIONS}/k"), json!({ "spec": { "selector": { "matchLabels": { "app": "l" } } } })).called("selector changed"),
            merge(&format!("{APPLICATIONS}/k"), json!({ "spec": { "channel": "blue" } })).until(1, |status| is_invalid(status, "the channel is immutable")).called("a channel added"),
            post(APPLICATIONS, changed("n", "/spec/channel", json!("blue"))),
            merge(&format!("{APPLICATIONS}/n"), json!({ "spec": { "channel": null } })).until(1, |status| is_invalid(status, "the channel is immutable")).called("a channel removed"),
            apply(&format!("{APPLICATIONS}/l?fieldManager=x"), changed("l", "/spec/foo", json!("bar"))).called("apply unknown"),
            post(APPLICATIONS, changed("m", "/apiVersion", json!(format!("{GROUP}/v1")))).called("another version"),
            post(APPLICATIONS, changed("m", "/kind", json!("Foo"))).called("another kind"),
        ]),
        about_applications("custom::unknown_fields_of_map_entries", steps![
            apply(&format!("{APPLICATIONS}/a?fieldManager=x"), placed("a", &json!({ "eu": { "wieght": 1 } }))).until(1, names_the_region).called("apply"),
            apply(&format!("{APPLICATIONS}/a?fieldManager=x&force=true&fieldValidation=Ignore"), placed("a", &json!({ "eu": { "wieght": 1 } }))).until(1, names_the_region).called("apply without validation"),
            post(APPLICATIONS, placed("a", &json!({ "eu": { "wieght": 1 } }))).until(1, names_the_region).called("create"),
            post(&format!("{APPLICATIONS}?fieldValidation=Ignore"), placed("a", &json!({ "eu": { "wieght": 1 } }))).until(1, names_the_region).called("create without validation"),
            post(&format!("{APPLICATIONS}?fieldValidation=Strict"), placed("a", &json!({ "eu": { "wieght": 1 } }))).until(1, names_the_region).called("create with strict validation"),
            post(APPLICATIONS, placed("a", &json!({ "*": { "weight": 1 }, "eu": { "weight": 1, "maxi": 3, "min": 2 } }))).called("beside known fields"),
            post(APPLICATIONS, placed("a", &json!({ "*": { "weight": 1 }, "eu": { "Min": 2 } }))).called("in upper case"),
            post(APPLICATIONS, placed("a", &json!({ "eu": { "min": 3, "max": 2 } }))).until(1, |status| is_invalid(status, "max must not be below min")).called("a maximum below the minimum"),
            post(APPLICATIONS, placed("a", &json!({ "eu": { "weight": -1 } }))).called("a negative weight"),
            post(APPLICATIONS, placed("a", &json!({ "eu": { "weight": "1" } }))).called("a weight as text"),
            post(APPLICATIONS, placed("a", &json!({ "eu": { "weight": null } }))).called("a null"),
            post(APPLICATIONS, placed("a", &json!({ "eu": 5 }))).called("a number as preferences"),
            post(APPLICATIONS, placed("a", &json!({ "": { "weight": 1 } }))).called("a region without a name"),
            post(APPLICATIONS, placed("b", &json!({ "*": { "weight": 1 }, "eu": { "min": 2, "max": 2, "weight": 3 }, "us": {} }))).called("all fields"),
            get(&format!("{APPLICATIONS}/b")).until(1, |object| object["status"]["observedGeneration"] == -1),
            merge(&format!("{APPLICATIONS}/b"), json!({ "spec": { "placement": { "regions": { "us": { "wieght": 1 } } } } })).until(1, |status| is_invalid(status, "spec.placement.regions[us]")).called("patch"),
            json_patch(&format!("{APPLICATIONS}/b"), json!([{ "op": "add", "path": "/spec/placement/regions/eu/wieght", "value": 1 }])).until(1, names_the_region).called("JSON patch"),
            apply(&format!("{APPLICATIONS}/c?fieldManager=x"), placed("c", &json!({}))).called("no regions"),
            apply(&format!("{APPLICATIONS}/d?fieldManager=x"), changed("d", "/spec/placement", json!({ "rebalance": true }))).called("no entry for regions"),
            apply(&format!("{APPLICATIONS}/d?fieldManager=x"), changed("d", "/spec/placement", json!({ "rebalance": true, "region": {} }))).called("unknown beside the regions"),
        ]),
        about_sites("custom::sites", steps![
            post(SITES, json!({ "apiVersion": VERSION, "kind": "Site", "metadata": { "name": "${ns}-m" } })).called("bare"),
            post(SITES, json!({ "apiVersion": VERSION, "kind": "Site", "metadata": { "name": "${ns}-n" }, "spec": {} })).called("empty spec"),
            // One at a time: a real API server checks the fields of an object in random order.
            post(SITES, json!({ "apiVersion": VERSION, "kind": "Site", "metadata": { "name": "${ns}-o" }, "spec": { "unschedulable": "x" } })).called("text as a boolean"),
            post(SITES, json!({ "apiVersion": VERSION, "kind": "Site", "metadata": { "name": "${ns}-o" }, "spec": { "secretRef": 1 } })).called("a number as an object"),
            get(&format!("{SITES}/${{ns}}-n")).accept(TABLE).called("table"),
            merge(&format!("{SITES}/${{ns}}-n/status"), json!({ "status": { "conditions": [{ "type": "Ready", "status": "Maybe", "reason": "A", "message": "b", "lastTransitionTime": "2026-01-01T00:00:00Z" }] } })).called("an enum"),
            merge(&format!("{SITES}/${{ns}}-n/status"), json!({ "status": { "conditions": [{ "type": "Ready", "status": "True", "reason": "A", "message": "b", "lastTransitionTime": "2026-01-01T00:00:00Z" }] } })).called("ready"),
            get(&format!("{SITES}/${{ns}}-n")).accept(TABLE).called("table when ready"),
            delete(&format!("{SITES}/${{ns}}-n")),
            delete(&format!("{SITES}/${{ns}}-m")).called("delete bare"),
        ]),
    ]
}
