//! What clients are answered by HTTP.

use std::time::Duration;

use axum::http::StatusCode;
use discovery::Answer;
use serde_json::{Value, json};
use sim_cluster::{SimCluster, kinds};

use crate::world::{PATIENCE, PODS, SETS, World, create_pod, delete_pod, write};

fn names(answer: &Answer) -> Vec<String> {
    let endpoints = answer.endpoints.iter();
    endpoints
        .map(|endpoint| format!("{}/{}", endpoint.cluster, endpoint.name))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn d1_a_set_has_the_pods_of_all_members_with_addresses_ports_and_labels() {
    let world = World::start(async |[eu, us]: &[SimCluster; 2]| {
        create_pod(eu, "a").await;
        create_pod(us, "a").await;
    })
    .await;
    let answer = world.answer(|answer| answer.endpoints.len() == 2).await;
    assert_eq!(names(&answer), ["eu/a", "us/a"]);
    let endpoint = &answer.endpoints[0];
    assert_eq!(endpoint.addresses.len(), 1);
    assert_eq!(json!(endpoint.ports), json!({ "http": 8080 }));
    assert_eq!(json!(endpoint.labels), json!({ "version": "1" }));
    assert!(endpoint.ready && endpoint.serving && !endpoint.terminating);
    assert!(endpoint.node.is_some());
    assert_eq!(answer.stale_members, []);
}

#[tokio::test(start_paused = true)]
async fn d2_a_change_ends_the_wait_and_versions_grow() {
    let world = World::start(async |[eu, _]: &[SimCluster; 2]| create_pod(eu, "a").await).await;
    let first = world.answer(|answer| answer.endpoints.len() == 1).await;
    let etag = format!("\"{}\"", first.version);
    let (status, body, _) = world
        .get("/v1/endpoints/default/web?wait=5", Some(&etag))
        .await;
    assert_eq!((status, body.as_str()), (StatusCode::NOT_MODIFIED, ""));
    let waiting = world.get("/v1/endpoints/default/web?wait=60", Some(&etag));
    let change = async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        create_pod(&world.members[1], "b").await;
    };
    let began = tokio::time::Instant::now();
    let ((status, body, _), ()) = tokio::join!(waiting, change);
    assert_eq!(status, StatusCode::OK);
    assert!(
        began.elapsed() < Duration::from_secs(20),
        "it did not wait for the end"
    );
    let second: Answer = serde_json::from_str(&body).unwrap();
    assert!(second.version > first.version);
    assert_eq!(names(&second), ["eu/a", "us/b"]);
}

#[tokio::test(start_paused = true)]
async fn d2_a_pod_that_is_removed_is_marked_and_gone_once_it_is() {
    let world = World::start(async |[eu, us]: &[SimCluster; 2]| {
        create_pod(eu, "a").await;
        create_pod(us, "b").await;
    })
    .await;
    world.answer(|answer| answer.endpoints.len() == 2).await;
    let stops_slowly =
        json!({ "metadata": { "annotations": { "sim-cluster.dev/stop-seconds": "10" } } });
    write(
        &world.members[0],
        "PATCH",
        &format!("{PODS}/a"),
        &stops_slowly,
    )
    .await;
    delete_pod(&world.members[0], "a").await;
    let is_marked = |answer: &Answer| answer.endpoints.iter().any(|one| one.terminating);
    let answer = world.answer(is_marked).await;
    let endpoint = &answer.endpoints[0];
    assert_eq!((endpoint.name.as_str(), endpoint.ready), ("a", false));
    assert!(endpoint.serving, "it still takes requests");
    let answer = world.answer(|answer| names(answer) == ["us/b"]).await;
    assert!(answer.endpoints.iter().all(|endpoint| endpoint.ready));
}

/// A member that can't be reached keeps its endpoints, and the answer says how old they are.
#[tokio::test(start_paused = true)]
async fn d2_an_unreachable_member_keeps_its_endpoints_with_their_age() {
    let world = World::start(async |[eu, us]: &[SimCluster; 2]| {
        create_pod(eu, "a").await;
        create_pod(us, "b").await;
    })
    .await;
    world.answer(|answer| answer.endpoints.len() == 2).await;
    world.members[0].faults().set_unreachable(true);
    let answer = world
        .answer(|answer| !answer.stale_members.is_empty())
        .await;
    assert_eq!(names(&answer), ["eu/a", "us/b"]);
    assert_eq!(answer.stale_members[0].name, "eu");
    world.members[0].faults().heal();
    let answer = world.answer(|answer| answer.stale_members.is_empty()).await;
    assert_eq!(names(&answer), ["eu/a", "us/b"]);
}

/// Nothing is answered before each member is known; after a while without one that can't be reached, but never an empty set.
#[tokio::test(start_paused = true)]
async fn d2_what_is_not_known_is_no_empty_answer() {
    let world = World::start(async |[eu, us]: &[SimCluster; 2]| {
        create_pod(us, "b").await;
        eu.faults().set_unreachable(true);
    })
    .await;
    tokio::time::sleep(PATIENCE / 2).await;
    let (status, body, _) = world.get("/v1/endpoints/default/web", None).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(body, "waiting for the first list of pods of eu\n");
    let answer = world.answer(|answer| answer.endpoints.len() == 1).await;
    assert_eq!(
        (
            answer.stale_members[0].name.as_str(),
            answer.stale_members[0].seconds
        ),
        ("eu", None)
    );
    delete_pod(&world.members[1], "b").await;
    let is_gone = || {
        world.members[1]
            .api()
            .get(&kinds::PODS, "default", "b")
            .is_err()
    };
    while !is_gone() {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (status, _, _) = world.get("/v1/endpoints/default/web", None).await;
    assert_eq!(
        status,
        StatusCode::SERVICE_UNAVAILABLE,
        "eu may have endpoints"
    );
    world.members[0].faults().heal();
    let answer = world.answer(|answer| answer.stale_members.is_empty()).await;
    assert_eq!(names(&answer), [""; 0], "now it is known to be empty");
}

const SERVICES: &str = "/api/v1/namespaces/default/services";

/// Creates the Service `front` of the pods with this label.
async fn create_service(cluster: &SimCluster, app: &str) {
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": "front" },
        "spec": { "selector": { "app": app }, "ports": [{ "port": 80 }] },
    });
    write(cluster, "POST", SERVICES, &service).await;
}

/// The set has the pods of the Service `front`.
async fn of_service(world: &World) {
    let source = json!({ "selector": null, "service": "front" });
    let patch = json!({ "spec": { "source": source } });
    write(&world.host, "PATCH", &format!("{SETS}/web"), &patch).await;
}

/// In each member its own Service decides.
#[tokio::test(start_paused = true)]
async fn d1_a_set_has_the_pods_of_a_service_in_each_member() {
    let world = World::start(async |[eu, us]: &[SimCluster; 2]| {
        for (cluster, pod, app) in [(eu, "a", "web"), (us, "b", "other")] {
            create_pod(cluster, pod).await;
            create_service(cluster, app).await;
        }
    })
    .await;
    world.answer(|answer| answer.endpoints.len() == 2).await;
    of_service(&world).await;
    world.answer(|answer| names(answer) == ["eu/a"]).await;
    let [eu, us] = &world.members;
    let front = format!("{SERVICES}/front");
    let selector = json!({ "spec": { "selector": { "app": "web" } } });
    write(us, "PATCH", &front, &selector).await;
    world.answer(|answer| answer.endpoints.len() == 2).await;
    write(eu, "DELETE", &front, &Value::Null).await;
    world.answer(|answer| names(answer) == ["us/b"]).await;
    write(us, "DELETE", &front, &Value::Null).await;
    let expected = "EndpointSet default/web: what spec.source names does not exist\n";
    let answer = async || {
        let (status, body, _) = world.get("/v1/endpoints/default/web", None).await;
        (status, body)
    };
    let end = tokio::time::Instant::now() + Duration::from_secs(60);
    while answer().await != (StatusCode::CONFLICT, expected.to_owned()) {
        assert!(tokio::time::Instant::now() < end, "{:?}", answer().await);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A member that can't be reached may have the Service.
#[tokio::test(start_paused = true)]
async fn d2_a_service_that_is_not_known_is_not_taken_for_missing() {
    let world = World::start(async |[_, us]: &[SimCluster; 2]| {
        create_pod(us, "b").await;
        create_service(us, "web").await;
        us.faults().set_unreachable(true);
    })
    .await;
    of_service(&world).await;
    // Answers no longer wait for it.
    tokio::time::sleep(PATIENCE * 2).await;
    assert!(world.catalog().ready().is_ok());
    let (status, body, _) = world.get("/v1/endpoints/default/web", None).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(body, "waiting for the first list of pods of us\n");
    world.members[1].faults().heal();
    world.answer(|answer| names(answer) == ["us/b"]).await;
}

#[tokio::test(start_paused = true)]
async fn bad_input_names_the_field_and_concerns_no_other_set() {
    let world = World::start(async |[eu, _]: &[SimCluster; 2]| create_pod(eu, "a").await).await;
    let set = |name: &str, source: Value| {
        json!({
            "apiVersion": "fedrs.dev/v1alpha1", "kind": "EndpointSet", "metadata": { "name": name },
            "spec": { "source": source },
        })
    };
    let empty = set("empty", json!({ "selector": {} }));
    write(&world.host, "POST", SETS, &empty).await;
    let missing = set("missing", json!({ "federatedReplicaSet": "nobody" }));
    write(&world.host, "POST", SETS, &missing).await;
    let answer = world.answer(|answer| answer.endpoints.len() == 1).await;
    assert_eq!(names(&answer), ["eu/a"]);
    let expected = [
        (
            "empty",
            StatusCode::CONFLICT,
            "EndpointSet default/empty is invalid: spec.source.selector: must not be empty: an empty selector matches every pod\n",
        ),
        (
            "missing",
            StatusCode::CONFLICT,
            "EndpointSet default/missing: what spec.source names does not exist\n",
        ),
        (
            "other",
            StatusCode::NOT_FOUND,
            "EndpointSet default/other does not exist\n",
        ),
    ];
    for (name, status, text) in expected {
        let path = format!("/v1/endpoints/default/{name}");
        let (found, body, _) = world.get(&path, None).await;
        assert_eq!((found, body.as_str()), (status, text));
    }
}
