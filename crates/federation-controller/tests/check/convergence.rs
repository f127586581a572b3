//! From a full cluster to a stable layout in a bounded number of steps and writes (F34), step by step.

use proptest::prelude::*;
use serde_json::json;

use crate::world::{World, at, even, frs_with};

/// Steps with writes until nothing changes any more, and their writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Cost {
    steps: usize,
    writes: usize,
}

const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

fn world(replicas: u32, clusters: usize, rebalance: bool, surge: u32) -> World {
    let spec = json!({
        "replicas": replicas,
        "placement": even(rebalance),
        "rescheduling": { "maxMoveSurge": surge },
    });
    let mut world = World::new(frs_with(spec), &NAMES[..clusters]);
    world.settle(1);
    world
}

/// Checks when something may have changed, until nothing has for five minutes.
fn settle(world: &mut World) -> Cost {
    let mut cost = Cost::default();
    let mut changed = world.now;
    while world.now < changed + 300 {
        world.now += 1;
        let decided = world.step();
        let writes = decided.actions.len();
        if writes > 0 {
            (cost.steps, cost.writes, changed) = (cost.steps + 1, cost.writes + writes, world.now);
        } else if let Some(next) = decided.next_check {
            world.now = world.now.max(next.as_second() - at(0).as_second() - 1);
        } else {
            break;
        }
        assert!(cost.steps < 100, "no end: {:?}", world.placed());
    }
    cost
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn f34_each_full_cluster_costs_two_steps_and_a_write_for_each_cluster_and_one_more(
        replicas in 1..60_u32,
        clusters in 2..6_usize,
        capacity in prop::collection::vec(0..30_u32, 5),
        full in 1..5_usize,
        rebalance: bool,
        surge in 1..20_u32,
    ) {
        let mut world = world(replicas, clusters, rebalance, surge);
        let full = full.min(clusters - 1);
        for (name, capacity) in NAMES.iter().zip(&capacity).take(full) {
            world.set_capacity(name, *capacity);
        }
        let cost = settle(&mut world);
        prop_assert_eq!(world.ready(), replicas, "the last cluster has capacity for all");
        prop_assert!(cost.steps <= 2 * full, "{cost:?}");
        prop_assert!(cost.writes <= (clusters + 1) * full, "{cost:?}");
    }

    #[test]
    fn f20_a_move_of_running_replicas_costs_two_steps_for_each_surge(
        replicas in 1..60_u32,
        clusters in 2..6_usize,
        surge in 1..20_u32,
    ) {
        let mut world = world(replicas, clusters, true, surge);
        let moved = world.placed()[0];
        world.members[0].draining = true;
        let cost = settle(&mut world);
        prop_assert_eq!(world.placed()[0], 0);
        let steps = 2 * moved.div_ceil(surge) as usize;
        prop_assert!(cost.steps <= steps, "{cost:?} for {moved} replicas");
    }
}
