//! A member whose last probe failed, that has not answered a write yet, or whose silent watch is being reopened: it stays as
//! it is, and no other member gets or loses replicas because of that (F33, F39).

use std::collections::BTreeMap;

use cluster_informer::{Health, SyncState};
use federation_controller::check::{Check, SetChange};
use proptest::prelude::*;
use serde_json::json;

use crate::world::{World, at, desired, even, frs, hold};

/// The replicas of each member that a check changes.
fn changes(decided: &Check) -> BTreeMap<String, u32> {
    let changes = decided.actions.iter().map(|action| {
        let replicas = match action.change {
            SetChange::Create { replicas, .. } | SetChange::Overwrite { replicas, .. } => replicas,
            SetChange::Scale { to, .. } => to,
            SetChange::LabelPods { .. }
            | SetChange::DrainPods { .. }
            | SetChange::Rollout { .. } => {
                panic!("a world without adopted or draining pods and Deployments")
            }
        };
        (action.member.clone(), replicas)
    });
    changes.collect()
}

/// Why a member is on hold.
#[derive(Clone, Copy, Debug)]
enum Hold {
    Probe,
    Write,
    Silence,
}

/// `world`, in which the member is on hold.
fn on_hold(world: &World, held: usize, hold: Hold) -> World {
    let mut world = world.clone();
    let member = &mut world.members[held];
    match hold {
        Hold::Probe => {
            let message = "timed out".to_owned();
            let since = at(world.now);
            member.health = Health::Failing { since, message };
        }
        Hold::Write => member.write_pending = true,
        Hold::Silence => member.sync = SyncState::Unconfirmed,
    }
    world
}

#[test]
fn f39_nobody_gives_up_pending_replicas_for_a_write_that_is_not_answered() {
    let mut world = World::new(frs(12, even(true)), &["a", "b", "c"]);
    for (name, capacity) in [("a", 2), ("b", 4), ("c", 3)] {
        world.set_capacity(name, capacity);
    }
    world.step();
    for _ in 0..20 {
        world.now += 61;
        world.step();
    }
    let pending = world.placed()[0];
    // b may have more than it shows, and c can run more.
    world.previous.clusters[1].desired_replicas += 20;
    hold(&mut world.members[2], 2, 2);
    let decided = on_hold(&world, 1, Hold::Write).check();
    let a = changes(&decided).get("a").copied().unwrap_or(pending);
    assert!(a >= pending, "{:?}", decided.actions);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn f39_a_hold_of_one_member_takes_nothing_from_the_others(
        capacities in prop::collection::vec(0..30u32, 3..5),
        weights in prop::collection::vec(0..4u32, 4),
        replicas in (1..50i32, 1..50i32),
        steps in 0..6usize,
        held in 0..3usize,
        rebalance in any::<bool>(),
        hold in prop::sample::select(&[Hold::Probe, Hold::Write, Hold::Silence]),
    ) {
        let names = &["a", "b", "c", "d"][..capacities.len()];
        let mut world = World::new(frs(replicas.0, even(rebalance)), names);
        for (name, capacity) in names.iter().zip(&capacities) {
            world.set_capacity(name, *capacity);
        }
        let run = |world: &mut World, steps| {
            for _ in 0..steps {
                world.step();
                for (name, capacity) in names.iter().zip(&capacities) {
                    world.set_capacity(name, *capacity);
                }
                world.now += 61;
            }
        };
        run(&mut world, 12);
        let clusters: serde_json::Map<_, _> = names.iter().zip(&weights)
            .map(|(name, weight)| ((*name).to_owned(), json!({ "weight": weight })))
            .collect();
        world.frs = frs(replicas.1, json!({ "rebalance": rebalance, "clusters": clusters }));
        run(&mut world, steps);
        // What members show of their capacity now is learned; the hold comes after that.
        world.previous = world.check().status;
        let (free, kept) = (world.check(), on_hold(&world, held, hold).check());
        let (free_changes, changes) = (changes(&free), changes(&kept));
        prop_assert!(!changes.contains_key(names[held]));
        for (name, before) in names.iter().zip(world.placed()) {
            let next = changes.get(*name).copied().unwrap_or(before);
            let otherwise = free_changes.get(*name).copied().unwrap_or(before);
            prop_assert!(next >= before.min(otherwise), "{name}: {changes:?} instead of {free_changes:?}");
            let mut clusters = kept.status.clusters.iter();
            if let Some(cluster) = clusters.find(|cluster| cluster.name == **name) {
                let target = cluster.desired_replicas + cluster.internal.capacity_probes;
                let most = before.max(u32::try_from(target).unwrap());
                prop_assert!(next <= most, "{name}: {changes:?} beyond the target");
            }
        }
        prop_assert_eq!(desired(&kept), desired(&free));
    }
}
