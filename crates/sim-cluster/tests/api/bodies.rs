//! What the server makes of a body: who owns what was in it, and what is no object of the kind.

use serde_json::{Value, json};
use sim_cluster::SimCluster;

use crate::support::Client;

const THINGS: &str = "/apis/example.org/v1/namespaces/default/things";

async fn cluster_with_things() -> (SimCluster, Client) {
    let cluster = SimCluster::builder("one").start();
    let client = Client::new(cluster.service());
    let definition = json!({"metadata": {"name": "things.example.org"}, "spec": {
        "group": "example.org", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
        "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                "spec": {"type": "object", "properties": {"size": {"type": "integer"}}},
                "status": {"type": "object", "properties": {"size": {"type": "integer"}}}}}}}]}});
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    client.post(path, definition).await.expect(201);
    (cluster, client)
}

fn thing(metadata: &Value) -> Value {
    json!({"apiVersion": "example.org/v1", "kind": "Thing", "metadata": metadata})
}

#[tokio::test(start_paused = true)]
async fn no_manager_owns_the_status_in_the_body() {
    let (cluster, client) = cluster_with_things().await;
    let node =
        json!({"metadata": {"name": "n", "labels": {"a": "b"}}, "status": {"phase": "Running"}});
    let set = json!({"metadata": {"name": "s"}, "status": {"replicas": 3}, "spec": {
        "replicas": 0, "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}});
    let mut own = thing(&json!({"name": "t"}));
    own["status"] = json!({"size": 1});
    own["spec"] = json!({"size": 1});
    for (path, object, kept) in [
        ("/api/v1/nodes", node, json!({"phase": "Running"})),
        (
            "/apis/apps/v1/namespaces/default/replicasets",
            set,
            json!({"replicas": 0}),
        ),
        (THINGS, own, Value::Null),
    ] {
        let created = client.post(path, object).await.expect(201);
        assert_eq!(created["status"], kept, "{path}");
        let managers = created["metadata"]["managedFields"]
            .as_array()
            .expect("managers");
        assert!(
            managers
                .iter()
                .all(|each| each["fieldsV1"].get("f:status").is_none()),
            "{path}: {managers:?}"
        );
    }
    cluster.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_metadata_of_a_custom_object_is_read_like_any_other() {
    let (cluster, client) = cluster_with_things().await;
    let wrong = thing(&json!({"name": "a", "labels": {"x": 1}}));
    client.post(THINGS, wrong).await.assert_status(
        400,
        "BadRequest",
        "Thing in version \"v1\" cannot be handled as a Thing: json: cannot unmarshal number into Go struct field \
         ObjectMeta.metadata.labels of type string",
    );
    let mut unknown = thing(&json!({"name": "a", "owner": "me"}));
    unknown["spec"] = json!({"color": "red"});
    client
        .post(&format!("{THINGS}?fieldValidation=Strict"), unknown.clone())
        .await
        .assert_status(
            400,
            "BadRequest",
            "Thing in version \"v1\" cannot be handled as a Thing: strict decoding error: unknown field \
             \"metadata.owner\", unknown field \"spec.color\"",
        );
    let created = client.post(THINGS, unknown).await.expect(201);
    assert!(created["metadata"].get("owner").is_none());
    cluster.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_patch_that_does_not_apply_has_no_details() {
    let (cluster, client) = cluster_with_things().await;
    client
        .post(THINGS, thing(&json!({"name": "a"})))
        .await
        .expect(201);
    let test = json!([{"op": "test", "path": "/spec/size", "value": 2}]);
    let answer = client
        .patch(&format!("{THINGS}/a"), "json-patch+json", &test)
        .await;
    assert_eq!(
        answer.expect(422),
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": "Invalid",
            "message": "the server rejected our request due to an error in our request", "details": {}, "code": 422})
    );
    cluster.stop().await;
}

#[tokio::test(start_paused = true)]
async fn server_and_nodes_are_of_one_version() {
    let cluster = SimCluster::builder("one").nodes(1).start();
    let client = Client::new(cluster.service());
    let version = client.get("/version").await.expect(200)["gitVersion"].clone();
    let nodes = client.get("/api/v1/nodes").await.expect(200);
    assert_eq!(
        nodes["items"][0]["status"]["nodeInfo"]["kubeletVersion"],
        version
    );
    cluster.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_default_of_a_status_is_set_on_a_new_custom_object_and_owned_by_no_manager() {
    let cluster = SimCluster::builder("one").start();
    let client = Client::new(cluster.service());
    let status = json!({"type": "object", "default": {"observedGeneration": -1}, "properties": {
        "observedGeneration": {"type": "integer"}, "replicas": {"type": "integer", "default": 0}}});
    let definition = json!({"metadata": {"name": "things.example.org"}, "spec": {
        "group": "example.org", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
        "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"status": status}}}}]}});
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    client.post(definitions, definition).await.expect(201);
    let things = "/apis/example.org/v1/namespaces/default/things";
    let thing = json!({"apiVersion": "example.org/v1", "kind": "Thing", "metadata": {"name": "a", "labels": {"x": "y"}},
        "status": {"observedGeneration": 7}});
    let created = client.post(things, thing.clone()).await.expect(201);
    let default = json!({"observedGeneration": -1, "replicas": 0});
    assert_eq!(created["status"], default);
    let mut changed = thing;
    changed["metadata"]["labels"]["x"] = json!("z");
    changed["metadata"]["resourceVersion"] = created["metadata"]["resourceVersion"].clone();
    let updated = client.put(&format!("{things}/a"), changed).await;
    let updated = updated.expect(200);
    assert_eq!(updated["status"], default);
    for object in [created, updated] {
        let owned = &object["metadata"]["managedFields"][0]["fieldsV1"];
        assert!(owned.get("f:status").is_none(), "{owned}");
    }
}
