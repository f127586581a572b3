//! The number of pods (L13, C1).

use std::collections::BTreeSet;

use serde_json::{Value, json};
use sim_cluster::{RequestMatcher, Status, Verb};

use crate::world::{PODS, SET, World, seconds, set};

/// Creations and deletions of pods among the writes.
fn of_pods(writes: &[String]) -> (usize, usize) {
    let created = |write: &&String| write.starts_with("POST") && write.contains("/pods");
    let deleted = |write: &&String| write.starts_with("DELETE") && write.contains("/pods");
    let count = |of: &dyn Fn(&&String) -> bool| writes.iter().filter(of).count();
    (count(&created), count(&deleted))
}

#[tokio::test(start_paused = true)]
async fn c1_l13_missing_pods_are_created_and_surplus_ones_removed() {
    let world = World::running(5, &json!({})).await;
    assert_eq!(of_pods(&world.writes()), (5, 0));
    world.scale(8).await;
    world.settle(8).await;
    assert_eq!(of_pods(&world.writes()), (3, 0));
    world.scale(2).await;
    world.settle(2).await;
    assert_eq!(of_pods(&world.writes()), (0, 6));
    world.scale(0).await;
    world.settle(0).await;
}

/// Two writes for each pod: its creation, and its gate, which conflicts neither with the scheduler nor with the kubelet.
#[tokio::test(start_paused = true)]
async fn c1_l12_the_gate_of_a_new_pod_is_opened_by_one_write() {
    let world = World::running(60, &json!({})).await;
    let writes = world.writes();
    let of_pods: Vec<_> = writes
        .iter()
        .filter(|write| write.contains("/pods"))
        .collect();
    let count = |end: &str| of_pods.iter().filter(|write| write.ends_with(end)).count();
    let counts = [count("/pods 201"), count("/status 200"), of_pods.len()];
    assert_eq!(counts, [60, 60, 120], "{of_pods:#?}");
}

#[tokio::test(start_paused = true)]
async fn c1_a_deleted_pod_is_replaced_once() {
    let world = World::running(5, &json!({})).await;
    world.writes();
    let before = world.uids().await;
    let (name, uid) = before.first_key_value().unwrap();
    world.delete(&format!("{PODS}/{name}"), &json!({})).await;
    world
        .wait_until("another pod exists", 30, async |world: &World| {
            let pods = world.pods().await;
            pods.len() == 5 && pods.iter().all(|pod| pod.uid != *uid)
        })
        .await;
    world.settle(5).await;
    assert_eq!(of_pods(&world.writes()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn c1_c8_a_terminated_pod_is_replaced() {
    let world = World::running(3, &json!({})).await;
    let name = world.uids().await.into_keys().next().unwrap();
    let failed = json!({ "status": { "phase": "Failed" } });
    world.patch(&format!("{PODS}/{name}/status"), &failed).await;
    world
        .wait_until("three others are available", 30, async |world: &World| {
            let pods = world.pods().await;
            let ready = pods.iter().filter(|pod| pod.is_ready && pod.name != name);
            ready.count() == 3
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn c1_a_thousand_pods_are_created_without_a_flood() {
    let mut world = World::without_controller(sim_cluster::Settings::default()).await;
    for number in 5..15 {
        let node = sim_cluster::NodeSpec::new(format!("more-{number}"));
        world.cluster.add_node(&node).unwrap();
    }
    world.start_controller();
    let mut object = set(&json!({}));
    object["spec"]["replicas"] = 1000.into();
    world.create(crate::world::SETS, &object).await;
    world.settle(1000).await;
    let writes = world.writes();
    assert_eq!(of_pods(&writes), (1000, 0));
    let statuses = writes
        .iter()
        .filter(|write| write.contains("/web/status"))
        .count();
    assert!(statuses < 60, "{statuses} statuses");
    let events = writes
        .iter()
        .filter(|write| write.contains("/events"))
        .count();
    assert!(events < 60, "{events} events");
}

/// A quota rejects some pods: the others run, a condition says why, and they are created once there is room.
#[tokio::test(start_paused = true)]
async fn l13_a_quota_rejects_pods_in_one_condition_and_they_are_created_later() {
    let world = World::start().await;
    let quota = json!({ "metadata": { "name": "few" }, "spec": { "hard": { "pods": "3" } } });
    world
        .create("/api/v1/namespaces/shop/resourcequotas", &quota)
        .await;
    seconds(5).await;
    let mut object = set(&json!({}));
    object["spec"]["replicas"] = 20.into();
    world.create(crate::world::SETS, &object).await;
    world
        .wait_until("three pods run", 60, async |world: &World| {
            let condition = world.condition("ReplicaFailure").await;
            condition == "True FailedCreate" && world.status().await["readyReplicas"] == 3
        })
        .await;
    let message = world.message("ReplicaFailure").await;
    assert!(message.contains("exceeded quota: few"), "{message}");
    seconds(300).await;
    let writes = world.writes();
    let rejected = writes.iter().filter(|write| write.ends_with("403")).count();
    assert!(rejected < 20, "{rejected} of {writes:#?}");
    let room = json!({ "spec": { "hard": { "pods": "30" } } });
    let path = "/api/v1/namespaces/shop/resourcequotas/few";
    world.patch(path, &room).await;
    world.settle(20).await;
    assert_eq!(world.condition("ReplicaFailure").await, "");
}

/// Responses are lost: pods exist that the controller was not told of. It creates none twice.
#[tokio::test(start_paused = true)]
async fn c1_a_lost_response_creates_no_pod_twice() {
    let world = World::start().await;
    let creations = RequestMatcher::all().verb(Verb::Create).resource("pods");
    world.cluster.faults().lose_responses(creations, 3);
    // What was created is not seen either.
    world.cluster.faults().set_resource_stalled("pods", true);
    let mut object = set(&json!({}));
    object["spec"]["replicas"] = 6.into();
    world.create(crate::world::SETS, &object).await;
    seconds(120).await;
    assert_eq!(world.pods().await.len(), 6, "{}", world.describe().await);
    world.cluster.faults().set_resource_stalled("pods", false);
    world.settle(6).await;
    let names: BTreeSet<_> = world.uids().await.into_keys().collect();
    assert_eq!(names.len(), 6);
}

/// The watch of pods stands still: the controller neither creates nor deletes twice.
#[tokio::test(start_paused = true)]
async fn c1_l13_a_stale_view_neither_creates_nor_deletes_twice() {
    let world = World::running(4, &json!({})).await;
    world.writes();
    world.cluster.faults().set_resource_stalled("pods", true);
    world.scale(7).await;
    seconds(60).await;
    assert_eq!(of_pods(&world.writes()), (3, 0));
    world.scale(2).await;
    seconds(60).await;
    // Three of the five have another version than the responses to their creations showed, and are read.
    let writes = world.writes();
    assert_eq!(of_pods(&writes), (0, 5 + 3));
    let conflicts = writes.iter().filter(|write| write.ends_with(" 409"));
    assert_eq!(conflicts.count(), 3, "{writes:?}");
    assert_eq!(world.pods().await.len(), 2);
    world.scale(3).await;
    seconds(60).await;
    assert_eq!(of_pods(&world.writes()), (1, 0));
    world.cluster.faults().set_resource_stalled("pods", false);
    world.settle(3).await;
    assert_eq!(of_pods(&world.writes()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn l13_an_api_server_that_answers_with_errors_is_asked_again_later() {
    let world = World::start().await;
    let creations = RequestMatcher::all().verb(Verb::Create).resource("pods");
    let busy = Status::new(503, "ServiceUnavailable", "the server is busy");
    world.cluster.faults().refuse(creations, 5, busy);
    world
        .create(crate::world::SETS, &{
            let mut object = set(&json!({}));
            object["spec"]["replicas"] = 4.into();
            object
        })
        .await;
    world.settle(4).await;
}

#[tokio::test(start_paused = true)]
async fn c1_the_scale_subresource_works() {
    let world = World::running(2, &json!({})).await;
    let scale = json!({ "spec": { "replicas": 4 } });
    let scaled: Value = world.patch(&format!("{SET}/scale"), &scale).await;
    assert_eq!(scaled["status"]["selector"], "app=web");
    world.settle(4).await;
}
