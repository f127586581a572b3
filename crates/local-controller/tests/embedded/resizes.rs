//! CPU and memory of running pods (L12): what users see of a resize, and of one that does not work.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sim_cluster::{NodeSpec, RequestMatcher, Status, kinds};

use crate::world::{PODS, World, seconds, set, text};

/// A template whose container has this image and these requests. Memory restarts it.
fn template(image: &str, cpu: &str, memory: &str) -> Value {
    let policy = json!([{ "resourceName": "memory", "restartPolicy": "RestartContainer" }]);
    let requests = json!({ "cpu": cpu, "memory": memory });
    let container = json!({
        "name": "main", "image": image, "resizePolicy": policy, "resources": { "requests": requests },
    });
    let mut template = set(&json!({}))["spec"]["template"].clone();
    template["spec"]["containers"] = json!([container]);
    template
}

/// A set that asks for resizes, one pod at a time, of pods that request 100m of CPU.
async fn running(replicas: usize) -> World {
    let strategy = json!({ "maxUnavailable": 1, "resourceUpdates": "Resize" });
    let spec =
        json!({ "deploymentStrategy": strategy, "template": template("web:1", "100m", "1Mi") });
    let world = World::running(replicas, &spec).await;
    world.writes();
    world
}

fn resizes() -> RequestMatcher {
    RequestMatcher::all().resource("pods").subresource("resize")
}

async fn change(world: &World, template: Value) {
    world
        .patch_set(&json!({ "spec": { "template": template } }))
        .await;
}

/// Something of the status of each container, by pod.
fn of_containers(world: &World, of: impl Fn(&Value) -> String) -> BTreeMap<String, String> {
    let pods = world.cluster.api().list(&kinds::PODS, Some("shop"));
    let pairs = pods.iter().map(|pod| {
        let name = text(&pod["metadata"]["name"]);
        (name, of(&pod["status"]["containerStatuses"][0]))
    });
    pairs.collect()
}

fn cpu(status: &Value) -> String {
    text(&status["resources"]["requests"]["cpu"])
}

fn all_are(values: &BTreeMap<String, String>, expected: &str) -> bool {
    values.values().all(|value| value == expected)
}

/// The paths and codes of the writes of pods, without their names.
fn writes_of_pods(world: &World) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for write in world.writes() {
        if let Some((method, path)) = write.split_once(&format!(" {PODS}/")) {
            let rest = path.split_once(['/', ' ']).map_or("", |(_, rest)| rest);
            *counts.entry(format!("{method} {rest}")).or_default() += 1;
        }
    }
    counts
}

/// Two writes for each pod, no restart, and no pod that is not ready.
#[tokio::test(start_paused = true)]
async fn l12_cpu_is_changed_without_a_restart() {
    let world = running(3).await;
    let before = (
        world.uids().await,
        of_containers(&world, |status| status["containerID"].to_string()),
    );
    change(&world, template("web:1", "200m", "1Mi")).await;
    world
        .wait_until("it is updated", 60, async |world: &World| {
            let pods = world.pods().await;
            assert!(pods.iter().all(|pod| pod.is_ready), "{pods:?}");
            let status = world.status().await;
            let is_updated = status["updatedAvailableReplicas"] == 3;
            is_updated && status["observedGeneration"] == 2
        })
        .await;
    assert!(all_are(&of_containers(&world, cpu), "200m"));
    let ids = of_containers(&world, |status| status["containerID"].to_string());
    assert_eq!((world.uids().await, ids), before);
    let expected = [("PATCH 200", 3), ("PATCH resize 200", 3)];
    let expected = expected.map(|(write, count)| (write.to_owned(), count));
    assert_eq!(writes_of_pods(&world), expected.into());
}

/// The image and memory restart the container: behind the gate, and within the budget.
#[tokio::test(start_paused = true)]
async fn l12_l14_an_image_and_memory_are_changed_behind_the_gate() {
    let world = running(3).await;
    let before = world.uids().await;
    change(&world, template("web:2", "100m", "2Mi")).await;
    world
        .wait_until("it is updated", 120, async |world: &World| {
            let pods = world.pods().await;
            let ready = pods.iter().filter(|pod| pod.is_ready).count();
            assert!(ready >= 2, "{pods:?}");
            world.status().await["updatedAvailableReplicas"] == 3
                && world.status().await["observedGeneration"] == 2
        })
        .await;
    assert_eq!(world.uids().await, before);
    assert!(world.pods().await.iter().all(|pod| pod.image == "web:2"));
    let memory = of_containers(&world, |status| {
        text(&status["resources"]["requests"]["memory"])
    });
    assert!(all_are(&memory, "2Mi"), "{memory:?}");
    let ended = of_containers(&world, |status| status["restartCount"].to_string());
    assert!(!ended.values().any(|count| count == "0"), "{ended:?}");
}

/// The nodes are too small, but for a new one: pods are recreated there, one at a time.
#[tokio::test(start_paused = true)]
async fn l12_l14_an_infeasible_resize_recreates_the_pod() {
    let world = running(3).await;
    let node = NodeSpec::new("big").capacity("cpu", "1000").to_object();
    world.create("/api/v1/nodes", &node).await;
    let before = world.uids().await;
    change(&world, template("web:1", "200", "1Mi")).await;
    world
        .wait_until("it is updated", 300, async |world: &World| {
            let pods = world.pods().await;
            let ready = pods.iter().filter(|pod| pod.is_ready).count();
            assert!(ready >= 2, "{pods:?}");
            let status = world.status().await;
            status["updatedAvailableReplicas"] == 3 && status["observedGeneration"] == 2
        })
        .await;
    let after = world.uids().await;
    assert!(after.keys().eq(before.keys()), "{before:?} {after:?}");
    assert!(after.iter().all(|(name, uid)| before[name] != *uid));
    assert!(world.pods().await.iter().all(|pod| pod.node == "big"));
}

/// A pod whose node has no room now stays as it is, and says so, until there is.
#[tokio::test(start_paused = true)]
async fn l12_l14_a_deferred_resize_waits() {
    let world = running(2).await;
    let before = world.uids().await;
    let pods = world.pods().await;
    // It takes half of the node beside each pod.
    for pod in &pods {
        let requests = json!({ "requests": { "cpu": "16" } });
        let other = json!({
            "metadata": { "name": format!("other-{}", pod.node), "namespace": "shop" },
            "spec": {
                "nodeName": pod.node,
                "containers": [{ "name": "main", "image": "other", "resources": requests }],
            },
        });
        world.create(PODS, &other).await;
    }
    seconds(5).await;
    change(&world, template("web:1", "20", "1Mi")).await;
    seconds(900).await;
    let message = world.message("Stalled").await;
    assert!(message.contains("no room to resize web-"), "{message}");
    let found = world
        .pods()
        .await
        .into_iter()
        .filter(|pod| before.contains_key(&pod.name));
    assert!(found.clone().all(|pod| pod.is_ready));
    assert_eq!(world.status().await["unavailable"], 1, "the budget");
    for pod in &pods {
        world
            .delete(&format!("{PODS}/other-{}", pod.node), &json!({}))
            .await;
    }
    world.settle(2).await;
    assert_eq!(world.uids().await, before);
    assert!(all_are(&of_containers(&world, cpu), "20"));
}

/// API servers before Kubernetes 1.33, a role that lacks the permission, and what they find invalid: of the first two pods, and then
/// it asks no more.
#[tokio::test(start_paused = true)]
async fn l12_a_resize_that_is_rejected_recreates_the_pod() {
    for (code, reason, message) in [
        (
            404,
            "NotFound",
            "the server could not find the requested resource",
        ),
        (403, "Forbidden", "pods \"web\" is forbidden"),
        (422, "Invalid", "memory limits cannot be decreased"),
    ] {
        let world = running(4).await;
        let before = world.uids().await;
        let rejection = Status::new(code, reason, message);
        world
            .cluster
            .faults()
            .refuse(resizes(), u32::MAX, rejection);
        change(&world, template("web:1", "200m", "1Mi")).await;
        world.settle(4).await;
        let after = world.uids().await;
        assert!(after.keys().eq(before.keys()), "{before:?} {after:?}");
        assert!(after.iter().all(|(name, uid)| before[name] != *uid));
        assert!(all_are(&of_containers(&world, cpu), "200m"));
        assert_eq!(world.cluster.faults().counts().refused, 2, "{code}");
    }
}

/// A quota rejects the resize: a pod that was removed would not come back. It is tried again.
#[tokio::test(start_paused = true)]
async fn l12_a_quota_delays_a_resize() {
    let world = running(2).await;
    let before = world.uids().await;
    let quota = Status::new(
        403,
        "Forbidden",
        "pods \"web\" is forbidden: exceeded quota: cpu",
    );
    world.cluster.faults().refuse(resizes(), 3, quota);
    change(&world, template("web:1", "200m", "1Mi")).await;
    world.settle(2).await;
    assert_eq!(world.uids().await, before);
    assert!(all_are(&of_containers(&world, cpu), "200m"));
}

/// The controller ends between the patch of a pod and its resize.
#[tokio::test(start_paused = true)]
async fn l12_another_leader_completes_a_resize() {
    let mut world = running(2).await;
    let before = world.uids().await;
    let down = Status::new(503, "ServiceUnavailable", "the server is busy");
    world.cluster.faults().refuse(resizes(), 1, down);
    change(&world, template("web:1", "200m", "1Mi")).await;
    world
        .wait_until("the first resize fails", 30, async |world: &World| {
            world.cluster.faults().counts().refused == 1
        })
        .await;
    world.stop_controller().await;
    let paused = json!({ "spec": { "paused": true } });
    world.patch_set(&paused).await;
    world.start_controller();
    seconds(60).await;
    let done = of_containers(&world, cpu);
    let done = done.values().filter(|cpu| *cpu == "200m").count();
    assert_eq!(done, 1, "what has begun is completed, and no more begins");
    world
        .patch_set(&json!({ "spec": { "paused": false } }))
        .await;
    world.settle(2).await;
    assert_eq!(world.uids().await, before);
}
