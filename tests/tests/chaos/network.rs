//! The network between the controller and its members.

use std::time::Duration;

use control_plane::ProxyMode;
use fedrs_tests::test_environment::TestEnvironment;

use crate::{N, run_sets, seconds, wait_balanced, wait_replaced};

/// The sets that run.
const SETS: usize = 12;
const FORWARD: ProxyMode = ProxyMode::Forward(Duration::ZERO);

/// How long a member may be out of reach, in seconds.
pub(crate) const GRACE: u64 = 16;

pub(crate) async fn f33_a_controller_that_was_cut_off_moves_nothing(env: &mut TestEnvironment) {
    run_sets(env, SETS).await;
    let running = env.watch_all().await;
    let before = versions(env).await;
    for mode in [ProxyMode::Reset, ProxyMode::Blackhole] {
        for member in ["a", "b", "c"] {
            env.set_network(member, mode);
        }
        env.wait_until("the controller is disconnected", 60, async |env| {
            env.member_condition("a", "Ready").await.as_deref() == Some("Unknown")
        })
        .await;
        // Longer than the grace period; the others follow the first one within it.
        seconds(GRACE).await;
        for member in ["b", "c", "a"] {
            env.set_network(member, FORWARD);
            seconds(GRACE / 4).await;
        }
        seconds(10).await;
        assert_eq!(versions(env).await, before, "no local set is written");
    }
    assert_eq!((running.lowest(), running.highest()), (N, N));
    // One that stays away is lost.
    for member in ["a", "b", "c"] {
        env.set_network(member, ProxyMode::Reset);
    }
    seconds(GRACE).await;
    for member in ["a", "b"] {
        env.set_network(member, FORWARD);
    }
    let replaced = wait_replaced(env, SETS, "c", 60).await;
    env.set_network("c", FORWARD);
    let returned = wait_balanced(env, SETS, 60).await;
    running.assert_never_below(N);
    eprintln!("replaced {replaced:.1?} after the others returned, balanced {returned:.1?} later");
}

/// The generations of all local sets: each write of the controller raises one.
async fn versions(env: &TestEnvironment) -> Vec<u64> {
    let mut generations = Vec::new();
    for name in crate::names(SETS) {
        for member in env.member_names() {
            let set = env.local_set(&member, &name).await;
            generations.push(set["metadata"]["generation"].as_u64().unwrap_or(0));
        }
    }
    generations
}
