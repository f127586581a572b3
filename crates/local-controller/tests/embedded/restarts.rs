//! A controller that ends at any time, and another that continues (L15).

use serde_json::json;

use crate::world::{SETS, World, image, seconds, set};

#[tokio::test(start_paused = true)]
async fn l13_a_restart_of_a_settled_set_writes_nothing() {
    let mut world = World::running(5, &json!({})).await;
    seconds(60).await;
    world.writes();
    world.stop_controller().await;
    world.start_controller();
    seconds(600).await;
    assert_eq!(world.writes(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn c1_l13_restarts_while_pods_are_created_create_none_twice() {
    let mut world = World::start().await;
    let mut object = set(&json!({}));
    object["spec"]["replicas"] = 40.into();
    world.create(SETS, &object).await;
    for _ in 0..20 {
        tokio::time::sleep(std::time::Duration::from_millis(7)).await;
        world.stop_controller().await;
        assert!(world.pods().await.len() <= 40);
        world.start_controller();
    }
    world.settle(40).await;
    let writes = world.writes();
    let deleted = writes.iter().filter(|write| write.starts_with("DELETE"));
    assert_eq!(deleted.count(), 0, "{writes:#?}");
}

/// Pods that never start have failed `progressDeadlineSeconds` after the last progress, whoever leads.
#[tokio::test(start_paused = true)]
async fn l14_another_leader_continues_the_progress_deadline() {
    let mut world = World::running(3, &json!({})).await;
    let mut bad = image("web:bad");
    bad["spec"]["template"]["metadata"] = json!({
        "labels": { "app": "web" }, "annotations": { "sim-cluster.dev/fail": "image-pull" },
    });
    world.patch_set(&bad).await;
    for _ in 0..5 {
        seconds(110).await;
        assert_eq!(world.condition("Stalled").await, "");
        world.stop_controller().await;
        world.start_controller();
    }
    world.writes();
    seconds(40).await;
    assert_eq!(world.writes(), [""; 0], "it says what the last leader said");
    seconds(40).await;
    let failed = "True ProgressDeadlineExceeded";
    assert_eq!(world.condition("Stalled").await, failed);
    world.stop_controller().await;
    world.start_controller();
    seconds(60).await;
    assert_eq!(world.condition("Stalled").await, failed);
    // Another template has all the time again.
    let mut slow = image("web:3");
    slow["spec"]["template"]["metadata"] = json!({
        "labels": { "app": "web" }, "annotations": { "sim-cluster.dev/fail": "never-ready" },
    });
    world.stop_controller().await;
    world.patch_set(&slow).await;
    world.start_controller();
    seconds(60).await;
    assert_eq!(world.condition("Stalled").await, "");
    let good = json!({ "annotations": null });
    world
        .patch_set(&json!({ "spec": { "template": { "metadata": good } } }))
        .await;
    world.settle(3).await;
    assert!(world.status().await["lastProgressTime"].is_null());
}

/// Of each pod that is recreated, the place is kept, whenever the controller ends.
#[tokio::test(start_paused = true)]
async fn l12_l14_restarts_while_pods_are_recreated_keep_budget_and_names() {
    let spec = json!({ "deploymentStrategy": { "maxUnavailable": 2 } });
    let mut world = World::running(6, &spec).await;
    let before = world.uids().await;
    let container = json!({ "name": "main", "image": "web:1", "args": ["x"] });
    let change = json!({ "spec": { "template": { "spec": { "containers": [container] } } } });
    world.patch_set(&change).await;
    for millis in (0..400).map(|step| 3 + step % 40) {
        tokio::time::sleep(std::time::Duration::from_millis(millis)).await;
        world.stop_controller().await;
        let ready = world.pods().await.iter().filter(|pod| pod.is_ready).count();
        assert!(ready >= 4, "{ready}\n{}", world.describe().await);
        world.start_controller();
    }
    world.settle(6).await;
    assert!(world.uids().await.keys().eq(before.keys()));
}

/// The status is written before anything begins: its first write comes before that of any pod.
#[tokio::test(start_paused = true)]
async fn l14_l15_what_begins_is_in_the_status_first() {
    let world = World::running(3, &json!({})).await;
    seconds(60).await;
    world.writes();
    world.patch_set(&image("web:2")).await;
    world.settle(3).await;
    let writes = world.writes();
    let position = |part: &str| writes.iter().position(|write| write.contains(part));
    let (status, pod) = (position("/web/status"), position("/pods/"));
    assert!(status.unwrap() < pod.unwrap(), "{writes:#?}");
}

/// Others write the set while the controller does: what it decided from an earlier version is not recorded, and nothing begins.
#[tokio::test(start_paused = true)]
async fn l14_conflicts_of_the_status_are_resolved() {
    let spec = json!({ "deploymentStrategy": { "maxUnavailable": 1 } });
    let world = World::running(3, &spec).await;
    world.patch_set(&image("web:2")).await;
    for number in 0..200 {
        let note = json!({ "metadata": { "annotations": { "note": number.to_string() } } });
        world.patch_set(&note).await;
        tokio::time::sleep(std::time::Duration::from_millis(3)).await;
        let ready = world.pods().await.iter().filter(|pod| pod.is_ready).count();
        assert!(ready >= 2, "{}", world.describe().await);
    }
    world.settle(3).await;
}
