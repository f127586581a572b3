//! Pods stay until their containers have stopped (M11, M13).

use serde_json::{Value, json};

use crate::{
    migrations::{POLICIES, REQUESTS, phase, phases, policy, reaches, request, status},
    world::{NAMESPACE, PODS, SET, World, seconds, text},
};

fn shutdown(on_timeout: &str) -> Value {
    policy(&json!({
        "minSecondsBetween": { "hardware": 0 },
        "shutdown": { "timeoutSeconds": 600, "onTimeout": on_timeout },
    }))
}

/// A set all of whose pods have the finalizer.
async fn guarded(replicas: usize, on_timeout: &str) -> World {
    let spec = json!({ "nodeTimeoutSeconds": 120, "removalTimeoutSeconds": 3000 });
    let world = World::running(replicas, &spec).await;
    world.create(POLICIES, &shutdown(on_timeout)).await;
    world
        .wait_until("pods have the finalizer", 30, async |world: &World| {
            finalizers(world).await.iter().all(|has| *has)
        })
        .await;
    world
}

async fn finalizers(world: &World) -> Vec<bool> {
    let pods = world.get(PODS).await;
    let pods = pods["items"].as_array().unwrap().iter();
    pods.map(|pod| pod["metadata"]["finalizers"] == json!(["fedrs.dev/shutdown"]))
        .collect()
}

/// The request of the pod `name`.
async fn request_of(world: &World, pod: &str) -> Option<String> {
    let requests = world.get(REQUESTS).await;
    let mut requests = requests["items"].as_array().unwrap().iter();
    let request = requests.find(|request| request["spec"]["podName"] == pod)?;
    Some(text(&request["metadata"]["name"]))
}

/// The pods on the node that are not gone.
async fn on(world: &World, node: &str) -> usize {
    let pods = world.pods().await;
    pods.iter().filter(|pod| pod.node == node).count()
}

async fn confirm(world: &World, request: &str) {
    let confirmation = json!({ "confirmedBy": "jane", "machineIsDestroyed": true });
    let patch = json!({ "spec": { "confirmation": confirmation } });
    world.patch(&format!("{REQUESTS}/{request}"), &patch).await;
}

#[tokio::test(start_paused = true)]
async fn m11_a_pod_that_moves_is_gone_once_its_containers_have_stopped() {
    let world = guarded(3, "HandsUp").await;
    let pod = world.pods().await.remove(0);
    let node = format!("/api/v1/nodes/{}", pod.node);
    world
        .patch(&node, &json!({ "spec": { "unschedulable": true } }))
        .await;
    world.create(REQUESTS, &request("one", &pod.name)).await;
    reaches(&world, "one", "Done").await;
    world.settle(3).await;
    let status = status(&world, "one").await;
    assert!(
        phases(&status).contains(&"ShuttingDown".to_owned()),
        "{status:#}"
    );
    assert!(world.uids().await.contains_key(&pod.name));
    assert!(
        finalizers(&world).await.iter().all(|has| *has),
        "new pods have it, too"
    );
}

/// Whoever deletes a pod, its name is used again only once it has stopped.
#[tokio::test(start_paused = true)]
async fn m11_a_pod_of_a_lost_node_waits_for_a_person() {
    let world = guarded(3, "HandsUp").await;
    let lost = world.pods().await.remove(0);
    world.cluster.fail_node(&lost.node);
    world
        .wait_until("a person is asked", 1200, async |world: &World| {
            let Some(name) = request_of(world, &lost.name).await else {
                return false;
            };
            phase(world, &name).await == "HandsUp"
        })
        .await;
    assert_eq!(
        world.condition("PodsNotStopped").await,
        "True ConfirmationNeeded"
    );
    assert!(world.message("PodsNotStopped").await.contains(&lost.name));
    // Not after a day, and not with another leader.
    seconds(24 * 3600).await;
    assert_eq!(world.uids().await[&lost.name], lost.uid);
    assert_eq!(world.pods().await.len(), 3);
    let name = request_of(&world, &lost.name).await.unwrap();
    confirm(&world, &name).await;
    reaches(&world, &name, "Done").await;
    world.settle(3).await;
    assert_ne!(world.uids().await[&lost.name], lost.uid);
    assert_eq!(world.condition("PodsNotStopped").await, "");
}

/// Its kubelet is back and stops it: that is the proof.
#[tokio::test(start_paused = true)]
async fn m11_a_node_that_is_back_proves_it() {
    let mut world = guarded(3, "HandsUp").await;
    let lost = world.pods().await.remove(0);
    world.cluster.fail_node(&lost.node);
    seconds(2000).await;
    assert_eq!(world.uids().await[&lost.name], lost.uid, "it is held");
    world.stop_controller().await;
    world.cluster.recover_node(&lost.node);
    world.start_controller();
    world.settle(3).await;
    assert_ne!(world.uids().await[&lost.name], lost.uid);
    let name = request_of(&world, &lost.name).await.unwrap();
    reaches(&world, &name, "Done").await;
}

/// Somebody deletes a pod of a node that does not answer, even by force, as one does who wants it to be replaced.
#[tokio::test(start_paused = true)]
async fn m11_a_deletion_by_force_proves_nothing() {
    let world = guarded(2, "HandsUp").await;
    let lost = world.pods().await.remove(0);
    world.cluster.fail_node(&lost.node);
    let path = format!("{PODS}/{}", lost.name);
    world
        .delete(&path, &json!({ "gracePeriodSeconds": 0 }))
        .await;
    world
        .wait_until("a person is asked", 1200, async |world: &World| {
            request_of(world, &lost.name).await.is_some()
        })
        .await;
    assert_eq!(world.uids().await[&lost.name], lost.uid);
    assert_eq!(world.pods().await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn m11_evict_lets_go_of_it_after_the_time() {
    let world = guarded(3, "Evict").await;
    let lost = world.pods().await.remove(0);
    world.cluster.fail_node(&lost.node);
    // Dead pods are replaced at once, under other names.
    seconds(400).await;
    let ready = world.pods().await.iter().filter(|pod| pod.is_ready).count();
    assert_eq!((ready, on(&world, &lost.node).await), (3, 1));
    seconds(600).await;
    world.settle(3).await;
    assert_eq!(on(&world, &lost.node).await, 0);
    let events = world.get("/api/v1/namespaces/shop/events").await;
    let text = events.to_string();
    assert!(text.contains("ForceDeleted"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn m11_replace_keeps_it_until_a_person_confirms() {
    let world = guarded(3, "Replace").await;
    let lost = world.pods().await.remove(0);
    world.cluster.fail_node(&lost.node);
    seconds(5000).await;
    let ready = world.pods().await.iter().filter(|pod| pod.is_ready).count();
    assert_eq!((ready, on(&world, &lost.node).await), (3, 1));
    let name = request_of(&world, &lost.name).await.unwrap();
    assert_eq!(phase(&world, &name).await, "HandsUp");
    confirm(&world, &name).await;
    world.settle(3).await;
    assert_eq!(on(&world, &lost.node).await, 0);
}

/// Nobody waits for a proof any more: the finalizer goes, also from pods that are being removed.
#[tokio::test(start_paused = true)]
async fn m11_without_the_policy_the_finalizer_is_gone() {
    let world = guarded(2, "HandsUp").await;
    world.delete(&format!("{POLICIES}/all"), &json!({})).await;
    world
        .wait_until("no pod has the finalizer", 30, async |world: &World| {
            !finalizers(world).await.iter().any(|has| *has)
        })
        .await;
}

/// With its pods, whoever deletes the set, or the namespace, and whether the controller runs at that time.
#[tokio::test(start_paused = true)]
async fn c7_a_set_that_is_deleted_leaves_no_pods_behind() {
    for of_namespace in [false, true] {
        let mut world = guarded(2, "HandsUp").await;
        world.stop_controller().await;
        let path = if of_namespace { NAMESPACE } else { SET };
        world.delete(path, &json!({})).await;
        seconds(100).await;
        world.start_controller();
        world
            .wait_until("all is gone", 300, async |world: &World| {
                let pods = world.get(PODS).await;
                pods["items"].as_array().unwrap().is_empty()
            })
            .await;
    }
}

/// Pods that stay without their set are free.
#[tokio::test(start_paused = true)]
async fn c7_pods_that_stay_without_their_set_lose_the_finalizer() {
    let world = guarded(2, "HandsUp").await;
    world
        .delete(SET, &json!({ "propagationPolicy": "Orphan" }))
        .await;
    world
        .wait_until("no pod has the finalizer", 60, async |world: &World| {
            !finalizers(world).await.iter().any(|has| *has)
        })
        .await;
    assert_eq!(world.pods().await.len(), 2);
}
