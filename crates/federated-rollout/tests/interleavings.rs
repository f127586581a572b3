//! Any interleaving of faults, edits, moves and steps (L6, L8, L10, L14, L15).

mod model;

use model::{
    Fate, Op, Setup, World,
    cluster::{REVISIONS, Reach},
};
use proptest::prelude::*;

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![4 => Just(Fate::Done), 1 => Just(Fate::Lost), 2 => Just(Fate::Late)]
}

fn setup() -> impl Strategy<Value = Setup> {
    (
        prop::collection::vec(0..6_u64, 1..=4),
        0..4_u64,
        0..3_u64,
        prop::collection::vec(0..3_usize, 4),
        any::<bool>(),
        prop_oneof![Just(0), Just(45)],
        any::<bool>(),
        prop::option::of(1..3_usize),
    )
        .prop_map(
            |(replicas, unavailable, surge, steps, has_steps, soak, approval, max_concurrent)| {
                Setup {
                    replicas,
                    unavailable,
                    surge,
                    portion: None,
                    steps: if has_steps { steps } else { Vec::new() },
                    soak,
                    approval,
                    max_concurrent,
                    is_local: false,
                }
            },
        )
}

/// Faults and edits that a rollout meets, apart from the loss of a member and scaling.
fn any_op() -> impl Strategy<Value = Op> {
    let cluster = 0..4_usize;
    let flag = prop_oneof![Just(true), Just(false)];
    prop_oneof![
        20 => (fate(), fate()).prop_map(|(publish, write)| Op::Step { publish, write }),
        6 => (0..8_usize).prop_map(Op::Deliver),
        16 => cluster.clone().prop_map(Op::Sync),
        12 => cluster.clone().prop_map(Op::Report),
        12 => (cluster.clone(), 0..8_usize).prop_map(|(cluster, pod)| Op::Available(cluster, pod)),
        2 => (cluster.clone(), 0..8_usize).prop_map(|(cluster, pod)| Op::Break(cluster, pod)),
        2 => cluster.clone().prop_map(|cluster| Op::Reach(cluster, Reach::Unreachable)),
        3 => cluster.clone().prop_map(|cluster| Op::Reach(cluster, Reach::Reachable)),
        2 => Just(Op::Restart),
        1 => (cluster.clone(), flag.clone()).prop_map(|(cluster, cordoned)| Op::Cordon(cluster, cordoned)),
        1 => (cluster, flag.clone()).prop_map(|(cluster, waits)| Op::WithoutNode(cluster, waits)),
        4 => (0..REVISIONS.len() - 1).prop_map(Op::Target),
        1 => flag.prop_map(Op::Pause),
        2 => (0..2_usize).prop_map(Op::Approve),
        1 => (0..4_u64, 0..3_u64).prop_map(|(unavailable, surge)| Op::Budget(unavailable, surge)),
        6 => (1..60_i64).prop_map(Op::Wait),
        4 => Just(Op::Round),
    ]
}

/// Those, losses and moves.
fn any_op_and_move() -> impl Strategy<Value = Op> {
    prop_oneof![
        20 => any_op(),
        1 => (0..4_usize).prop_map(|cluster| Op::Reach(cluster, Reach::Lost)),
        1 => (0..16_u64).prop_map(Op::Replicas),
        4 => (0..4_usize, any::<bool>()).prop_map(|(cluster, up)| Op::Move(cluster, up)),
    ]
}

/// Those, and evictions, in members with LocalReplicaSets.
fn any_local_op() -> impl Strategy<Value = Op> {
    prop_oneof![
        20 => any_op(),
        2 => (0..4_usize, 0..8_usize).prop_map(|(cluster, pod)| Op::Evict(cluster, pod)),
    ]
}

fn any_local_op_and_move() -> impl Strategy<Value = Op> {
    prop_oneof![
        20 => any_op_and_move(),
        2 => (0..4_usize, 0..8_usize).prop_map(|(cluster, pod)| Op::Evict(cluster, pod)),
    ]
}

/// Without a surge (L5).
fn of_local_sets(setup: Setup) -> Setup {
    Setup {
        surge: 0,
        is_local: true,
        ..setup
    }
}

fn run(setup: Setup, ops: Vec<Op>) {
    let mut world = World::new(setup);
    for op in ops {
        world.apply(op);
    }
    world.finish();
}

/// At least 1,000 cases; `PROPTEST_CASES` may ask for more.
fn config() -> ProptestConfig {
    let default = ProptestConfig::default();
    ProptestConfig {
        cases: default.cases.max(1000),
        max_shrink_iters: 20_000,
        failure_persistence: None,
        ..default
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn l6_l10_l14_one_budget_whatever_happens(setup in setup(), ops in prop::collection::vec(any_op(), 0..120)) {
        run(setup, ops);
    }

    #[test]
    fn l6_l14_moves_and_losses_share_the_budget(setup in setup(), ops in prop::collection::vec(any_op_and_move(), 0..120)) {
        run(setup, ops);
    }

    #[test]
    fn l15_never_more_pods_start_in_a_time(setup in setup(), portion in 2..4_u64, ops in prop::collection::vec(any_op(), 0..120)) {
        run(Setup { portion: Some(portion), ..setup }, ops);
    }

    #[test]
    fn l14_l20_evictions_and_updates_in_all_members_share_the_budget(setup in setup(), ops in prop::collection::vec(any_local_op(), 0..120)) {
        run(of_local_sets(setup), ops);
    }

    #[test]
    fn l14_l20_moves_and_losses_share_the_budget_with_evictions(setup in setup(), ops in prop::collection::vec(any_local_op_and_move(), 0..120)) {
        run(of_local_sets(setup), ops);
    }

    #[test]
    fn l15_never_more_pods_start_in_a_time_in_local_sets(setup in setup(), portion in 2..4_u64, ops in prop::collection::vec(any_local_op(), 0..120)) {
        run(Setup { portion: Some(portion), ..of_local_sets(setup) }, ops);
    }
}
