//! Migrations of pods of native ReplicaSets and Deployments (M1, M5, M14, M15), beside a LocalReplicaSet `web`.

use serde_json::{Value, json};

use crate::{
    migrations::{POLICIES, REQUESTS, phase, phases, policy, reaches, request, status},
    world::{BUDGETS, HISTORY, PODS, Pod, World, seconds, text},
};

pub(crate) const APPS: &str = "/apis/apps/v1/namespaces/shop";

/// A workload of three pods that take their time to start and to stop.
pub(crate) fn workload(kind: &str, name: &str) -> Value {
    let labels = json!({ "app": "native" });
    let annotations = json!({ "sim-cluster.dev/start-seconds": "20" });
    json!({
        "apiVersion": "apps/v1", "kind": kind,
        "metadata": { "name": name, "namespace": "shop", "labels": labels },
        "spec": {
            "replicas": 3,
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels, "annotations": annotations },
                "spec": { "containers": [{ "name": "main", "image": "native:1" }] },
            },
        },
    })
}

/// The ReplicaSet `web`, which has the name of the LocalReplicaSet, and all pods are available.
pub(crate) async fn replica_set() -> World {
    running("ReplicaSet", "web").await
}

pub(crate) async fn running(kind: &str, name: &str) -> World {
    let world = World::running(2, &json!({})).await;
    let plural = format!("{}s", kind.to_lowercase());
    world
        .create(&format!("{APPS}/{plural}"), &workload(kind, name))
        .await;
    all_available(&world).await;
    world
}

pub(crate) async fn all_available(world: &World) {
    world
        .wait_until("three pods are available", 300, async |world: &World| {
            let pods = pods(world).await;
            pods.len() == 3 && pods.iter().all(|pod| pod.is_ready && !pod.is_terminating)
        })
        .await;
}

/// The pods of the native workload.
pub(crate) async fn pods(world: &World) -> Vec<Pod> {
    let pods = world.pods().await.into_iter();
    pods.filter(|pod| pod.image.starts_with("native")).collect()
}

/// The evictions and deletions of pods that the controller has requested since this was asked for last.
fn removals(world: &World) -> Vec<String> {
    let writes = world.writes().into_iter();
    let pods = writes.filter(|write| write.contains("/pods/"));
    pods.collect()
}

fn at(status: &Value, phase: &str) -> i64 {
    let steps = status["history"].as_array().unwrap();
    let step = steps.iter().find(|step| step["phase"] == phase).unwrap();
    let at = text(&step["at"]);
    at.parse::<jiff::Timestamp>().unwrap().as_second()
}

/// A budget that allows no disruption.
pub(crate) async fn strict_budget(world: &World) {
    let budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": { "name": "strict", "namespace": "shop" },
        "spec": { "minAvailable": 3, "selector": { "matchLabels": { "app": "native" } } },
    });
    world.create(BUDGETS, &budget).await;
    world
        .wait_until("it counts", 30, async |world: &World| {
            let budget = world.get(&format!("{BUDGETS}/strict")).await;
            budget["status"]["currentHealthy"] == 3
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn m5_a_pod_is_evicted_and_the_request_tells_how() {
    for (kind, set) in [("ReplicaSet", "web"), ("Deployment", "web-")] {
        let world = running(kind, "web").await;
        let moved = pods(&world).await.remove(0);
        let node = format!("/api/v1/nodes/{}", moved.node);
        let cordon = json!({ "spec": { "unschedulable": true } });
        world.patch(&node, &cordon).await;
        world.writes();
        world.create(REQUESTS, &request("one", &moved.name)).await;
        reaches(&world, "one", "Done").await;
        all_available(&world).await;
        let after = pods(&world).await;
        assert!(after.iter().all(|pod| pod.node != moved.node), "{after:?}");
        let eviction = format!("POST {PODS}/{}/eviction 201", moved.name);
        assert_eq!(removals(&world), [eviction.clone(), eviction], "{kind}");
        let status = status(&world, "one").await;
        let expected = [
            "Requested",
            "WaitingForBudget",
            "Evicting",
            "Starting",
            "Done",
        ];
        assert_eq!(phases(&status), expected, "{status:#}");
        for (field, expected) in [("podUid", &moved.uid), ("node", &moved.node)] {
            assert_eq!(status[field], **expected, "{field}: {status:#}");
        }
        assert!(text(&status["replicaSet"]).starts_with(set), "{status:#}");
        let started = at(&status, "Done") - at(&status, "Starting");
        assert!(started >= 10, "not before it is available: {status:#}");
        // The LocalReplicaSet of the same name has nothing to do with it.
        let web = world.status().await;
        assert_eq!(web["availableReplicas"], 2);
    }
}

#[tokio::test(start_paused = true)]
async fn m5_a_budget_holds_it_up_and_m15_its_deadline_does_not() {
    let world = replica_set().await;
    strict_budget(&world).await;
    let before = pods(&world).await;
    world
        .create(REQUESTS, &request("one", &before[0].name))
        .await;
    let soon = world.cluster.clock().now() + std::time::Duration::from_secs(300);
    let mut forced = request("two", &before[1].name);
    forced["spec"]["deadline"] = json!(soon);
    world.create(REQUESTS, &forced).await;
    // Its deadline is the nearest.
    world
        .wait_until("the budget holds it up", 60, async |world: &World| {
            status(world, "two").await["reason"] == "Budget"
        })
        .await;
    let waiting = status(&world, "two").await;
    let message = text(&waiting["message"]);
    assert_eq!(
        message,
        "Cannot evict pod as it would violate the pod's disruption budget. The disruption budget strict needs 3 healthy pods and has \
         3 currently"
    );
    assert_eq!(waiting["phase"], "WaitingForBudget");
    let queued = status(&world, "one").await;
    assert_eq!(queued["reason"], "Queued");
    assert_eq!(
        queued["message"],
        "another pod of ReplicaSet web moves first"
    );
    world.writes();
    seconds(100).await;
    let asked = removals(&world);
    assert!((9..=11).contains(&asked.len()), "{asked:?}");
    assert_eq!(pods(&world).await, before);
    assert_eq!(status(&world, "two").await, waiting, "nothing changes");
    reaches(&world, "two", "Forced").await;
    all_available(&world).await;
    let after = pods(&world).await;
    assert!(!after.iter().any(|pod| pod.uid == before[1].uid));
    assert!(after.iter().any(|pod| pod.uid == before[0].uid));
    // The first one goes on to wait until the budget allows it.
    assert_eq!(phase(&world, "one").await, "WaitingForBudget");
    let loose = json!({ "spec": { "minAvailable": 2 } });
    world.patch(&format!("{BUDGETS}/strict"), &loose).await;
    reaches(&world, "one", "Done").await;
}

#[tokio::test(start_paused = true)]
async fn m14_one_pod_an_hour_also_across_restarts() {
    let mut world = running("Deployment", "web").await;
    let seldom = json!({ "minSecondsBetween": { "hardware": 10_000 } });
    world.create(POLICIES, &policy(&seldom)).await;
    let before = pods(&world).await;
    world
        .create(REQUESTS, &request("one", &before[0].name))
        .await;
    reaches(&world, "one", "Evicting").await;
    world
        .create(REQUESTS, &request("two", &before[1].name))
        .await;
    // In the middle of the first one.
    world.stop_controller().await;
    seconds(5).await;
    world.start_controller();
    reaches(&world, "one", "Done").await;
    let first = at(&status(&world, "one").await, "Evicting");
    world
        .wait_until("it waits for the time", 90, async |world: &World| {
            status(world, "two").await["reason"] == "TooSoon"
        })
        .await;
    let waiting = status(&world, "two").await;
    world.stop_controller().await;
    seconds(1000).await;
    world.start_controller();
    world.writes();
    // Longer than requests are kept: this one counts.
    seconds(HISTORY.as_secs()).await;
    assert_eq!(world.writes(), Vec::<String>::new());
    assert_eq!(status(&world, "two").await, waiting);
    seconds(2000).await;
    reaches(&world, "two", "Done").await;
    let since = at(&status(&world, "two").await, "Evicting") - first;
    assert!((10_000..10_070).contains(&since), "{since}");
}

#[tokio::test(start_paused = true)]
async fn m5_one_pod_moves_after_the_other() {
    let world = replica_set().await;
    let before = pods(&world).await;
    for (name, pod) in [("one", &before[0]), ("two", &before[1])] {
        world.create(REQUESTS, &request(name, &pod.name)).await;
    }
    let mut fewest = 3;
    while phase(&world, "two").await != "Done" {
        let pods = pods(&world).await;
        let ready = pods
            .iter()
            .filter(|pod| pod.is_ready && !pod.is_terminating);
        fewest = fewest.min(ready.count());
        seconds(1).await;
    }
    assert_eq!(phase(&world, "one").await, "Done");
    assert_eq!(fewest, 2);
}

#[tokio::test(start_paused = true)]
async fn m1_what_a_policy_asks_for_and_is_not_supported_is_refused() {
    let world = replica_set().await;
    world
        .create(POLICIES, &policy(&json!({ "method": "Copy" })))
        .await;
    let before = pods(&world).await;
    world
        .create(REQUESTS, &request("one", &before[0].name))
        .await;
    reaches(&world, "one", "Cancelled").await;
    let refused = status(&world, "one").await;
    assert_eq!(refused["reason"], "PolicyNotSupported");
    assert_eq!(
        refused["message"],
        "MigrationPolicy all: method: Copy is not supported for pods of ReplicaSets"
    );
    assert_eq!(pods(&world).await, before);
}

#[tokio::test(start_paused = true)]
async fn m1_a_rollout_holds_it_up_unless_it_is_involuntary_and_it_can_be_cancelled() {
    let world = running("Deployment", "web").await;
    let stuck = json!([{ "name": "main", "image": "native:2" }]);
    let annotations = json!({ "sim-cluster.dev/start-seconds": "100000" });
    let template =
        json!({ "metadata": { "annotations": annotations }, "spec": { "containers": stuck } });
    let rollout = json!({ "spec": { "template": template } });
    world
        .patch(&format!("{APPS}/deployments/web"), &rollout)
        .await;
    let before = pods(&world).await;
    let old: Vec<_> = before.iter().filter(|pod| pod.is_ready).collect();
    let one = request("one", &old[0].name);
    world.create(REQUESTS, &one).await;
    world
        .wait_until("the rollout holds it up", 60, async |world: &World| {
            status(world, "one").await["reason"] == "Rollout"
        })
        .await;
    assert_eq!(
        status(&world, "one").await["message"],
        "Deployment web is being updated"
    );
    let mut node = request("two", &old[1].name);
    node["spec"]["cause"] = "Node".into();
    world.create(REQUESTS, &node).await;
    world
        .wait_until("the other one moves", 60, async |world: &World| {
            !pods(world).await.iter().any(|pod| pod.uid == old[1].uid)
        })
        .await;
    let cancel = json!({ "spec": { "cancel": true } });
    world.patch(&format!("{REQUESTS}/one"), &cancel).await;
    reaches(&world, "one", "Cancelled").await;
    assert!(pods(&world).await.iter().any(|pod| pod.uid == old[0].uid));
}

/// A pod without a controller is not migrated.
#[tokio::test(start_paused = true)]
async fn m1_pods_of_nobody_are_not_migrated() {
    let world = World::running(2, &json!({})).await;
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "alone", "namespace": "shop" },
        "spec": { "containers": [{ "name": "main", "image": "alone:1" }] },
    });
    let pod = world.create(PODS, &pod).await;
    world.create(REQUESTS, &request("one", "alone")).await;
    reaches(&world, "one", "Cancelled").await;
    let now = world.get(&format!("{PODS}/alone")).await;
    assert_eq!(now["metadata"]["uid"], pod["metadata"]["uid"]);
    assert!(now["metadata"]["deletionTimestamp"].is_null());
}
