//! What discovery answers while clusters and the service itself have random faults: never wrong because something is not known (D1 to
//! D3). `FEDRS_SEEDS=1000` tries more seeds, `FEDRS_SEED=17` one alone.

#![expect(clippy::unwrap_used, reason = "a test that can't go on ends")]

mod answers;
mod facts;
mod world;

use std::time::Duration;

use fedrs_tests::seeds;
use rand::{RngExt, SeedableRng, rngs::StdRng};
use sim_cluster::{RequestMatcher, Status, Verb};

use self::{answers::Answers, facts::Facts, world::World};

/// How often answers are compared with what has happened.
const TICK: Duration = Duration::from_millis(500);
/// How many ticks a story has, before its faults end.
const TICKS: u32 = 1_200;
/// When everything is known again, once faults have ended: a watch that was silent is noticed after 90 s.
const RECOVERY: Duration = Duration::from_secs(300);
/// For how long nothing changes then.
const QUIET: Duration = Duration::from_secs(600);

#[test]
fn d3_answers_are_never_wrong_because_something_is_not_known() {
    for seed in seeds(20) {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().start_paused(true).build().unwrap();
        runtime.block_on(story(seed));
    }
}

async fn story(seed: u64) {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut world = World::start().await;
    let (mut facts, mut answers) = (Facts::default(), Answers::new(seed));
    for tick in 0..TICKS {
        if rng.random_ratio(1, 8) {
            step(&mut rng, &mut world, &mut answers).await;
        }
        if tick == TICKS - 1 {
            world.heal();
        }
        tokio::time::sleep(TICK).await;
        facts.look(&world);
        answers.look(&world);
        facts.look(&world);
        answers.check(&facts);
    }
    tokio::time::sleep(RECOVERY).await;
    facts.look(&world);
    answers.are_current(&world, &facts);
    let versions = answers.versions();
    tokio::time::sleep(QUIET).await;
    facts.look(&world);
    answers.look(&world);
    assert_eq!(answers.versions(), versions, "seed {seed}: answers changed");
    world.stop().await;
}

/// One thing happens: to a pod, a cluster, or the service.
async fn step(rng: &mut StdRng, world: &mut World, answers: &mut Answers) {
    let cluster = rng.random_range(0..world.clusters().len());
    let faults = world.clusters()[cluster].faults().clone();
    let on = rng.random_ratio(1, 2);
    match rng.random_range(0..14) {
        0..3 => world.create_pod(rng).await,
        3 | 4 => world.delete_pod(rng).await,
        5 => world.fail_pod(rng).await,
        6 => faults.set_unreachable(on),
        7 => faults.set_hanging(on),
        8 => faults.set_latency(Duration::from_millis(rng.random_range(0..3_000))),
        9 => {
            let lists = RequestMatcher::all().verb(Verb::List);
            faults.refuse(lists, rng.random_range(1..5), Status::internal("a fault"));
        }
        10 => match rng.random_range(0..3) {
            0 => faults.cut_watches(),
            1 => faults.break_watches(),
            _ => faults.compact(),
        },
        11 => match rng.random_range(0..3) {
            0 => faults.set_watches_stalled(on),
            1 => faults.set_resource_stalled("pods", on),
            _ => faults.set_resource_stalled("nodes", on),
        },
        12 => faults.heal(),
        _ => {
            let is_crash = rng.random_ratio(1, 2);
            world.restart(is_crash).await;
            answers.restarted(is_crash);
        }
    }
}
