//! A rack is emptied: how long that takes beside what budgets and the time between migrations allow at best.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use sim_cluster::{NodeSpec, Settings};

use crate::{
    migrations::{POLICIES, REQUESTS, policy},
    world::{SETS, World, seconds, set, text},
};

const SERVICES: usize = 30;
/// Of each service.
const PODS: usize = 4;
const NODES: usize = 4;
/// `minSecondsBetween.hardware` (M14).
const BETWEEN: u64 = 600;
/// Until the containers of a pod run.
const START: u64 = 20;

/// A node for 30 pods.
fn node(name: &str) -> NodeSpec {
    NodeSpec::new(name).pods(30)
}

/// The services, on the nodes of the rack `old`. Only the rack `new` has room for more.
async fn full_rack() -> World {
    let mut world = World::without_controller(Settings::default()).await;
    let others = world.get("/api/v1/nodes").await;
    for node in others["items"].as_array().unwrap() {
        let path = format!("/api/v1/nodes/{}", text(&node["metadata"]["name"]));
        let cordon = json!({ "spec": { "unschedulable": true } });
        world.patch(&path, &cordon).await;
    }
    for index in 0..NODES {
        world
            .cluster
            .add_node(&node(&format!("old-{index}")))
            .unwrap();
    }
    world.start_controller();
    let between = json!({ "minSecondsBetween": { "hardware": BETWEEN } });
    world.create(POLICIES, &policy(&between)).await;
    for index in 0..SERVICES {
        let name = format!("service-{index}");
        let labels = json!({ "app": name });
        let mut object = set(&json!({ "replicas": PODS, "selector": { "matchLabels": labels } }));
        object["metadata"]["name"] = name.clone().into();
        let template = &mut object["spec"]["template"]["metadata"];
        template["labels"] = labels;
        template["annotations"] = json!({ "sim-cluster.dev/start-seconds": START.to_string() });
        world.create(SETS, &object).await;
    }
    seconds(300).await;
    let pods = world.pods().await;
    let placed = pods
        .iter()
        .filter(|pod| pod.is_ready && pod.node.starts_with("old-"));
    assert_eq!(placed.count(), SERVICES * PODS);
    for index in 0..NODES {
        world
            .cluster
            .add_node(&node(&format!("new-{index}")))
            .unwrap();
    }
    world
}

/// When the last of the requests ended.
fn ended(requests: &[Value]) -> Timestamp {
    let ends = requests.iter().map(|request| {
        let last = request["status"]["history"]
            .as_array()
            .unwrap()
            .last()
            .unwrap();
        assert_eq!(last["phase"], "Done", "{request:#}");
        text(&last["at"]).parse::<Timestamp>().unwrap()
    });
    ends.max().unwrap()
}

/// One pod of a service after the other: the last one begins when three times between two migrations are over.
#[tokio::test(start_paused = true)]
async fn m14_a_rack_is_emptied_in_the_time_that_policies_allow() {
    let world = full_rack().await;
    world.writes();
    let begin = world.cluster.clock().now();
    let leave = json!({ "metadata": { "labels": { "fedrs.dev/evict": "true" } }, "spec": { "unschedulable": true } });
    for index in 0..NODES {
        world
            .patch(&format!("/api/v1/nodes/old-{index}"), &leave)
            .await;
    }
    let bound = Duration::from_secs(BETWEEN * (PODS as u64 - 1) + START);
    tokio::time::sleep(bound.mul_f64(1.2)).await;
    let requests = world.get(REQUESTS).await;
    let requests = requests["items"].as_array().unwrap();
    assert_eq!(requests.len(), SERVICES * PODS);
    let took = ended(requests).duration_since(begin).unsigned_abs();
    let ratio = took.as_secs_f64() / bound.as_secs_f64();
    let writes = world.writes();
    let statuses = writes
        .iter()
        .filter(|write| write.contains("/migrationrequests/"));
    let writes = statuses.count() / requests.len();
    println!("emptied after {took:?}, {ratio:.3} times what is possible");
    assert!(ratio < 1.2, "{took:?}");
    assert!(writes <= 8, "{writes} statuses of each request");
    let pods = world.pods().await;
    assert!(
        pods.iter()
            .all(|pod| pod.node.starts_with("new-") && pod.is_ready)
    );
}
