//! One check over 3 and over 100 members: `cargo bench -p federation-controller` (aim: at most 5 µs and 120 µs).
//!
//! `settled` finds everything in place; in `moving` two of three clusters hold too many or too few; in `full` one cluster
//! has no capacity for all of its replicas, in `crowded` every tenth.

use divan::{Bencher, black_box};
use federation_controller::check::{Action, Outcome, Outcomes, SetChange, check};

#[allow(
    dead_code,
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "it is made for the tests"
)]
#[path = "../tests/check/world.rs"]
mod world;

use world::{World, at, even, frs, hold};

const MEMBERS: [u32; 2] = [3, 100];
/// Replicas for each member.
const EACH: u32 = 10;

fn main() {
    divan::main();
}

/// A set that is settled, also according to its previous status.
fn settled_world(count: u32) -> World {
    let names: Vec<_> = (0..count).map(|i| format!("cluster-{i:04}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let replicas = i32::try_from(count * EACH).expect("a few thousand");
    let mut world = World::new(frs(replicas, even(true)), &names);
    for member in &mut world.members {
        hold(member, EACH, EACH);
    }
    remembering(world)
}

/// The set in the middle of a move: every third member has too many, and the next one too few.
fn moving_world(count: u32) -> World {
    let mut world = settled_world(count);
    for (i, member) in world.members.iter_mut().enumerate() {
        let replicas = [EACH + EACH / 2, EACH / 2, EACH][i % 3];
        hold(member, replicas, replicas);
    }
    remembering(world)
}

/// One in `of` members has pods that wait for a node, for longer than the limit.
fn full_world(count: u32, of: usize) -> World {
    let mut world = settled_world(count);
    let names = world
        .members
        .iter()
        .step_by(of)
        .map(|member| member.name.clone());
    for name in names.collect::<Vec<_>>() {
        world.set_capacity(&name, EACH / 2);
    }
    world.now += 600;
    remembering(world)
}

/// Takes the result of a check as the previous status, as if its writes had been carried out without any effect so far.
fn remembering(mut world: World) -> World {
    let outcomes: Outcomes = world
        .members
        .iter()
        .map(|member| {
            let set = member
                .view
                .workload
                .clone()
                .expect("every member has a set");
            (member.name.clone(), Outcome::Written(set))
        })
        .collect();
    world.remember(&world.check(), &outcomes);
    world
}

#[divan::bench(args = MEMBERS)]
fn settled(bencher: Bencher<'_, '_>, count: u32) {
    let world = settled_world(count);
    assert!(world.check().actions.is_empty());
    run(bencher, &world);
}

#[divan::bench(args = MEMBERS)]
fn moving(bencher: Bencher<'_, '_>, count: u32) {
    let world = moving_world(count);
    let decided = world.check();
    let is_scale = |action: &Action| matches!(action.change, SetChange::Scale { .. });
    assert!(decided.moving && decided.actions.iter().any(is_scale));
    run(bencher, &world);
}

#[divan::bench(args = MEMBERS)]
fn full(bencher: Bencher<'_, '_>, count: u32) {
    run_full(bencher, &full_world(count, usize::MAX));
}

#[divan::bench(args = MEMBERS)]
fn crowded(bencher: Bencher<'_, '_>, count: u32) {
    run_full(bencher, &full_world(count, 10));
}

fn run_full(bencher: Bencher<'_, '_>, world: &World) {
    assert!(world.previous.clusters[0].capacity.is_some());
    run(bencher, world);
}

fn run(bencher: Bencher<'_, '_>, world: &World) {
    let (snapshot, now) = (world.snapshot(), at(world.now));
    bencher.bench_local(|| check(black_box(&snapshot), now));
}
