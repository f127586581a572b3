//! Requests as a client sends them, and what comes back: codes, reasons, messages, bodies.

use crate::support::{Answer, Client};
use http::Method;
use rstest::rstest;
use serde_json::{Value, json};
use sim_cluster::SimCluster;

const PODS: &str = "/api/v1/namespaces/default/pods";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const SETS: &str = "/apis/apps/v1/namespaces/default/replicasets";

fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "1"}})
}

fn pod(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "i"}]}})
}

fn deployment(name: &str, replicas: i64) -> Value {
    let mut deployment = replica_set(name, replicas);
    deployment["kind"] = json!("Deployment");
    deployment
}

fn replica_set(name: &str, replicas: i64) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name}, "spec": {
        "replicas": replicas, "selector": {"matchLabels": {"app": name}},
        "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}})
}

/// A cluster without nodes: pods stay pending, so that nothing moves but what a test moves.
fn cluster() -> (SimCluster, Client) {
    let cluster = SimCluster::builder("test").start();
    let client = Client::new(cluster.service());
    (cluster, client)
}

#[rstest]
#[case::no_such_object(
    "GET",
    "/api/v1/namespaces/default/pods/x",
    404,
    "NotFound",
    "pods \"x\" not found"
)]
#[case::no_such_resource(
    "GET",
    "/apis/apps/v1/foos",
    404,
    "NotFound",
    "the server could not find the requested resource"
)]
#[case::no_such_group(
    "GET",
    "/apis/x.org/v1",
    404,
    "NotFound",
    "the server could not find the requested resource"
)]
#[case::no_such_subresource(
    "GET",
    "/api/v1/namespaces/default/configmaps/a/status",
    404,
    "NotFound",
    "the server could not find the requested resource"
)]
#[case::put_of_a_collection(
    "PUT",
    PODS,
    405,
    "MethodNotAllowed",
    "the server does not allow this method on the requested resource"
)]
#[case::a_field_not_supported(
    "GET",
    "/api/v1/pods?fieldSelector=spec.foo%3D1",
    400,
    "BadRequest",
    "field label not supported: spec.foo"
)]
#[case::a_version_of_the_future(
    "GET",
    "/api/v1/pods?resourceVersion=999999",
    504,
    "Timeout",
    "Timeout: Too large resource version: 999999, current: "
)]
#[case::version_match_alone(
    "GET",
    "/api/v1/pods?resourceVersionMatch=Exact",
    422,
    "Invalid",
    "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless \
     resourceVersion is provided"
)]
#[case::initial_events_of_a_list(
    "GET",
    "/api/v1/pods?sendInitialEvents=true",
    422,
    "Invalid",
    "ListOptions.meta.k8s.io \"\" is invalid: sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list"
)]
#[case::a_namespace_that_must_stay(
    "DELETE",
    "/api/v1/namespaces/default",
    403,
    "Forbidden",
    "namespaces \"default\" is forbidden: this namespace may not be deleted"
)]
#[tokio::test(start_paused = true)]
async fn refusals_without_a_body(
    #[case] method: &str,
    #[case] path: &str,
    #[case] code: u16,
    #[case] reason: &str,
    #[case] message: &str,
) {
    let (_cluster, client) = cluster();
    let answer = client.send(method.parse().unwrap(), path, None).await;
    answer.assert_status(code, reason, message);
}

#[rstest]
#[case::namespace_missing(
    "/api/v1/namespaces/nope/configmaps",
    config_map("a"),
    404,
    "NotFound",
    "namespaces \"nope\" not found"
)]
#[case::name_missing(
    MAPS,
    json!({"data": {}}),
    422,
    "Invalid",
    "ConfigMap \"\" is invalid: metadata.name: Required value: name or generateName is required"
)]
#[case::another_namespace(
    MAPS,
    json!({"metadata": {"name": "a", "namespace": "x"}}),
    400,
    "BadRequest",
    "the namespace of the provided object does not match the namespace sent on the request"
)]
#[case::another_version(
    SETS,
    json!({"apiVersion": "v1", "kind": "ReplicaSet", "metadata": {"name": "a"}}),
    400,
    "BadRequest",
    "the API version in the data (v1) does not match the expected API version (apps/v1)"
)]
#[case::a_version_given(
    MAPS,
    json!({"metadata": {"name": "a", "resourceVersion": "5"}}),
    500,
    "",
    "resourceVersion should not be set on objects to be created"
)]
#[case::strict(
    "/api/v1/namespaces/default/configmaps?fieldValidation=Strict",
    json!({"metadata": {"name": "a"}, "foo": 1}),
    400,
    "BadRequest",
    "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: strict decoding error: unknown field \"foo\""
)]
#[tokio::test(start_paused = true)]
async fn refusals_of_creations(
    #[case] path: &str,
    #[case] body: Value,
    #[case] code: u16,
    #[case] reason: &str,
    #[case] message: &str,
) {
    let (_cluster, client) = cluster();
    client
        .post(path, body)
        .await
        .assert_status(code, reason, message);
}

#[tokio::test(start_paused = true)]
async fn a_new_object_gets_its_identity() {
    let (_cluster, client) = cluster();
    let created = client.post(MAPS, config_map("a")).await.expect(201);
    let metadata = &created["metadata"];
    assert_eq!(metadata["namespace"], "default");
    assert_eq!(metadata["creationTimestamp"], "2026-01-01T00:00:00Z");
    assert_eq!(metadata["uid"].as_str().unwrap().len(), 36);
    assert!(metadata["resourceVersion"].is_string());
    client.post(MAPS, config_map("a")).await.assert_status(
        409,
        "AlreadyExists",
        "configmaps \"a\" already exists",
    );
    let generated = json!({"metadata": {"generateName": "g-"}});
    let name = client.post(MAPS, generated).await.expect(201)["metadata"]["name"].clone();
    assert_eq!(name.as_str().unwrap().len(), 7);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_stores_nothing() {
    let (_cluster, client) = cluster();
    let path = format!("{MAPS}?dryRun=All");
    client.post(&path, config_map("a")).await.expect(201);
    client.get(&format!("{MAPS}/a")).await.expect(404);
}

#[tokio::test(start_paused = true)]
async fn an_update_conflicts_with_a_later_version() {
    let (cluster, client) = cluster();
    // Only the test changes the resource version.
    cluster.stop_controller_manager();
    let first = client
        .post(DEPLOYMENTS, deployment("web", 0))
        .await
        .expect(201);
    let path = format!("{DEPLOYMENTS}/web");
    let mut second = first.clone();
    second["spec"]["replicas"] = json!(1);
    let second = client.put(&path, second).await.expect(200);
    assert_eq!(second["metadata"]["generation"], 2);
    client.put(&path, first.clone()).await.assert_status(
        409,
        "Conflict",
        "Operation cannot be fulfilled on deployments.apps \"web\": the object has been modified; please apply your \
         changes to the latest version and try again",
    );
    let mut other = first;
    other["metadata"]["uid"] = json!("other");
    other["metadata"]
        .as_object_mut()
        .unwrap()
        .remove("resourceVersion");
    let uid = second["metadata"]["uid"].as_str().unwrap();
    let message = format!(
        "Operation cannot be fulfilled on deployments.apps \"web\": StorageError: invalid object, Code: 4, Key: \
         /registry/deployments/default/web, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in \
         precondition: other, UID in object meta: {uid}"
    );
    client
        .put(&path, other)
        .await
        .assert_status(409, "Conflict", &message);
}

#[tokio::test(start_paused = true)]
async fn an_unchanged_write_keeps_its_version() {
    let (_cluster, client) = cluster();
    let created = client.post(MAPS, config_map("a")).await.expect(201);
    let path = format!("{MAPS}/a");
    let put = client.put(&path, created.clone()).await.expect(200);
    assert_eq!(
        put["metadata"]["resourceVersion"],
        created["metadata"]["resourceVersion"]
    );
    let same = json!({"data": {"a": "1"}});
    let patched = client
        .patch(&path, "merge-patch+json", &same)
        .await
        .expect(200);
    assert_eq!(
        patched["metadata"]["resourceVersion"],
        created["metadata"]["resourceVersion"]
    );
}

#[rstest]
#[case::json("json-patch+json", json!([{"op": "replace", "path": "/spec/replicas", "value": 2}]))]
#[case::merge("merge-patch+json", json!({"spec": {"replicas": 2}}))]
#[case::strategic("strategic-merge-patch+json", json!({"spec": {"replicas": 2}}))]
#[case::apply(
    "apply-patch+yaml",
    json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "spec": {"replicas": 2}})
)]
#[tokio::test(start_paused = true)]
async fn every_patch_format_changes_the_object(#[case] form: &str, #[case] patch: Value) {
    let (_cluster, client) = cluster();
    client.post(SETS, replica_set("web", 0)).await.expect(201);
    let path = format!(
        "{SETS}/web?fieldManager=me{}",
        if form.starts_with("apply") {
            "&force=true"
        } else {
            ""
        }
    );
    let patched = client.patch(&path, form, &patch).await.expect(200);
    assert_eq!(patched["spec"]["replicas"], 2);
    assert_eq!(patched["metadata"]["generation"], 2);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_patch_format_is_rejected() {
    let (_cluster, client) = cluster();
    client.post(MAPS, config_map("a")).await.expect(201);
    let path = format!("{MAPS}/a");
    client
        .patch(&path, "foo+json", &json!({}))
        .await
        .assert_status(415, "UnsupportedMediaType", "415: Unsupported Media Type");
}

#[tokio::test(start_paused = true)]
async fn status_and_scale_write_their_own_part() {
    let (_cluster, client) = cluster();
    client.post(SETS, replica_set("web", 0)).await.expect(201);
    let path = format!("{SETS}/web");
    let both = json!({"spec": {"replicas": 9}, "status": {"replicas": 3}});
    let status = client
        .patch(&format!("{path}/status"), "merge-patch+json", &both)
        .await
        .expect(200);
    assert_eq!(
        (&status["spec"]["replicas"], &status["status"]["replicas"]),
        (&json!(0), &json!(3))
    );
    assert_eq!(status["metadata"]["generation"], 1);
    let scale = client.get(&format!("{path}/scale")).await.expect(200);
    assert_eq!(scale["kind"], "Scale");
    assert_eq!(scale["status"]["selector"], "app=web");
    let two = json!({"spec": {"replicas": 2}});
    let scale = client
        .patch(&format!("{path}/scale"), "merge-patch+json", &two)
        .await
        .expect(200);
    assert_eq!(scale["spec"]["replicas"], 2);
    assert_eq!(client.get(&path).await.expect(200)["spec"]["replicas"], 2);
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_delays_the_removal_of_an_object() {
    let (_cluster, client) = cluster();
    let mut held = config_map("a");
    held["metadata"]["finalizers"] = json!(["x.org/wait"]);
    client.post(MAPS, held).await.expect(201);
    let path = format!("{MAPS}/a");
    let deleted = client.delete(&path, None).await.expect(200);
    assert_eq!(deleted["kind"], "ConfigMap");
    assert_eq!(
        deleted["metadata"]["deletionTimestamp"],
        "2026-01-01T00:00:00Z"
    );
    let add = json!({"metadata": {"finalizers": ["x.org/wait", "x.org/more"]}});
    client.patch(&path, "merge-patch+json", &add).await.assert_status(
        422,
        "Invalid",
        "ConfigMap \"a\" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the object is \
         being deleted, found new finalizers []string{\"x.org/more\"}",
    );
    let release = json!({"metadata": {"finalizers": null}});
    client
        .patch(&path, "merge-patch+json", &release)
        .await
        .expect(200);
    client.get(&path).await.expect(404);
}

#[tokio::test(start_paused = true)]
async fn deletion_keeps_to_its_preconditions() {
    let (_cluster, client) = cluster();
    let created = client.post(MAPS, config_map("a")).await.expect(201);
    let path = format!("{MAPS}/a");
    let options =
        json!({"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": "other"}});
    let refused = client.delete(&path, Some(options)).await;
    assert_eq!(refused.expect(409)["reason"], "Conflict");
    let options = json!({"preconditions": {"uid": created["metadata"]["uid"]}});
    let deleted = client.delete(&path, Some(options)).await.expect(200);
    assert_eq!(deleted["status"], "Success");
    assert_eq!(deleted["details"]["uid"], created["metadata"]["uid"]);
}

#[tokio::test(start_paused = true)]
async fn a_pod_on_a_node_ends_gracefully() {
    let (cluster, client) = cluster();
    client.post(PODS, pod("a")).await.expect(201);
    let binding = json!({"target": {"kind": "Node", "name": "n1"}});
    client
        .post(&format!("{PODS}/a/binding"), binding.clone())
        .await
        .expect(201);
    let again = client.post(&format!("{PODS}/a/binding"), binding).await;
    assert_eq!(
        again.expect(409)["message"],
        "Operation cannot be fulfilled on pods/binding \"a\": pod a is already assigned to node \"n1\""
    );
    let deleted = client.delete(&format!("{PODS}/a"), None).await.expect(200);
    assert_eq!(deleted["metadata"]["deletionGracePeriodSeconds"], 30);
    assert_eq!(
        deleted["metadata"]["deletionTimestamp"],
        "2026-01-01T00:00:30Z"
    );
    let now = json!({"gracePeriodSeconds": 0});
    client
        .delete(&format!("{PODS}/a"), Some(now))
        .await
        .expect(200);
    client.get(&format!("{PODS}/a")).await.expect(404);
    cluster.stop().await;
}

#[tokio::test(start_paused = true)]
async fn lists_have_consistent_pages() {
    let (cluster, client) = cluster();
    for name in ["a", "b", "c", "d", "e"] {
        client.post(MAPS, config_map(name)).await.expect(201);
    }
    let first = client.get(&format!("{MAPS}?limit=2")).await.expect(200);
    assert_eq!(names(&first), ["a", "b"]);
    client.delete(&format!("{MAPS}/c"), None).await.expect(200);
    client.post(MAPS, config_map("bb")).await.expect(201);
    let token = first["metadata"]["continue"].as_str().unwrap();
    let next = client
        .get(&format!("{MAPS}?limit=2&continue={token}"))
        .await
        .expect(200);
    assert_eq!(names(&next), ["c", "d"], "as it was when the list began");
    assert_eq!(
        next["metadata"]["resourceVersion"],
        first["metadata"]["resourceVersion"]
    );
    cluster.faults().compact();
    let expired = client
        .get(&format!("{MAPS}?limit=2&continue={token}"))
        .await
        .expect(410);
    assert_eq!(expired["reason"], "Expired");
    let token = expired["metadata"]["continue"].as_str().unwrap();
    let rest = client
        .get(&format!("{MAPS}?continue={token}"))
        .await
        .expect(200);
    assert_eq!(
        names(&rest),
        ["bb", "d", "e", "kube-root-ca.crt"],
        "as it is now"
    );
}

fn names(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().expect("a list");
    items
        .iter()
        .map(|item| item["metadata"]["name"].as_str().expect("a name"))
        .collect()
}

#[rstest]
#[case::table("Table", "Table", "/rows/0/cells", json!(["web", 4, 0, 0, "0s", "c", "i", "app=web"]))]
#[case::metadata("PartialObjectMetadataList", "PartialObjectMetadataList", "/items/0/metadata/name", json!("web"))]
#[tokio::test(start_paused = true)]
async fn lists_have_other_representations(
    #[case] shape: &str,
    #[case] kind: &str,
    #[case] pointer: &str,
    #[case] expected: Value,
) {
    let (_cluster, client) = cluster();
    let mut set = replica_set("web", 4);
    // A selector that matches no pods keeps the controller from changing the counts.
    set["metadata"]["annotations"] = json!({"a": "b"});
    client.post(SETS, set).await.expect(201);
    let accept = format!("application/json;as={shape};v=v1;g=meta.k8s.io,application/json");
    let list = client.get_as(SETS, &accept).await.expect(200);
    assert_eq!(list["kind"], kind);
    let mut found = list.pointer(pointer).unwrap().clone();
    if shape == "Table" {
        found[2] = json!(0);
    }
    assert_eq!(found, expected);
}

#[tokio::test(start_paused = true)]
async fn media_types_other_than_json_and_yaml_are_not_acceptable() {
    let (_cluster, client) = cluster();
    let answer: Answer = client.get_as(PODS, "text/html").await;
    assert_eq!(answer.expect(406)["reason"], "NotAcceptable");
}

#[tokio::test(start_paused = true)]
async fn a_quota_rejects_objects_that_exceed_it() {
    let (_cluster, client) = cluster();
    let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": {"pods": "1"}}});
    client
        .post("/api/v1/namespaces/default/resourcequotas", quota)
        .await
        .expect(201);
    client.post(PODS, pod("a")).await.expect(201);
    client.post(PODS, pod("b")).await.assert_status(
        403,
        "Forbidden",
        "pods \"b\" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1",
    );
}

#[tokio::test(start_paused = true)]
async fn discovery_lists_the_served_resources() {
    let (_cluster, client) = cluster();
    let groups = client.get("/apis").await.expect(200);
    let names: Vec<&str> = (groups["groups"].as_array().unwrap().iter())
        .map(|group| group["name"].as_str().unwrap())
        .collect();
    assert!(names.contains(&"apps") && !names.contains(&""));
    let resources = client.get("/apis/apps/v1").await.expect(200);
    let scale = (resources["resources"].as_array().unwrap().iter())
        .find(|each| each["name"] == "replicasets/scale")
        .unwrap();
    assert_eq!(
        (&scale["group"], &scale["kind"]),
        (&json!("autoscaling"), &json!("Scale"))
    );
    let accept =
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
    let aggregated = client.get_as("/apis", accept).await.expect(200);
    assert_eq!(aggregated["kind"], "APIGroupDiscoveryList");
    assert_eq!(client.send(Method::GET, "/readyz", None).await.text, "ok");
}

/// Creates something of every kind by server-side apply, which needs the kind's schema.
#[tokio::test(start_paused = true)]
async fn every_kind_has_a_schema() {
    let (cluster, client) = cluster();
    let kept = cluster
        .api()
        .kinds()
        .into_iter()
        .filter(|kind| !kind.is_review());
    for kind in kept {
        let prefix = if kind.group.is_empty() {
            "/api"
        } else {
            "/apis"
        };
        let namespace = if kind.namespaced {
            "namespaces/default/"
        } else {
            ""
        };
        let path = format!(
            "{prefix}/{}/{namespace}{}/x",
            kind.api_version(),
            kind.plural
        );
        let object =
            json!({"apiVersion": kind.api_version(), "kind": kind.kind, "metadata": {"name": "x"}});
        let answer = client
            .patch(
                &format!("{path}?fieldManager=me&force=true"),
                "apply-patch+yaml",
                &object,
            )
            .await;
        // Many need more than a name; none may be unknown.
        assert!(
            matches!(answer.code, 200 | 201 | 422),
            "{path}: {} {}",
            answer.code,
            answer.text
        );
    }
}
