//! Which pods belong to a set (C1, C5 to C7).

use serde_json::{Value, json};

use crate::world::{PODS, SET, SETS, World, seconds, set, text};

fn bare_pod(name: &str) -> Value {
    json!({
        "metadata": { "name": name, "labels": { "app": "web" } },
        "spec": { "containers": [{ "name": "main", "image": "web:1" }] },
    })
}

async fn owner(world: &World, pod: &str) -> String {
    let pod = world.get(&format!("{PODS}/{pod}")).await;
    text(&pod["metadata"]["ownerReferences"][0]["name"])
}

#[tokio::test(start_paused = true)]
async fn c1_pods_that_match_and_belong_to_nobody_are_adopted() {
    let world = World::start().await;
    for name in ["web-x", "web-y"] {
        world.create(PODS, &bare_pod(name)).await;
    }
    let mut object = set(&json!({ "updateMode": "Never" }));
    object["spec"]["replicas"] = 3.into();
    world.create(SETS, &object).await;
    world
        .wait_until("they are adopted", 30, async |world: &World| {
            world.status().await["availableReplicas"] == 3
                && owner(world, "web-x").await == "web"
                && owner(world, "web-y").await == "web"
        })
        .await;
    assert_eq!(world.pods().await.len(), 3);
    let adopted = world.get(&format!("{PODS}/web-x")).await;
    let reference = &adopted["metadata"]["ownerReferences"][0];
    assert_eq!(reference["controller"], true);
    assert_eq!(reference["blockOwnerDeletion"], true);
}

#[tokio::test(start_paused = true)]
async fn c6_a_pod_whose_labels_no_longer_match_is_released_and_replaced() {
    let world = World::running(3, &json!({})).await;
    let name = world.uids().await.into_keys().next().unwrap();
    let labels = json!({ "metadata": { "labels": { "app": "other" } } });
    world.patch(&format!("{PODS}/{name}"), &labels).await;
    world
        .wait_until("it is released and replaced", 30, async |world: &World| {
            owner(world, &name).await.is_empty() && world.pods().await.len() == 4
        })
        .await;
    world
        .wait_until("three are available", 30, async |world: &World| {
            world.status().await["availableReplicas"] == 3
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn c7_a_deletion_takes_the_pods_or_leaves_them() {
    for (policy, left) in [("Background", 0), ("Foreground", 0), ("Orphan", 3)] {
        let world = World::running(3, &json!({})).await;
        world
            .delete(SET, &json!({ "propagationPolicy": policy }))
            .await;
        seconds(60).await;
        let pods = world.pods().await;
        assert_eq!(pods.len(), left, "{policy}: {pods:#?}");
        for pod in pods {
            assert_eq!(owner(&world, &pod.name).await, "", "{policy}");
        }
    }
}

/// A set that is created again takes the pods that its predecessor left.
#[tokio::test(start_paused = true)]
async fn c1_c7_left_pods_are_taken_by_the_next_set() {
    let world = World::running(3, &json!({})).await;
    let before = world.uids().await;
    world
        .delete(SET, &json!({ "propagationPolicy": "Orphan" }))
        .await;
    seconds(10).await;
    let mut object = set(&json!({}));
    object["spec"]["replicas"] = 3.into();
    world.create(SETS, &object).await;
    world.settle(3).await;
    assert_eq!(world.uids().await, before);
}

#[tokio::test(start_paused = true)]
async fn c5_overlapping_selectors_are_reported_on_both_sets() {
    let world = World::running(2, &json!({})).await;
    let mut other = set(&json!({}));
    other["metadata"]["name"] = "blog".into();
    let labels = json!({ "app": "web", "tier": "blog" });
    other["spec"]["template"]["metadata"]["labels"] = labels;
    world.create(SETS, &other).await;
    world
        .wait_until("it is reported", 10, async |world: &World| {
            world.condition("SelectorOverlap").await == "True OverlappingSelector"
        })
        .await;
    let message = world.message("SelectorOverlap").await;
    assert!(message.ends_with(": blog"), "{message}");
    seconds(30).await;
    // Each keeps its own pods.
    assert_eq!(world.status().await["replicas"], 2);
    world.delete(&format!("{SETS}/blog"), &json!({})).await;
    world
        .wait_until("it is over", 10, async |world: &World| {
            world.condition("SelectorOverlap").await.is_empty()
        })
        .await;
}

/// The watch of the set is silent while it is deleted without its pods: they are not adopted for it, or they would be deleted.
#[tokio::test(start_paused = true)]
async fn c7_pods_of_a_deleted_set_are_not_adopted_from_a_stale_view() {
    let world = World::running(3, &json!({})).await;
    let before = world.uids().await;
    world
        .cluster
        .faults()
        .set_resource_stalled("localreplicasets", true);
    world
        .delete(SET, &json!({ "propagationPolicy": "Orphan" }))
        .await;
    seconds(120).await;
    assert_eq!(world.uids().await, before);
    for name in before.keys() {
        assert_eq!(owner(&world, name).await, "");
    }
}

/// The watch of the set is silent while it is deleted with its pods: the garbage collector would delete each pod that is made in
/// the place of another, at once.
#[tokio::test(start_paused = true)]
async fn c7_a_deleted_set_gets_no_pods_from_a_stale_view() {
    let world = World::running(3, &json!({})).await;
    seconds(60).await;
    world
        .cluster
        .faults()
        .set_resource_stalled("localreplicasets", true);
    world.writes();
    world.delete(SET, &json!({})).await;
    seconds(120).await;
    let writes = world.writes();
    let pods = writes.iter().filter(|write| write.contains("/pods"));
    assert_eq!(pods.count(), 0, "{writes:?}");
    assert!(writes.len() < 5, "{writes:?}");
}
