//! What the status and the events say (L2, L5, C2).

use serde_json::json;

use crate::world::{SET, SETS, World, image, seconds, set};

#[tokio::test(start_paused = true)]
async fn l2_the_status_of_a_settled_set() {
    let world = World::running(3, &json!({})).await;
    let status = world.status().await;
    for (field, expected) in [
        ("replicas", json!(3)),
        ("readyReplicas", json!(3)),
        ("availableReplicas", json!(3)),
        ("updatedReplicas", json!(3)),
        ("updatedAvailableReplicas", json!(3)),
        ("terminatingReplicas", json!(0)),
        ("selector", json!("app=web")),
        ("maxUnavailable", json!(1)),
        ("unavailable", json!(0)),
    ] {
        assert_eq!(status[field], expected, "{field}");
    }
    for (type_, expected) in [
        ("Accepted", "True Valid"),
        ("Available", "True MinimumReplicasAvailable"),
        ("Progressing", "True RolloutComplete"),
        ("Ready", "True AllReplicasAvailable"),
        ("Reconciling", ""),
        ("Stalled", ""),
    ] {
        assert_eq!(world.condition(type_).await, expected, "{type_}");
    }
    let revisions = status["revisions"].as_array().unwrap();
    assert_eq!(revisions.len(), 1);
    assert_eq!(revisions[0]["ready"], 3);
}

#[tokio::test(start_paused = true)]
async fn l5_fields_without_effect_are_reported() {
    let strategy = json!({ "maxUnavailable": 1, "maxSurge": 1, "minAvailable": 2 });
    let world = World::running(2, &json!({ "deploymentStrategy": strategy })).await;
    let message = world.message("FieldsWithoutEffect").await;
    let expected =
        "without effect: spec.deploymentStrategy.minAvailable, spec.deploymentStrategy.maxSurge";
    assert_eq!(message, expected);
}

/// The schema does not compare the selector with the template.
#[tokio::test(start_paused = true)]
async fn c5_an_invalid_spec_changes_no_pod_and_is_reported() {
    let world = World::running(2, &json!({})).await;
    let before = world.uids().await;
    let labels = json!({ "app": null, "other": "x" });
    let change =
        json!({ "spec": { "replicas": 5, "template": { "metadata": { "labels": labels } } } });
    world.patch_set(&change).await;
    world
        .wait_until("it is reported", 30, async |world: &World| {
            world.condition("Accepted").await == "False InvalidSpec"
        })
        .await;
    seconds(60).await;
    assert_eq!(world.uids().await, before);
    let message = world.message("Stalled").await;
    assert!(message.contains("spec.selector"), "{message}");
}

/// A record that can't be read is not overwritten, and nothing begins.
#[tokio::test(start_paused = true)]
async fn l15_an_unreadable_record_stops_the_set() {
    let world = World::running(2, &json!({})).await;
    let status = json!({ "status": { "record": "{\"updates\": 7}" } });
    world.patch(&format!("{SET}/status"), &status).await;
    seconds(5).await;
    world.writes();
    world.scale(4).await;
    seconds(60).await;
    assert_eq!(world.pods().await.len(), 2);
    let events = world.get("/api/v1/namespaces/shop/events").await;
    let events = events["items"].as_array().unwrap().iter();
    let mut unreadable = events.filter(|event| event["reason"] == "UnreadableStatus");
    let message = unreadable.next().unwrap()["message"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(message.contains("status.record"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn l18_events_say_what_was_done() {
    let world = World::start().await;
    let mut object = set(&json!({}));
    object["spec"]["replicas"] = 3.into();
    world.create(SETS, &object).await;
    world.settle(3).await;
    world.scale(1).await;
    world.settle(1).await;
    seconds(5).await;
    let events = world.get("/api/v1/namespaces/shop/events").await;
    let events = events["items"].as_array().unwrap().iter();
    let ours = events.filter(|event| event["involvedObject"]["kind"] == "LocalReplicaSet");
    let mut reasons: Vec<_> = ours
        .map(|event| event["reason"].as_str().unwrap())
        .collect();
    reasons.sort_unstable();
    assert_eq!(
        reasons,
        ["SuccessfulCreate", "SuccessfulCreate", "SuccessfulDelete"]
    );
}

/// The texts of an update that waits, as a user reads them.
#[tokio::test(start_paused = true)]
async fn l14_l15_conditions_say_what_an_update_waits_for() {
    let strategy =
        json!({ "maxUnavailable": 3, "deploySpeed": { "updatePortion": 1, "minDelay": 600 } });
    let mut template = set(&json!({}))["spec"]["template"].clone();
    template["metadata"]["annotations"] = json!({ "sim-cluster.dev/start-seconds": "30" });
    let spec = json!({ "deploymentStrategy": strategy, "template": template });
    let world = World::running(4, &spec).await;
    world.patch_set(&image("web:2")).await;
    seconds(10).await;
    assert_eq!(
        world.message("Progressing").await,
        "1 of 4 have the current template; 3 wait for spec.deploymentStrategy.deploySpeed until 2026-01-01T00:10:30Z"
    );
    assert_eq!(world.condition("Reconciling").await, "True RollingOut");
    assert_eq!(world.message("Ready").await, "1 pod is not available yet");
    assert_eq!(
        world.message("Available").await,
        "3 of 4 are available, at least 1 are needed"
    );
    let by_budget =
        json!({ "spec": { "deploymentStrategy": { "maxUnavailable": 1, "deploySpeed": null } } });
    world.patch_set(&by_budget).await;
    seconds(5).await;
    let message = world.message("Progressing").await;
    let expected = "1 of 4 have the current template; 3 wait for the budget, used by web-";
    assert!(message.starts_with(expected), "{message}");
    world
        .patch_set(&json!({ "spec": { "paused": true } }))
        .await;
    seconds(60).await;
    assert_eq!(
        world.message("Progressing").await,
        "3 pods of an earlier template wait for the update, which is paused"
    );
    assert_eq!(world.condition("Ready").await, "False RolloutPaused");
    assert_eq!(world.condition("Reconciling").await, "");
}
