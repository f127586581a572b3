//! Updates: in place or recreated (L12), within the budget (L14) and the speed (L15), whatever fails (L22).

use std::{collections::BTreeMap, time::Duration};

use serde_json::json;
use sim_cluster::{RequestMatcher, Status, Verb};
use tokio::time::{Instant, sleep};

use crate::world::{World, image, seconds, set};

#[tokio::test(start_paused = true)]
async fn l12_an_image_is_changed_in_place_behind_the_gate() {
    let world = World::running(4, &json!({})).await;
    let before = world.uids().await;
    world.writes();
    world.patch_set(&image("web:2")).await;
    world.settle(4).await;
    assert_eq!(world.uids().await, before);
    assert!(world.pods().await.iter().all(|pod| pod.image == "web:2"));
    // The gate is closed, the image patched, the gate opened: three writes for each pod.
    let writes = world.writes();
    let of_pods = writes.iter().filter(|write| write.contains("/pods/"));
    assert_eq!(of_pods.count(), 12, "{writes:#?}");
}

#[tokio::test(start_paused = true)]
async fn l12_labels_are_changed_without_a_restart() {
    let world = World::running(3, &json!({})).await;
    let before = world.uids().await;
    world.writes();
    let labels = json!({ "app": "web", "tier": "front" });
    let change = json!({ "spec": { "template": { "metadata": { "labels": labels } } } });
    world.patch_set(&change).await;
    world.settle(3).await;
    assert_eq!(world.uids().await, before);
    let writes = world.writes();
    let of_pods = writes.iter().filter(|write| write.contains("/pods/"));
    assert_eq!(of_pods.count(), 3, "{writes:#?}");
}

#[tokio::test(start_paused = true)]
async fn l12_what_can_not_be_patched_recreates_under_the_same_name() {
    let world = World::running(4, &json!({})).await;
    let before = world.uids().await;
    let nodes = |pods: Vec<crate::world::Pod>| {
        let nodes = pods.into_iter().map(|pod| (pod.name, pod.node));
        nodes.collect::<BTreeMap<_, _>>()
    };
    let nodes_before = nodes(world.pods().await);
    let container =
        json!({ "name": "main", "image": "web:1", "env": [{ "name": "A", "value": "1" }] });
    let change = json!({ "spec": { "template": { "spec": { "containers": [container] } } } });
    world.patch_set(&change).await;
    world.settle(4).await;
    let after = world.uids().await;
    assert!(after.keys().eq(before.keys()), "{before:?} {after:?}");
    assert!(
        after
            .values()
            .all(|uid| !before.values().any(|known| known == uid))
    );
    assert_eq!(nodes(world.pods().await), nodes_before, "the same nodes");
}

/// The API server finds the patch of a pod invalid: that pod is recreated. Of two, it is the template, and all others are as well.
#[tokio::test(start_paused = true)]
async fn l12_a_patch_that_is_rejected_recreates_the_pod() {
    for (rejections, recreated, refused) in [(1, 1, 1), (u32::MAX, 5, 2)] {
        let spec = json!({ "deploymentStrategy": { "maxUnavailable": 1 } });
        let world = World::running(5, &spec).await;
        let before = world.uids().await;
        let patches = RequestMatcher::all().verb(Verb::Patch).resource("pods");
        let invalid = Status::new(422, "Invalid", "pod updates may not change fields");
        let faults = world.cluster.faults();
        faults.refuse(patches.subresource(""), rejections, invalid);
        world.patch_set(&image("web:2")).await;
        world.settle(5).await;
        let after = world.uids().await;
        assert!(after.keys().eq(before.keys()), "{before:?} {after:?}");
        let is_another = |(name, uid): &(&String, &String)| before[*name] != **uid;
        assert_eq!(after.iter().filter(is_another).count(), recreated);
        assert_eq!(faults.counts().refused, refused);
        assert!(world.pods().await.iter().all(|pod| pod.image == "web:2"));
    }
}

/// A bad image neither takes the set down nor locks it: the next template replaces it.
#[tokio::test(start_paused = true)]
async fn l14_l22_a_bad_image_does_not_lock() {
    let spec = json!({ "deploymentStrategy": { "maxUnavailable": 2 } });
    let world = World::running(6, &spec).await;
    let annotations = json!({ "sim-cluster.dev/fail": "image-pull" });
    let mut bad = image("web:bad");
    bad["spec"]["template"]["metadata"] =
        json!({ "annotations": annotations, "labels": { "app": "web" } });
    world.patch_set(&bad).await;
    world
        .wait_until(
            "the failed pods use the budget",
            120,
            async |world: &World| {
                world.condition("BudgetUsedByFailures").await == "True PodsFailed"
            },
        )
        .await;
    let message = world.message("BudgetUsedByFailures").await;
    assert!(message.contains("ImagePull"), "{message}");
    seconds(1200).await;
    let ready = world.pods().await.iter().filter(|pod| pod.is_ready).count();
    assert_eq!(ready, 4, "{}", world.describe().await);
    assert_eq!(
        world.condition("Stalled").await,
        "True ProgressDeadlineExceeded"
    );
    let mut good = image("web:3");
    good["spec"]["template"]["metadata"] =
        json!({ "annotations": null, "labels": { "app": "web" } });
    world.patch_set(&good).await;
    world.settle(6).await;
    assert_eq!(world.condition("Stalled").await, "");
}

/// The document's example: maxUnavailable 3, portion 2, delay 30 s, pods that start in 60 s.
#[tokio::test(start_paused = true)]
async fn l14_l15_the_example_of_the_document_has_its_timeline() {
    let starts = example(async |_, _| {}).await;
    let seconds: Vec<_> = starts.iter().map(|start| start / 1000).collect();
    assert_eq!(seconds, [0, 0, 30, 60, 60, 90, 120, 120, 150]);
    check_speed(&starts);
}

/// The same while the controller is restarted again and again.
#[tokio::test(start_paused = true)]
async fn l14_l15_the_speed_and_the_budget_hold_across_restarts() {
    let starts = example(async |world, second| {
        if second % 7 == 3 {
            world.stop_controller().await;
            world.start_controller();
        }
    })
    .await;
    check_speed(&starts);
}

/// Updates 9 pods as in the example, calls `each_second`, and returns after how many milliseconds pods were seen to be updated, at
/// most a period late.
async fn example(mut each_second: impl AsyncFnMut(&mut World, u64)) -> Vec<u128> {
    let strategy =
        json!({ "maxUnavailable": 3, "deploySpeed": { "updatePortion": 2, "minDelay": 30 } });
    let template = set(&json!({}))["spec"]["template"].clone();
    let mut spec = json!({ "deploymentStrategy": strategy, "template": template });
    spec["template"]["metadata"]["annotations"] = json!({ "sim-cluster.dev/start-seconds": "60" });
    let mut world = World::running(9, &spec).await;
    seconds(60).await;
    let change =
        json!({ "spec": { "template": { "spec": image("web:2")["spec"]["template"]["spec"] } } });
    world.patch_set(&change).await;
    let began = Instant::now();
    let mut starts = BTreeMap::new();
    for period in 0..3000 {
        sleep(PERIOD.saturating_sub(LATENCY)).await;
        let pods = world.pods().await;
        assert_eq!(pods.len(), 9);
        let unavailable = pods.iter().filter(|pod| !pod.is_ready).count();
        assert!(
            unavailable <= 3,
            "{unavailable} unavailable in period {period}\n{}",
            world.describe().await
        );
        // A pod begins to be updated when its gate closes.
        for pod in pods.into_iter().filter(|pod| !pod.is_ready) {
            let seen = began.elapsed().as_millis();
            starts.entry(pod.name).or_insert(seen);
        }
        if period % 10 == 0 {
            each_second(&mut world, period / 10).await;
        }
    }
    world.settle(9).await;
    let mut starts: Vec<_> = starts.into_values().collect();
    starts.sort_unstable();
    assert_eq!(starts.len(), 9);
    starts
}

/// How often pods are looked at, and how long that takes.
const PERIOD: Duration = Duration::from_millis(100);
const LATENCY: Duration = Duration::from_millis(1);

/// At most two begin within any 30 s.
fn check_speed(starts: &[u128]) {
    for window in starts.windows(3) {
        let apart = window[2] - window[0] + PERIOD.as_millis();
        assert!(apart >= 30_000, "{starts:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn l8_a_paused_set_updates_nothing_and_still_repairs() {
    let world = World::running(3, &json!({})).await;
    let before = world.uids().await;
    world
        .patch_set(&json!({ "spec": { "paused": true } }))
        .await;
    world.patch_set(&image("web:2")).await;
    seconds(60).await;
    assert_eq!(world.uids().await, before);
    assert!(world.pods().await.iter().all(|pod| pod.image == "web:1"));
    assert_eq!(world.condition("Paused").await, "True Paused");
    assert_eq!(world.condition("Progressing").await, "False RolloutPaused");
    let name = before.keys().next().unwrap();
    world
        .delete(&format!("{}/{name}", crate::world::PODS), &json!({}))
        .await;
    world
        .wait_until("it is replaced", 30, async |world: &World| {
            let pods = world.pods().await;
            pods.len() == 3 && pods.iter().all(|pod| pod.is_ready)
        })
        .await;
    world
        .patch_set(&json!({ "spec": { "paused": false } }))
        .await;
    world.settle(3).await;
}

#[tokio::test(start_paused = true)]
async fn c4_a_set_that_never_updates_gives_the_template_to_new_pods_only() {
    let world = World::running(2, &json!({ "updateMode": "Never" })).await;
    world.patch_set(&image("web:2")).await;
    world.scale(3).await;
    world
        .wait_until("three pods are ready", 30, async |world: &World| {
            world.status().await["availableReplicas"] == 3
        })
        .await;
    seconds(60).await;
    let pods = world.pods().await;
    let mut images: Vec<_> = pods.iter().map(|pod| &*pod.image).collect();
    images.sort_unstable();
    assert_eq!(images, ["web:1", "web:1", "web:2"]);
    assert_eq!(
        world.condition("Progressing").await,
        "False UpdatesDisabled"
    );
    assert_eq!(world.condition("Ready").await, "True AllReplicasAvailable");
}
