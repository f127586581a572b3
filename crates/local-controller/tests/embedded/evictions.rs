//! Evictions (L18 to L20), and pods that do not shut down (L17).

use serde_json::json;
use tokio::time::Instant;

use crate::world::{PODS, World, image, seconds, set, text};

#[tokio::test(start_paused = true)]
async fn l18_l20_an_annotation_or_a_label_evicts_a_pod_within_the_budget() {
    let spec = json!({ "deploymentStrategy": { "maxUnavailable": 1 } });
    let world = World::running(4, &spec).await;
    for kind in ["annotations", "labels"] {
        let before = world.uids().await;
        let asked: Vec<_> = before.iter().take(2).collect();
        for (name, _) in &asked {
            let evict = json!({ "metadata": { kind: { "fedrs.dev/evict": "true" } } });
            world.patch(&format!("{PODS}/{name}"), &evict).await;
        }
        world
            .wait_until("both are replaced", 60, async |world: &World| {
                let pods = world.pods().await;
                let ready = pods.iter().filter(|pod| pod.is_ready).count();
                assert!(ready >= 3, "{}", world.describe().await);
                pods.iter()
                    .all(|pod| asked.iter().all(|(_, uid)| pod.uid != **uid))
            })
            .await;
        world.settle(4).await;
        let after = world.uids().await;
        let moved = before
            .values()
            .filter(|uid| !after.values().any(|is| is == *uid));
        assert_eq!(moved.count(), 2, "no others by {kind}");
    }
}

/// L19: while an eviction is unfinished no update begins.
#[tokio::test(start_paused = true)]
async fn l19_an_eviction_goes_before_an_update() {
    let mut template = set(&json!({}))["spec"]["template"].clone();
    template["metadata"]["annotations"] = json!({ "sim-cluster.dev/start-seconds": "60" });
    let strategy = json!({ "maxUnavailable": 2 });
    let spec = json!({ "deploymentStrategy": strategy, "template": template });
    let world = World::running(4, &spec).await;
    let before = world.uids().await;
    let (name, evicted) = before.first_key_value().unwrap();
    let evict = json!({ "metadata": { "annotations": { "fedrs.dev/evict": "true" } } });
    world.patch(&format!("{PODS}/{name}"), &evict).await;
    let is_unfinished =
        async |world: &World| text(&world.status().await["record"]).contains("evictions");
    world
        .wait_until("the eviction is recorded", 10, is_unfinished)
        .await;
    world.patch_set(&image("web:2")).await;
    let patched = Instant::now();
    world
        .wait_until("it is finished", 120, async |world: &World| {
            let pods = world.pods().await;
            let updated = pods.iter().filter(|pod| pod.image == "web:2");
            let updated = updated.filter(|pod| before.values().any(|uid| *uid == pod.uid));
            let is_over = !is_unfinished(world).await;
            assert!(
                is_over || updated.count() == 0,
                "{}",
                world.describe().await
            );
            is_over
        })
        .await;
    assert!(
        patched.elapsed().as_secs() >= 55,
        "the successor had to start"
    );
    world.settle(4).await;
    assert!(world.uids().await.values().all(|uid| uid != evicted));
}

#[tokio::test(start_paused = true)]
async fn l18_a_label_on_a_node_empties_it() {
    let world = World::running(5, &json!({})).await;
    let node = world.pods().await[0].node.clone();
    let path = format!("/api/v1/nodes/{node}");
    let cordon = json!({ "spec": { "unschedulable": true } });
    world.patch(&path, &cordon).await;
    let before = world.uids().await;
    seconds(60).await;
    assert_eq!(world.uids().await, before, "a cordon moves nothing");
    let evict = json!({ "metadata": { "labels": { "fedrs.dev/evict": "true" } } });
    world.patch(&path, &evict).await;
    world
        .wait_until("the node is empty", 120, async |world: &World| {
            world.pods().await.iter().all(|pod| pod.node != node)
        })
        .await;
    world.settle(5).await;
}

/// L17, L18: the pods of a dead node are evicted, and deleted by force once they have not shut down in time.
#[tokio::test(start_paused = true)]
async fn l17_l18_pods_of_a_dead_node_are_replaced_and_deleted_by_force() {
    let world = World::running(
        5,
        &json!({ "removalTimeoutSeconds": 300, "nodeTimeoutSeconds": 120 }),
    )
    .await;
    let node = world.pods().await[0].node.clone();
    world.cluster.fail_node(&node);
    let before = world.uids().await;
    seconds(120).await;
    assert_eq!(world.uids().await, before, "a short loss moves nothing");
    world
        .wait_until("all are ready elsewhere", 240, async |world: &World| {
            let pods = world.pods().await;
            let elsewhere = pods.iter().filter(|pod| pod.is_ready && pod.node != node);
            elsewhere.count() == 5
        })
        .await;
    world.settle(5).await;
    assert!(world.pods().await.iter().all(|pod| pod.node != node));
    let events = world.get("/api/v1/namespaces/shop/events").await;
    let events = events["items"].as_array().unwrap();
    assert!(events.iter().any(|event| event["reason"] == "ForceDeleted"));
}

/// A node that the watch of nodes has not shown yet is read before it counts as gone.
#[tokio::test(start_paused = true)]
async fn l18_a_new_node_is_not_taken_for_a_deleted_one() {
    let world = World::running(2, &json!({})).await;
    world.cluster.faults().set_resource_stalled("nodes", true);
    let nodes = world.get("/api/v1/nodes").await;
    for node in nodes["items"].as_array().unwrap() {
        let path = format!("/api/v1/nodes/{}", text(&node["metadata"]["name"]));
        world
            .patch(&path, &json!({ "spec": { "unschedulable": true } }))
            .await;
    }
    world
        .cluster
        .add_node(&sim_cluster::NodeSpec::new("fresh"))
        .unwrap();
    world.writes();
    world.scale(4).await;
    world.settle(4).await;
    let fresh = world
        .pods()
        .await
        .iter()
        .filter(|pod| pod.node == "fresh")
        .count();
    assert_eq!(fresh, 2);
    let deleted = world
        .writes()
        .iter()
        .filter(|write| write.starts_with("DELETE"))
        .count();
    assert_eq!(deleted, 0);
}
