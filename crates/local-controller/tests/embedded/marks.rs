//! Nodes that ask their pods of native ReplicaSets to leave, with or without a Maintenance (M1, M5, M15).

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use serde_json::{Value, json};
use sim_cluster::{NodeSpec, RequestMatcher, Status, Verb};

use crate::{
    migrations::{POLICIES, REQUESTS, policy, reaches, request, status},
    native::{APPS, all_available, pods, replica_set, running, strict_budget, workload},
    world::{PODS, Pod, World, seconds, text},
};

async fn patch_node(world: &World, node: &str, patch: &Value) {
    world.patch(&format!("/api/v1/nodes/{node}"), patch).await;
}

/// Cordons a node, and asks its pods to leave.
async fn mark(world: &World, node: &str) {
    let patch = json!({ "metadata": { "labels": { "fedrs.dev/evict": "Maintenance" } }, "spec": { "unschedulable": true } });
    patch_node(world, node, &patch).await;
}

async fn unmark(world: &World, node: &str) {
    let label = json!({ "metadata": { "labels": { "fedrs.dev/evict": null } } });
    patch_node(world, node, &label).await;
}

/// The deadline of a Maintenance, in so many seconds.
async fn set_deadline(world: &World, node: &str, seconds: u64) {
    let deadline = world.cluster.clock().now() + Duration::from_secs(seconds);
    let deadline = deadline.round(jiff::Unit::Second).unwrap();
    let mark = json!({ "name": "rack-7", "uid": "m", "deadline": deadline, "wasCordoned": false });
    let annotations = json!({ "fedrs.dev/maintenance": mark.to_string() });
    let patch = json!({ "metadata": { "annotations": annotations } });
    patch_node(world, node, &patch).await;
}

/// All MigrationRequests, in the order of their names.
async fn requests(world: &World) -> Vec<Value> {
    let list = world.get(REQUESTS).await;
    list["items"].as_array().unwrap().clone()
}

/// The requests for the pod with this uid.
async fn requests_for(world: &World, uid: &str) -> Vec<Value> {
    let mut requests = requests(world).await;
    requests.retain(|request| request["spec"]["podUid"] == uid);
    requests
}

/// The name of the only request, once there is one.
async fn only_request(world: &World) -> String {
    world
        .wait_until("there is a request", 30, async |world: &World| {
            !requests(world).await.is_empty()
        })
        .await;
    let requests = requests(world).await;
    assert_eq!(requests.len(), 1, "{requests:#?}");
    text(&requests[0]["metadata"]["name"])
}

/// The pods on a node.
fn on<'a>(pods: &'a [Pod], node: &str) -> Vec<&'a Pod> {
    pods.iter().filter(|pod| pod.node == node).collect()
}

/// Three pods of a ReplicaSet that are old enough, and the node of the first one, which has no other.
async fn settled() -> (World, String) {
    let world = replica_set().await;
    seconds(60).await;
    let pods = pods(&world).await;
    let node = pods[0].node.clone();
    assert_eq!(on(&pods, &node).len(), 1, "{pods:?}");
    (world, node)
}

#[tokio::test(start_paused = true)]
async fn m1_m15_a_marked_node_is_emptied_of_pods_of_replica_sets_and_of_no_others() {
    for kind in ["Deployment", "ReplicaSet"] {
        let world = running(kind, "web").await;
        seconds(60).await;
        let before = pods(&world).await;
        let node = before[0].node.clone();
        let alone = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "alone", "namespace": "shop" },
            "spec": { "nodeName": node, "containers": [{ "name": "main", "image": "alone:1" }] },
        });
        world.create(PODS, &alone).await;
        mark(&world, &node).await;
        world
            .wait_until("its pods have left", 120, async |world: &World| {
                on(&pods(world).await, &node).is_empty()
            })
            .await;
        all_available(&world).await;
        seconds(60).await;
        let requests = requests(&world).await;
        let leaving = on(&before, &node);
        assert_eq!(requests.len(), leaving.len(), "{requests:#?}");
        for pod in leaving {
            let of_pod = requests_for(&world, &pod.uid).await;
            assert_eq!(of_pod.len(), 1, "{requests:#?}");
            let expected = json!({
                "podName": pod.name, "podUid": pod.uid, "cause": "Maintenance",
                "reason": format!("node {node} has the label fedrs.dev/evict"),
            });
            assert_eq!(of_pod[0]["spec"], expected);
            assert_eq!(of_pod[0]["status"]["phase"], "Done");
            let owner = &of_pod[0]["metadata"]["ownerReferences"][0];
            assert_eq!(
                (text(&owner["kind"]), text(&owner["name"])),
                (kind.to_owned(), "web".to_owned())
            );
        }
        let now = world.get(&format!("{PODS}/alone")).await;
        assert!(now["metadata"]["deletionTimestamp"].is_null());
    }
}

#[tokio::test(start_paused = true)]
async fn m1_a_node_that_asks_no_more_cancels_what_has_not_begun_and_may_ask_again() {
    let (world, node) = settled().await;
    strict_budget(&world).await;
    mark(&world, &node).await;
    let name = only_request(&world).await;
    world
        .wait_until("the budget holds it up", 60, async |world: &World| {
            status(world, &name).await["reason"] == "Budget"
        })
        .await;
    unmark(&world, &node).await;
    reaches(&world, &name, "Cancelled").await;
    let message = status(&world, &name).await["message"].clone();
    assert_eq!(message, "its node does not ask for it any more");
    // A request of a person asks for itself.
    let pod = pods(&world).await.remove(0);
    world.create(REQUESTS, &request("own", &pod.name)).await;
    seconds(60).await;
    assert_eq!(status(&world, "own").await["phase"], "WaitingForBudget");
    mark(&world, &node).await;
    seconds(60).await;
    assert_eq!(requests(&world).await.len(), 2, "that one is enough");
    let cancel = json!({ "spec": { "cancel": true } });
    world.patch(&format!("{REQUESTS}/own"), &cancel).await;
    reaches(&world, "own", "Cancelled").await;
    world
        .wait_until("the node asks", 60, async |world: &World| {
            requests_for(world, &pod.uid).await.len() == 2
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn m1_a_request_of_a_mark_is_not_cancelled_while_the_mark_is_there() {
    let (world, node) = settled().await;
    strict_budget(&world).await;
    mark(&world, &node).await;
    let name = only_request(&world).await;
    let path = format!("{REQUESTS}/{name}");
    let cancel = json!({ "spec": { "cancel": true } });
    world.patch(&path, &cancel).await;
    seconds(120).await;
    assert_eq!(only_request(&world).await, name);
    let waits = status(&world, &name).await;
    assert_eq!(waits["phase"], "WaitingForBudget");
    let message = waits["message"].to_string();
    assert!(message.contains("spec.cancel has no effect"), "{message}");
    unmark(&world, &node).await;
    reaches(&world, &name, "Cancelled").await;
}

#[tokio::test(start_paused = true)]
async fn m15_a_policy_that_is_not_supported_keeps_a_pod_until_the_deadline_of_the_maintenance() {
    let (world, node) = settled().await;
    let before = pods(&world).await;
    world
        .create(POLICIES, &policy(&json!({ "method": "Copy" })))
        .await;
    set_deadline(&world, &node, 1000).await;
    mark(&world, &node).await;
    let name = only_request(&world).await;
    world
        .wait_until("it waits", 10, async |world: &World| {
            status(world, &name).await["reason"] == "PolicyNotSupported"
        })
        .await;
    let waiting = status(&world, &name).await;
    assert_eq!(waiting["phase"], "WaitingForBudget");
    assert_eq!(waiting["until"], waiting["deadline"]);
    let message = text(&waiting["message"]);
    assert!(
        message.starts_with("MigrationPolicy all: method: Copy is not supported"),
        "{message}"
    );
    world.writes();
    seconds(600).await;
    assert_eq!(world.writes(), Vec::<String>::new(), "nothing changes");
    assert_eq!(pods(&world).await, before);
    // The Maintenance needs the machine sooner.
    set_deadline(&world, &node, 100).await;
    seconds(90).await;
    assert_eq!(pods(&world).await, before);
    reaches(&world, &name, "Forced").await;
    all_available(&world).await;
    assert!(on(&pods(&world).await, &node).is_empty());
    assert_eq!(requests(&world).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn m1_it_goes_on_when_the_policy_changes() {
    let (world, node) = settled().await;
    world
        .create(POLICIES, &policy(&json!({ "method": "Manual" })))
        .await;
    mark(&world, &node).await;
    let name = only_request(&world).await;
    seconds(120).await;
    assert_eq!(status(&world, &name).await["reason"], "PolicyNotSupported");
    let moves = json!({ "spec": { "method": "Move" } });
    world.patch(&format!("{POLICIES}/all"), &moves).await;
    reaches(&world, &name, "Done").await;
    assert_eq!(requests(&world).await.len(), 1);
}

/// More pods than get requests in a round, while answers are lost, watches stand still and controllers end.
#[tokio::test(start_paused = true)]
async fn m5_each_of_many_pods_has_one_request_whatever_fails() {
    const REPLICAS: usize = 230;
    let mut world = World::running(2, &json!({})).await;
    let others = world.get("/api/v1/nodes").await;
    for node in others["items"].as_array().unwrap() {
        let cordon = json!({ "spec": { "unschedulable": true } });
        patch_node(&world, &text(&node["metadata"]["name"]), &cordon).await;
    }
    let full = NodeSpec::new("full").pods(300);
    world.cluster.add_node(&full).unwrap();
    let mut many = workload("ReplicaSet", "many");
    many["spec"]["replicas"] = REPLICAS.into();
    world.create(&format!("{APPS}/replicasets"), &many).await;
    world
        .wait_until("all run", 600, async |world: &World| {
            let pods = pods(world).await;
            pods.iter().filter(|pod| pod.is_ready).count() == REPLICAS
        })
        .await;
    seconds(60).await;
    mark(&world, "full").await;
    world.writes();
    seconds(11).await;
    let first = requests(&world).await.len();
    assert!((1..=100).contains(&first), "{first} requests at once");
    let created = || {
        RequestMatcher::all()
            .verb(Verb::Create)
            .resource("migrationrequests")
    };
    let busy = Status::new(503, "ServiceUnavailable", "the server is busy");
    world.cluster.faults().refuse(created(), 3, busy);
    world.cluster.faults().lose_responses(created(), 5);
    world
        .cluster
        .faults()
        .set_resource_stalled("migrationrequests", true);
    seconds(30).await;
    world.stop_controller().await;
    world.cluster.faults().heal();
    world.start_controller();
    seconds(60).await;
    let mut by_pod = BTreeMap::<String, usize>::new();
    for request in requests(&world).await {
        *by_pod.entry(text(&request["spec"]["podUid"])).or_default() += 1;
    }
    assert!(by_pod.values().all(|count| *count == 1), "{by_pod:?}");
    let asked: BTreeSet<_> = by_pod.into_keys().collect();
    let missing: Vec<_> = (pods(&world).await.into_iter())
        .filter(|pod| pod.node == "full" && !asked.contains(&pod.uid))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// A node that is not cordoned gets its pods back: these stay for a while.
#[tokio::test(start_paused = true)]
async fn l18_pods_that_come_back_are_not_moved_without_a_pause() {
    let world = World::running(2, &json!({})).await;
    let others = world.get("/api/v1/nodes").await;
    for node in others["items"].as_array().unwrap() {
        let cordon = json!({ "spec": { "unschedulable": true } });
        patch_node(&world, &text(&node["metadata"]["name"]), &cordon).await;
    }
    world.cluster.add_node(&NodeSpec::new("only")).unwrap();
    world
        .create(
            &format!("{APPS}/replicasets"),
            &workload("ReplicaSet", "many"),
        )
        .await;
    all_available(&world).await;
    seconds(60).await;
    let label = json!({ "metadata": { "labels": { "fedrs.dev/evict": "true" } } });
    patch_node(&world, "only", &label).await;
    seconds(1800).await;
    assert_eq!(requests(&world).await.len(), 3);
    seconds(3600).await;
    assert_eq!(requests(&world).await.len(), 6);
}

/// Such as by a quota of the namespace.
#[tokio::test(start_paused = true)]
async fn m1_requests_that_are_rejected_are_tried_again_after_longer_and_longer_pauses() {
    let (world, node) = settled().await;
    let created = RequestMatcher::all()
        .verb(Verb::Create)
        .resource("migrationrequests");
    let full = Status::new(403, "Forbidden", "exceeded quota");
    world.cluster.faults().refuse(created, 12, full);
    mark(&world, &node).await;
    // Twice as long as 12 rounds.
    seconds(240).await;
    assert!(requests(&world).await.is_empty());
    seconds(400).await;
    only_request(&world).await;
}
