//! Updates while responses are lost, watches stand still, the API server is busy, and controllers end and start (L14, L15): from
//! seeds, which a failure names.

use std::time::Duration;

use serde_json::json;
use sim_cluster::{RequestMatcher, Status, Verb};
use tokio::time::sleep;

use crate::world::{World, image, set};

const REPLICAS: usize = 8;
const BUDGET: usize = 3;

/// A small generator: the same seed gives the same run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

#[tokio::test(start_paused = true)]
async fn l14_l15_l22_no_fault_breaks_the_budget_and_the_set_converges() {
    // The last one: a patch without an answer, and a template that returns while the view is from before it.
    for seed in (0..12).chain([59]) {
        run(seed).await;
    }
}

async fn run(seed: u64) {
    let mut random = Random(seed);
    let mut strategy = json!({ "maxUnavailable": BUDGET, "resourceUpdates": "Resize" });
    // Half of the runs are limited by the budget alone.
    if seed.is_multiple_of(2) {
        strategy["deploySpeed"] = json!({ "updatePortion": 2, "minDelay": 10 });
    }
    let mut template = set(&json!({}))["spec"]["template"].clone();
    template["metadata"]["annotations"] = json!({ "sim-cluster.dev/start-seconds": "3" });
    let spec = json!({ "deploymentStrategy": strategy, "template": template });
    let mut world = World::running(REPLICAS, &spec).await;
    for step in 0..60 {
        change(&mut world, &mut random).await;
        for _ in 0..random.below(40) {
            sleep(Duration::from_millis(50)).await;
            let pods = world.pods().await;
            let ready = pods
                .iter()
                .filter(|pod| pod.is_ready && !pod.is_terminating)
                .count();
            assert!(
                ready >= REPLICAS - BUDGET,
                "seed {seed}, step {step}: {ready} ready\n{}",
                world.describe().await
            );
            let live = pods.iter().filter(|pod| !pod.is_terminating).count();
            assert!(
                live <= REPLICAS,
                "seed {seed}, step {step}: {live} pods\n{}",
                world.describe().await
            );
        }
    }
    world.cluster.faults().heal();
    world.settle(REPLICAS).await;
    sleep(Duration::from_secs(60)).await;
    world.writes();
    sleep(Duration::from_secs(600)).await;
    assert_eq!(world.writes(), [""; 0], "seed {seed}");
}

/// One change by the user, or one fault.
async fn change(world: &mut World, random: &mut Random) {
    let faults = world.cluster.faults().clone();
    let requests = || RequestMatcher::all();
    let times = 1 + u32::try_from(random.below(4)).unwrap();
    match random.below(13) {
        0 | 1 => {
            world
                .patch_set(&image(&format!("web:{}", random.below(4))))
                .await;
        }
        2 => {
            let container =
                json!({ "name": "main", "image": "web:1", "args": [random.below(3).to_string()] });
            let spec = json!({ "containers": [container] });
            world
                .patch_set(&json!({ "spec": { "template": { "spec": spec } } }))
                .await;
        }
        3 => faults.lose_responses(requests().verb(Verb::Create).resource("pods"), times),
        4 => faults.lose_responses(requests().verb(Verb::Delete).resource("pods"), times),
        5 => faults.lose_responses(requests().verb(Verb::Patch).resource("pods"), times),
        6 => faults.lose_responses(
            requests().verb(Verb::Patch).resource("localreplicasets"),
            times,
        ),
        7 => {
            let busy = Status::new(503, "ServiceUnavailable", "the server is busy");
            faults.refuse(requests().resource("pods"), times, busy);
        }
        8 => faults.set_resource_stalled("pods", random.below(2) == 0),
        9 => faults.set_resource_stalled("localreplicasets", random.below(2) == 0),
        10 => faults.cut_watches(),
        11 => {
            let cpu = format!("{}00m", 1 + random.below(3));
            let resources = json!({ "requests": { "cpu": cpu } });
            let container = json!({ "name": "main", "image": "web:1", "resources": resources });
            let spec = json!({ "containers": [container] });
            world
                .patch_set(&json!({ "spec": { "template": { "spec": spec } } }))
                .await;
        }
        _ => {
            world.stop_controller().await;
            world.start_controller();
        }
    }
}
