//! Scenarios with the usual times, or of many rounds: minutes each.

use std::time::Duration;

use control_plane::ProxyMode;
use fedrs_tests::{even, frs, test_environment::TestEnvironment};
use jiff::Timestamp;
use tokio::time::Instant;

use crate::{
    N, power,
    processes::{favour, kill_while_moving},
    run_sets, seconds, wait_balanced, wait_elsewhere, wait_replaced,
};

/// The sets that run.
const SETS: usize = 30;
const FORWARD: ProxyMode = ProxyMode::Forward(Duration::ZERO);

pub(crate) async fn f33_with_the_usual_times_a_loss_of_power_costs_nothing(
    env: &mut TestEnvironment,
) {
    power::lose_power(env, 180, 90).await;
}

/// Up for 15 s, down for 80 s.
pub(crate) async fn f33_a_flapping_member_does_not_make_replicas_swing(env: &mut TestEnvironment) {
    run_sets(env, SETS).await;
    let running = env.watch_all().await;
    env.set_network("c", ProxyMode::Reset);
    wait_replaced(env, SETS, "c", 180).await;
    running.reset();
    for _ in 0..3 {
        env.set_network("c", FORWARD);
        seconds(15).await;
        env.set_network("c", ProxyMode::Reset);
        seconds(80).await;
        wait_replaced(env, SETS, "c", 1).await;
    }
    env.set_network("c", FORWARD);
    let returned = wait_balanced(env, SETS, 600).await;
    running.assert_never_below(N);
    running.assert_never_above(N + N / 3);
    eprintln!("balanced {returned:.1?} after the last return");
}

/// All connections stay open and silent.
pub(crate) async fn f39_a_silent_member_is_replaced_and_returns(env: &mut TestEnvironment) {
    run_sets(env, SETS).await;
    let running = env.watch_all().await;
    env.set_network("c", ProxyMode::Blackhole);
    let replaced = wait_replaced(env, SETS, "c", 180).await;
    env.set_network("c", FORWARD);
    let returned = wait_balanced(env, SETS, 180).await;
    running.assert_never_below(N);
    running.assert_never_above(N + N / 3);
    eprintln!("replaced after {replaced:.1?}, balanced {returned:.1?} after the return");
}

/// Each kind of partition begins while replicas move, and cuts off a member that loses or gains some.
pub(crate) async fn f39_no_kind_of_partition_costs_a_replica(env: &mut TestEnvironment) {
    const ALL: u64 = 60;
    const SHARE: u64 = ALL * 8 / 10;
    env.run(&frs("web", 60, &even(true))).await;
    let running = env.watch("web").await;
    for (mode, favoured, cut) in [
        (ProxyMode::Reset, "a", "b"),
        (ProxyMode::Blackhole, "b", "c"),
        (ProxyMode::BlackholeRequests, "c", "b"),
        (ProxyMode::BlackholeResponses, "a", "c"),
        (ProxyMode::BlackholeRequests, "b", "b"),
        (ProxyMode::BlackholeResponses, "c", "c"),
    ] {
        favour(env, favoured).await;
        seconds(1).await;
        env.set_network(cut, mode);
        let began = Instant::now();
        if favoured != cut {
            // Enough may run elsewhere for a moment of the move. Only of a lost member others get more than their share.
            env.wait_until("the member is lost", 180, async |env| {
                env.layout("web").await[favoured] > SHARE
            })
            .await;
        }
        wait_elsewhere(env, &[("web".to_owned(), ALL)], cut, 180).await;
        let replaced = began.elapsed();
        env.set_network(cut, FORWARD);
        let began = Instant::now();
        env.wait_until("all replicas are in their clusters", 180, async |env| {
            env.layout("web").await[favoured] == SHARE && env.available("web").await == ALL
        })
        .await;
        running.assert_never_below(ALL);
        let back = began.elapsed();
        eprintln!("{mode:?} of {cut}: replaced after {replaced:.1?}, balanced {back:.1?} later");
    }
}

pub(crate) async fn f20_fifty_kills_in_moves_of_200_replicas(env: &mut TestEnvironment) {
    kill_while_moving(env, 200, 50).await;
}

pub(crate) async fn a_leader_suspended_for_90_s_writes_nothing_after_it_resumes(
    env: &mut TestEnvironment,
) {
    env.run(&frs("web", 200, &even(true))).await;
    let running = env.watch("web").await;
    let first = env.leader().await.unwrap();
    env.start_standby().await;
    seconds(5).await;
    favour(env, "a").await;
    seconds(1).await;
    env.suspend(0, true);
    let took = env.wait_for_takeover(&first).await;
    seconds(90).await;
    favour(env, "b").await;
    seconds(1).await;
    let back = Timestamp::now();
    env.suspend(0, false);
    env.wait_until("all replicas are in their clusters", 120, async |env| {
        env.layout("web").await["b"] == 160 && env.available("web").await == 200
    })
    .await;
    seconds(20).await;
    let requests = env.audit_entries(0, back).await;
    let written: Vec<_> = requests.iter().filter(|entry| entry.wrote()).collect();
    assert!(
        written.is_empty(),
        "the suspended controller wrote: {written:#?}"
    );
    running.assert_never_below(200);
    running.assert_never_above(250);
    eprintln!("taken over after {took:.1?}");
}
