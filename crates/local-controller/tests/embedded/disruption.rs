//! Evictions through the API server, as those of `kubectl drain`, share the budget of the set (L20).

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::world::{BUDGET, BUDGETS, PODS, World, image, seconds, set, text};

/// `kubectl drain`: a cordon, and evictions that are tried again every 5 s. At least `least` pods stay available.
async fn drain(world: &World, node: &str, least: usize, limit: u64) {
    let cordon = json!({ "spec": { "unschedulable": true } });
    world.patch(&format!("/api/v1/nodes/{node}"), &cordon).await;
    let started = Instant::now();
    world
        .wait_until("the node is drained", limit, async |world: &World| {
            let pods = world.pods().await;
            let ready = pods
                .iter()
                .filter(|pod| pod.is_ready && !pod.is_terminating);
            assert!(ready.count() >= least, "{}", world.describe().await);
            let on_node = pods.iter().filter(|pod| pod.node == node);
            let on_node: Vec<_> = on_node.collect();
            if started.elapsed().as_secs().is_multiple_of(5) {
                for pod in on_node.iter().filter(|pod| !pod.is_terminating) {
                    let code = world.evict(&pod.name).await;
                    assert!(matches!(code, 201 | 404 | 429), "{code}");
                }
            }
            on_node.is_empty()
        })
        .await;
}

/// `minAvailable` of the set's PodDisruptionBudget, once all of the budget is lent.
async fn lends(world: &World, min_available: usize) {
    world
        .wait_until("the budget is lent", 60, async |world: &World| {
            let budget = world.find(BUDGET).await;
            budget.is_some_and(|budget| budget["spec"]["minAvailable"] == min_available)
        })
        .await;
}

fn strategy(max_unavailable: usize) -> Value {
    json!({ "deploymentStrategy": { "maxUnavailable": max_unavailable } })
}

#[tokio::test(start_paused = true)]
async fn l20_a_drain_keeps_to_the_budget() {
    let world = World::running(8, &strategy(2)).await;
    lends(&world, 6).await;
    let node = world.pods().await[0].node.clone();
    drain(&world, &node, 6, 120).await;
    world.settle(8).await;
    lends(&world, 6).await;
}

/// Evictions go before updates, and both share the budget (L19, L20).
#[tokio::test(start_paused = true)]
async fn l19_l20_a_drain_during_an_update_keeps_to_the_budget() {
    for max_unavailable in [1, 3] {
        let mut template = set(&json!({}))["spec"]["template"].clone();
        template["metadata"]["annotations"] = json!({ "sim-cluster.dev/start-seconds": "10" });
        let mut spec = strategy(max_unavailable);
        spec["template"] = template;
        let world = World::running(9, &spec).await;
        lends(&world, 9 - max_unavailable).await;
        world.writes();
        world.patch_set(&image("web:2")).await;
        seconds(3).await;
        let node = world.pods().await[0].node.clone();
        drain(&world, &node, 9 - max_unavailable, 240).await;
        world.settle(9).await;
        lends(&world, 9 - max_unavailable).await;
        let writes = world.writes();
        let budgets = writes
            .iter()
            .filter(|write| write.contains("poddisruptionbudgets"));
        assert!(budgets.count() <= 8, "{writes:#?}");
    }
}

/// A set at rest writes nothing, and the number of its pods is followed.
#[tokio::test(start_paused = true)]
async fn l20_the_disruption_budget_follows_the_set() {
    let mut world = World::running(4, &strategy(1)).await;
    lends(&world, 3).await;
    let budget = world.get(BUDGET).await;
    let owner = &budget["metadata"]["ownerReferences"][0];
    assert_eq!(owner["kind"], "LocalReplicaSet");
    let selector = json!({ "matchLabels": { "app": "web" } });
    assert_eq!(budget["spec"]["selector"], selector);
    assert_eq!(budget["spec"]["unhealthyPodEvictionPolicy"], "AlwaysAllow");
    seconds(5).await;
    world.writes();
    seconds(600).await;
    world.stop_controller().await;
    world.start_controller();
    seconds(60).await;
    assert_eq!(world.writes(), [""; 0]);
    for (replicas, least) in [(7, 6), (2, 1), (4, 3)] {
        world.scale(replicas).await;
        world.settle(replicas).await;
        lends(&world, least).await;
    }
    world.patch_set(&json!({ "spec": strategy(3) })).await;
    lends(&world, 1).await;
    world.patch_set(&json!({ "spec": strategy(2) })).await;
    lends(&world, 2).await;
    world
        .wait_until("the status says so", 10, async |world: &World| {
            world.status().await["evictable"] == 2
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn l14_l20_without_a_budget_no_available_pod_is_evicted() {
    let world = World::running(2, &strategy(0)).await;
    lends(&world, 2).await;
    seconds(5).await;
    let pod = world.pods().await[0].name.clone();
    assert_eq!(world.evict(&pod).await, 429);
}

/// Two that match a pod fail each of its evictions.
#[tokio::test(start_paused = true)]
async fn l20_none_beside_a_users_own() {
    let world = World::running(3, &strategy(1)).await;
    lends(&world, 2).await;
    let others = |name: &str, app: &str| {
        let selector = json!({ "matchLabels": { "app": app } });
        json!({ "metadata": { "name": name }, "spec": { "minAvailable": 1, "selector": selector } })
    };
    world.create(BUDGETS, &others("unrelated", "x")).await;
    world.create(BUDGETS, &others("mine", "web")).await;
    let type_ = "DisruptionBudgetOutdated";
    world
        .wait_until("ours is gone", 60, async |world: &World| {
            world.find(BUDGET).await.is_none() && world.condition(type_).await.starts_with("True")
        })
        .await;
    assert!(world.message(type_).await.contains("mine"));
    world.patch_set(&image("web:2")).await;
    world.settle(3).await;
    world.delete(&format!("{BUDGETS}/mine"), &json!({})).await;
    lends(&world, 2).await;
    world
        .wait_until("nothing is reported", 10, async |world: &World| {
            world.condition(type_).await.is_empty()
        })
        .await;
}

/// What somebody else has changed or deleted is restored; what is not allowed is reported, and holds nobody up.
#[tokio::test(start_paused = true)]
async fn l20_it_is_restored() {
    let world = World::running(3, &strategy(1)).await;
    lends(&world, 2).await;
    world
        .patch(BUDGET, &json!({ "spec": { "minAvailable": 0 } }))
        .await;
    lends(&world, 2).await;
    world.delete(BUDGET, &json!({})).await;
    lends(&world, 2).await;
    let pods = world.pods().await;
    let path = format!("{PODS}/{}", pods[0].name);
    let pod = world.get(&path).await;
    assert!(text(&pod["metadata"]["deletionTimestamp"]).is_empty());
}

/// What an AvailabilitySet of the host lets be unavailable limits evictions and updates, and the status says that it was seen.
#[tokio::test(start_paused = true)]
async fn a1_a_limit_of_an_availability_set_holds_for_evictions_and_updates() {
    let world = World::running(4, &strategy(2)).await;
    lends(&world, 2).await;
    let limit = |limit: Value| {
        let limit = limit.as_str().map(str::to_owned);
        json!({ "metadata": { "annotations": { "availability.fedrs.dev/web": limit } } })
    };
    let nothing = json!(r#"{"maxUnavailable":0,"revision":7}"#);
    world.patch_set(&limit(nothing)).await;
    lends(&world, 4).await;
    world.patch_set(&image("web:2")).await;
    world
        .wait_until("the limit is seen", 60, async |world: &World| {
            let status = world.status().await;
            status["maxUnavailable"] == 0 && status["limits"][0]["revision"] == 7
        })
        .await;
    seconds(120).await;
    assert_eq!(world.status().await["updatedReplicas"], 0);
    let node = world.pods().await[0].name.clone();
    assert_eq!(world.evict(&node).await, 429);
    world.patch_set(&limit(Value::Null)).await;
    world.settle(4).await;
    assert_eq!(world.status().await["limits"], Value::Null);
    lends(&world, 2).await;
}
