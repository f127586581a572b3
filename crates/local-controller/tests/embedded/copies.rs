//! Migrations by copies, and what persons confirm of them (M2, M4).

use serde_json::json;

use crate::{
    migrations::{POLICIES, REQUESTS, phase, policy, reaches, request, status},
    world::{PODS, World, seconds},
};

/// A controller ends once the pod is removed, before it could say so: the next one sees a copy, and no pod.
#[tokio::test(start_paused = true)]
async fn m5_a_migration_that_ends_while_no_controller_runs_is_done() {
    let mut world = World::running(3, &json!({})).await;
    let copy = json!({ "method": "Copy", "copy": { "confirmBeforeShutdown": true } });
    world.create(POLICIES, &policy(&copy)).await;
    let moved = world.pods().await.remove(0);
    world.create(REQUESTS, &request("one", &moved.name)).await;
    reaches(&world, "one", "WaitingForConfirmation").await;
    let path = format!("{REQUESTS}/one");
    let confirmed = json!({ "spec": { "shutdownConfirmedBy": "jane" } });
    world.patch(&path, &confirmed).await;
    world
        .wait_until("the pod is removed", 60, async |world: &World| {
            let pod = world.find(&format!("{PODS}/{}", moved.name)).await;
            pod.is_none_or(|pod| !pod["metadata"]["deletionTimestamp"].is_null())
        })
        .await;
    world.stop_controller().await;
    let written = json!({ "status": { "phase": "WaitingForBudget" } });
    world.patch(&format!("{path}/status"), &written).await;
    seconds(600).await;
    world.start_controller();
    world.settle(3).await;
    reaches(&world, "one", "Done").await;
    let status = status(&world, "one").await;
    let copy = &status["newPod"];
    let pods = world.pods().await;
    assert!(pods.iter().any(|pod| pod.name == *copy), "{status:#}");
}

/// It leaves by its mark, and no other request is made for that: what a person confirms there counts.
#[tokio::test(start_paused = true)]
async fn m4_a_marked_pod_whose_request_was_cancelled_leaves_once_a_person_confirms() {
    let mut world = World::running(3, &json!({})).await;
    let copy = json!({ "method": "Copy", "copy": { "confirmBeforeShutdown": true } });
    world.create(POLICIES, &policy(&copy)).await;
    let marked = world.pods().await.remove(0);
    let mut person = request("one", &marked.name);
    person["spec"]["cancel"] = json!(true);
    person["spec"]["deadline"] = json!("2026-01-01T00:03:00Z");
    world.stop_controller().await;
    world.create(REQUESTS, &person).await;
    let mark = json!({ "metadata": { "annotations": { "fedrs.dev/evict": "Voluntary" } } });
    world.patch(&format!("{PODS}/{}", marked.name), &mark).await;
    world.start_controller();
    reaches(&world, "one", "WaitingForConfirmation").await;
    // Its deadline was cancelled with it.
    seconds(300).await;
    let waiting = status(&world, "one").await;
    assert_eq!(waiting["phase"], "WaitingForConfirmation");
    let message = waiting["message"].to_string();
    assert!(message.contains("spec.cancel has no effect"), "{message}");
    let confirmed = json!({ "spec": { "shutdownConfirmedBy": "jane" } });
    world.patch(&format!("{REQUESTS}/one"), &confirmed).await;
    reaches(&world, "one", "Done").await;
    world.settle(3).await;
}

/// The mark asks whatever becomes of its request: without one that is open, nobody could confirm the copy.
#[tokio::test(start_paused = true)]
async fn m4_a_request_of_a_mark_is_not_cancelled_while_the_mark_is_there() {
    let world = World::running(3, &json!({})).await;
    let copy = json!({ "method": "Copy", "copy": { "confirmBeforeActivation": true } });
    world.create(POLICIES, &policy(&copy)).await;
    let marked = world.pods().await.remove(0);
    let pod = format!("{PODS}/{}", marked.name);
    let mark = json!({ "metadata": { "annotations": { "fedrs.dev/evict": "Voluntary" } } });
    world.patch(&pod, &mark).await;
    let name = async |world: &World| -> Option<String> {
        let requests = world.get(REQUESTS).await;
        let name = requests["items"][0]["metadata"]["name"].as_str();
        name.map(str::to_owned)
    };
    world
        .wait_until("there is a request", 60, async |world: &World| {
            name(world).await.is_some()
        })
        .await;
    let name = &*name(&world).await.unwrap();
    reaches(&world, name, "WaitingForConfirmation").await;
    let path = format!("{REQUESTS}/{name}");
    let cancel = json!({ "spec": { "cancel": true } });
    world.patch(&path, &cancel).await;
    seconds(30).await;
    assert_eq!(phase(&world, name).await, "WaitingForConfirmation");
    let message = status(&world, name).await["message"].to_string();
    assert!(message.contains("spec.cancel has no effect"), "{message}");
    let confirmed = json!({ "spec": { "activationConfirmedBy": "jane" } });
    world.patch(&path, &confirmed).await;
    reaches(&world, name, "Done").await;
    world.settle(3).await;
}
