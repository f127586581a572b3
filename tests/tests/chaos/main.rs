//! Faults of real control planes, with watchers that know what really runs: `FEDRS_CLUSTERS=local cargo test --test chaos`.
//!
//! The scenarios of the modules `long` take minutes each: `--skip long` leaves them out.

#![expect(clippy::unwrap_used, reason = "a test that can't go on ends")]

mod long;
mod network;
mod power;
mod processes;
mod rejections;
mod store;

use std::{process::ExitCode, time::Duration};

use federation_controller::config::Config;
use fedrs_tests::{
    even, frs, scenario,
    scenario::Scenario,
    test_environment::{TestEnvironment, TestEnvironmentSpec},
};

/// The replicas of each set.
const N: u64 = 9;

fn main() -> ExitCode {
    let mut patient = TestEnvironmentSpec::default();
    patient.config.lost_grace_period = Some(Duration::from_secs(network::GRACE));
    let short = vec![
        scenario!(
            power::f33_dead_replicas_of_a_returned_member_replace_nothing,
            ClusterProcesses
        ),
        Scenario {
            spec: patient,
            ..scenario!(
                network::f33_a_controller_that_was_cut_off_moves_nothing,
                ClusterProcesses
            )
        },
        scenario!(
            processes::f20_a_controller_that_is_killed_again_and_again_moves_on,
            ClusterProcesses
        ),
        scenario!(
            rejections::f28_f32_what_members_cannot_run_goes_elsewhere_and_returns,
            ClusterProcesses
        ),
        scenario!(
            store::f20_a_host_restored_from_a_backup_is_followed,
            ClusterProcesses
        ),
        scenario!(
            store::f39_a_member_restored_from_a_backup_is_followed,
            ClusterProcesses
        ),
        scenario!(
            long::f39_no_kind_of_partition_costs_a_replica,
            ClusterProcesses
        ),
    ];
    let usual = TestEnvironmentSpec {
        config: Config::default(),
        ..TestEnvironmentSpec::default()
    };
    let long = vec![
        scenario!(
            long::f33_with_the_usual_times_a_loss_of_power_costs_nothing,
            ClusterProcesses
        ),
        scenario!(
            long::f33_a_flapping_member_does_not_make_replicas_swing,
            ClusterProcesses
        ),
        scenario!(
            long::f39_a_silent_member_is_replaced_and_returns,
            ClusterProcesses
        ),
        scenario!(
            long::f20_fifty_kills_in_moves_of_200_replicas,
            ClusterProcesses
        ),
        scenario!(
            long::a_leader_suspended_for_90_s_writes_nothing_after_it_resumes,
            ClusterProcesses
        ),
    ];
    let long = long.into_iter().map(|scenario| Scenario {
        spec: usual.clone(),
        ..scenario
    });
    fedrs_tests::scenario::main(short.into_iter().chain(long).collect(), false)
}

/// Creates `count` sets of N replicas, `web0` and so on, and waits until all run and are balanced.
async fn run_sets(env: &TestEnvironment, count: usize) {
    for name in names(count) {
        env.create(&frs(&name, u32::try_from(N).unwrap(), &even(true)))
            .await;
    }
    wait_balanced(env, count, 120).await;
}

fn names(count: usize) -> impl Iterator<Item = String> {
    (0..count).map(|number| format!("web{number}"))
}

/// Waits until each set has a third of its replicas in each member, and all of them are available. Returns how long that took.
async fn wait_balanced(env: &TestEnvironment, count: usize, seconds: u64) -> Duration {
    let began = tokio::time::Instant::now();
    env.wait_until("all sets are balanced", seconds, async |env| {
        for name in names(count) {
            if env.sorted_layout(&name).await != [N / 3; 3] || env.available(&name).await != N {
                return false;
            }
        }
        true
    })
    .await;
    began.elapsed()
}

/// Waits until the other members than `lost` run all replicas of each set. Returns how long that took.
async fn wait_replaced(env: &TestEnvironment, count: usize, lost: &str, limit: u64) -> Duration {
    let sets: Vec<_> = names(count).map(|name| (name, N)).collect();
    wait_elsewhere(env, &sets, lost, limit).await
}

/// The same of sets with these numbers of replicas.
async fn wait_elsewhere(
    env: &TestEnvironment,
    sets: &[(String, u64)],
    lost: &str,
    limit: u64,
) -> Duration {
    let began = tokio::time::Instant::now();
    let members = env.member_names().into_iter();
    let others: Vec<_> = members.filter(|member| member != lost).collect();
    env.wait_until("the others run all replicas", limit, async |env| {
        for (name, replicas) in sets {
            let mut available = 0;
            for member in &others {
                let set = env.local_set(member, name).await;
                available += set["status"]["availableReplicas"].as_u64().unwrap_or(0);
            }
            if available < *replicas {
                return false;
            }
        }
        true
    })
    .await;
    began.elapsed()
}

async fn seconds(count: u64) {
    tokio::time::sleep(Duration::from_secs(count)).await;
}
