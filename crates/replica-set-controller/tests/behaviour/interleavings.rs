//! Any interleaving of steps, lost and late requests, restarts, edits and faults (L7, L13, L14, L15, L20, M14).

use std::time::Duration;

use federated_rollout::Speed;
use fedrs_api::{
    MigrationMethod, MigrationPolicySpec, MinSecondsBetween, Shutdown, ShutdownTimeout,
    ValidMigrationPolicy,
};
use proptest::prelude::*;
use replica_set_controller::Eviction;

use crate::model::{
    Fate, World,
    cluster::{Edit, ModelPod},
};

const MIN_DELAY: u64 = 30;
/// The time between two migrations.
const BETWEEN: i64 = 150;
/// The time that pods have to stop.
const SHUTDOWN_TIMEOUT: i32 = 100;

#[derive(Clone, Debug)]
enum Op {
    /// The controller steps. Its requests have these fates, again and again.
    Step {
        publish: Fate,
        fates: Vec<Fate>,
    },
    Deliver(usize),
    Sync,
    Restart,
    Wait(i64),
    /// All goes well for a step.
    Round,
    /// The next template.
    Target,
    Pause(bool),
    /// Another `drainSeconds`.
    DrainSeconds(u64),
    Evict(usize, Option<Eviction>),
    Replicas(usize),
    Edit(usize, Edit),
    /// Somebody evicts a pod through the API server.
    Drain(usize),
    /// The evictions that were granted are carried out.
    Deletions,
    /// The disruption controller sees the pods as they are.
    DisruptionWatch,
    /// It counts what it sees.
    DisruptionCount,
    /// The controller sees the PodDisruptionBudget as it is.
    SeeBudget,
    DeliverBudget(usize),
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![5 => Just(Fate::Done), 2 => Just(Fate::Lost), 2 => Just(Fate::Late)]
}

fn drain_seconds() -> impl Strategy<Value = u64> {
    prop_oneof![2 => Just(0), 1 => 1..10_u64, 1 => 20..150_u64]
}

/// What a set meets without faults of others.
fn any_op() -> impl Strategy<Value = Op> {
    let fates = prop::collection::vec(fate(), 1..6);
    let eviction = prop_oneof![
        2 => Just(Some(Eviction::Voluntary)),
        2 => Just(Some(Eviction::Involuntary)),
        1 => Just(None),
    ];
    prop_oneof![
        20 => (fate(), fates).prop_map(|(publish, fates)| Op::Step { publish, fates }),
        6 => (0..8_usize).prop_map(Op::Deliver),
        10 => Just(Op::Sync),
        2 => Just(Op::Restart),
        10 => (1..90_i64).prop_map(Op::Wait),
        10 => Just(Op::Round),
        4 => Just(Op::Target),
        2 => any::<bool>().prop_map(Op::Pause),
        1 => drain_seconds().prop_map(Op::DrainSeconds),
        2 => (0..12_usize, eviction).prop_map(|(pod, by)| Op::Evict(pod, by)),
        8 => (0..12_usize).prop_map(Op::Drain),
        2 => Just(Op::Deletions),
        6 => Just(Op::DisruptionWatch),
        8 => Just(Op::DisruptionCount),
        6 => Just(Op::SeeBudget),
        3 => (0..8_usize).prop_map(Op::DeliverBudget),
    ]
}

/// That, scaling, and what others do to pods.
fn any_op_and_fault() -> impl Strategy<Value = Op> {
    let edit = prop_oneof![
        3 => Just(Edit::Delete),
        2 => any::<bool>().prop_map(Edit::Break),
        1 => Just(Edit::Terminate),
        1 => Just(Edit::Orphan),
        1 => Just(Edit::Relabel),
    ];
    prop_oneof![
        20 => any_op(),
        3 => (0..10_usize).prop_map(Op::Replicas),
        4 => (0..12_usize, edit).prop_map(|(pod, edit)| Op::Edit(pod, edit)),
    ]
}

/// Evictions of others while updates begin, and views that are old.
fn any_eviction() -> impl Strategy<Value = Op> {
    let all_done = || Op::Step {
        publish: Fate::Done,
        fates: vec![Fate::Done],
    };
    let fates = prop::collection::vec(fate(), 1..3);
    prop_oneof![
        12 => Just(all_done()),
        4 => fates.prop_map(|fates| Op::Step { publish: Fate::Done, fates }),
        8 => (0..4_usize).prop_map(Op::Drain),
        4 => Just(Op::Deletions),
        4 => Just(Op::DisruptionWatch),
        6 => Just(Op::DisruptionCount),
        8 => Just(Op::SeeBudget),
        3 => Just(Op::Sync),
        2 => Just(Op::Wait(61)),
        2 => Just(Op::Target),
        2 => (0..4_usize).prop_map(Op::DeliverBudget),
        1 => Just(Op::Restart),
    ]
}

fn apply(world: &mut World, op: Op) {
    match op {
        Op::Step { publish, fates } => {
            let fate = |index: usize| fates[index % fates.len()];
            world.step(publish, fate);
        }
        Op::Deliver(index) => world.deliver(index),
        Op::Sync => world.sync(),
        Op::Restart => world.restart(),
        Op::Wait(seconds) => world.wait(seconds),
        Op::Round => _ = world.round(),
        Op::Target => world.target += 1,
        Op::Pause(paused) => world.paused = paused,
        Op::DrainSeconds(seconds) => world.drain = seconds,
        Op::Evict(pod, by) => world.cluster.edit(pod, Edit::Evict(by)),
        Op::Replicas(replicas) => world.replicas = replicas,
        Op::Edit(pod, edit) => world.cluster.edit(pod, edit),
        Op::Drain(pod) => world.evictions.request(&mut world.cluster, pod),
        Op::Deletions => world.evictions.delete(&mut world.cluster),
        Op::DisruptionWatch => world.evictions.watch(&world.cluster),
        Op::DisruptionCount => world.evictions.count(),
        Op::SeeBudget => world.see_budget(),
        Op::DeliverBudget(index) => world.deliver_budget(index),
    }
}

/// No more than the portion began within any delay.
fn check_speed(world: &World) {
    let Some(speed) = world.speed else { return };
    let portion = usize::try_from(speed.portion).expect("it is small");
    let starts = &world.cluster.starts;
    for (first, last) in starts.iter().zip(starts.iter().skip(portion)) {
        let delay = i64::try_from(MIN_DELAY).expect("it is small");
        assert!(last - first >= delay, "{starts:?}");
    }
}

/// M14: however often the controller starts again.
fn check_migrations(world: &World) {
    let migrations = &world.migrations;
    for (first, second) in migrations.iter().zip(migrations.iter().skip(1)) {
        assert!(second - first >= BETWEEN, "{migrations:?}");
    }
}

/// When all goes well again, all pods are available with the current template, and nothing is left to do.
fn check_end(world: &mut World) {
    world.cluster.heal();
    world.paused = false;
    while world.target % 3 == 2 {
        world.target += 1;
    }
    world.max_unavailable = world.max_unavailable.max(1);
    world.converge();
    let pods = &world.cluster.pods;
    assert_eq!(pods.len(), world.replicas, "{pods:#?}");
    assert_eq!(world.cluster.available(), world.replicas, "{pods:#?}");
    let is_current = |revision| revision == Some(world.target);
    assert!(pods.iter().all(|pod| is_current(pod.revision)), "{pods:#?}");
    assert!(world.record.updates.is_empty() && world.record.evictions.is_empty());
    world.with_plan(|plan| {
        assert_eq!(plan.waits, []);
        assert_eq!(plan.account.in_use, 0);
        assert_eq!(plan.record, world.record, "it is written without a change");
    });
    let lends = world.evictions.budget.as_ref();
    let lends = lends.map(|budget| world.replicas.saturating_sub(budget.min_available));
    let budget = usize::try_from(world.max_unavailable).expect("it is small");
    if world.replicas > 0 {
        assert_eq!(lends, Some(budget.min(world.replicas)), "all is lent");
    }
    check_speed(world);
    check_migrations(world);
}

fn policy(on_timeout: Option<ShutdownTimeout>, method: MigrationMethod) -> ValidMigrationPolicy {
    let seconds = i32::try_from(BETWEEN).expect("it is small");
    let min_seconds_between = MinSecondsBetween {
        hardware: seconds,
        compaction: seconds,
    };
    let spec = MigrationPolicySpec {
        min_seconds_between,
        shutdown: on_timeout.map(|on_timeout| Shutdown {
            timeout_seconds: SHUTDOWN_TIMEOUT,
            on_timeout,
            ..Shutdown::default()
        }),
        method,
        ..MigrationPolicySpec::default()
    };
    ValidMigrationPolicy::check(&spec).expect("it is valid")
}

fn any_policy() -> impl Strategy<Value = Option<ValidMigrationPolicy>> {
    let on_timeout = prop::option::of(prop::sample::select(ShutdownTimeout::ALL));
    let method = prop::sample::select(&[MigrationMethod::Move, MigrationMethod::Copy][..]);
    prop::option::of(
        (on_timeout, method).prop_map(|(on_timeout, method)| policy(on_timeout, method)),
    )
}

/// What becomes of pods and of their nodes.
fn any_loss() -> impl Strategy<Value = Op> {
    let edit = prop_oneof![
        2 => Just(Edit::Cut),
        1 => Just(Edit::Destroy),
        2 => Just(Edit::Delete),
        1 => any::<bool>().prop_map(Edit::Break),
    ];
    prop_oneof![
        20 => any_op(),
        6 => (0..12_usize, edit).prop_map(|(pod, edit)| Op::Edit(pod, edit)),
        2 => Just(Op::Wait(2000)),
    ]
}

/// M11: no pod has the name of one whose containers run on, and under `HandsUp` nothing takes its place.
fn check_phantoms(world: &World, on_timeout: ShutdownTimeout) {
    let (pods, phantoms) = (&world.cluster.pods, &world.cluster.phantoms);
    let is_twin = |pod: &ModelPod| phantoms.contains(&pod.name);
    assert!(!pods.iter().any(is_twin), "{world:#?}");
    if on_timeout == ShutdownTimeout::HandsUp {
        assert!(phantoms.is_empty(), "{world:#?}");
        let running = pods.iter().filter(|pod| pod.is_live() || pod.is_held());
        assert!(running.count() <= world.replicas, "{world:#?}");
    }
}

fn speed(portion: u64) -> Speed {
    Speed {
        portion,
        min_delay: Duration::from_secs(MIN_DELAY),
    }
}

/// At least 500 cases; `PROPTEST_CASES` may ask for more.
fn config() -> ProptestConfig {
    let default = ProptestConfig::default();
    ProptestConfig {
        cases: default.cases.max(500),
        max_shrink_iters: 20_000,
        failure_persistence: None,
        ..default
    }
}

proptest! {
    #![proptest_config(config())]

    /// Whatever becomes of requests and records, and whatever templates come: only updates and evictions make pods unavailable here,
    /// and never more than the budget.
    #[test]
    fn l14_l20_never_more_than_the_budget_is_unavailable(
        replicas in 1..8_usize,
        budget in 0..4_u64,
        portion in prop::option::of(1..4_u64),
        drain in drain_seconds(),
        policy in any_policy(),
        ops in prop::collection::vec(any_op(), 0..100),
    ) {
        let mut world = World::settled(replicas, budget, portion.map(speed));
        world.drain = drain;
        world.adopt_policy(policy);
        let budget = usize::try_from(budget).expect("it is small");
        for op in ops {
            apply(&mut world, op);
            let available = world.cluster.available();
            prop_assert!(available + budget >= replicas, "{available} of {replicas}: {world:#?}");
        }
        check_end(&mut world);
    }

    /// The same with evictions of others at any moment, few pods and little else.
    #[test]
    fn l20_evictions_of_others_share_the_budget(
        replicas in 2..4_usize,
        budget in 1..3_u64,
        drain in drain_seconds(),
        ops in prop::collection::vec(any_eviction(), 0..60),
    ) {
        let mut world = World::settled(replicas, budget, None);
        world.drain = drain;
        let budget = usize::try_from(budget).expect("it is small");
        for op in ops {
            apply(&mut world, op);
            // No bad revision: its pods fail by themselves.
            world.target += u32::from(world.target % 3 == 2);
            let available = world.cluster.available();
            prop_assert!(available + budget >= replicas, "{available} of {replicas}: {world:#?}");
        }
        check_end(&mut world);
    }

    #[test]
    fn l7_l13_l15_it_converges_and_keeps_to_the_speed(
        replicas in 0..8_usize,
        budget in 0..4_u64,
        portion in prop::option::of(1..4_u64),
        drain in drain_seconds(),
        policy in any_policy(),
        ops in prop::collection::vec(any_op_and_fault(), 0..100),
    ) {
        let mut world = World::settled(replicas, budget, portion.map(speed));
        world.drain = drain;
        world.adopt_policy(policy);
        for op in ops {
            apply(&mut world, op);
            check_speed(&world);
        }
        check_end(&mut world);
    }

    #[test]
    fn m11_nothing_runs_beside_a_pod_of_its_name_that_may_run_still(
        replicas in 1..6_usize,
        budget in 0..4_u64,
        drain in drain_seconds(),
        on_timeout in prop::sample::select(vec![ShutdownTimeout::HandsUp, ShutdownTimeout::Replace]),
        ops in prop::collection::vec(any_loss(), 0..100),
    ) {
        let mut world = World::settled(replicas, budget, None);
        world.drain = drain;
        world.adopt_policy(Some(policy(Some(on_timeout), MigrationMethod::Move)));
        for op in ops {
            apply(&mut world, op);
            check_phantoms(&world, on_timeout);
        }
        check_end(&mut world);
    }
}
