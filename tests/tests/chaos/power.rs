//! Losses of power.

use fedrs_tests::test_environment::TestEnvironment;

use crate::{N, run_sets, seconds, wait_balanced, wait_replaced};

/// The sets that run.
const SETS: usize = 12;

pub(crate) async fn f33_dead_replicas_of_a_returned_member_replace_nothing(
    env: &mut TestEnvironment,
) {
    lose_power(env, 60, 25).await;
}

/// Cuts the power of a member until its replicas are replaced; then its API server runs without nodes for `dead` seconds.
/// Waits at most `limit` seconds for each.
pub(crate) async fn lose_power(env: &TestEnvironment, limit: u64, dead: u64) {
    run_sets(env, SETS).await;
    let running = env.watch_all().await;
    env.lose_power("b", &running).await;
    let replaced = wait_replaced(env, SETS, "b", limit).await;
    assert!(running.lowest() >= N - N / 3, "{}", running.lowest());
    seconds(1).await;
    running.reset();
    env.start_api_server("b").await;
    for _ in 0..dead {
        seconds(1).await;
        running.assert_never_below(N);
    }
    let condition = env.member_condition("b", "Ready").await;
    assert_ne!(condition.as_deref(), Some("True"), "no node is ready");
    env.restore_power("b", &running).await;
    let returned = wait_balanced(env, SETS, 2 * limit).await;
    running.assert_never_below(N);
    running.assert_never_above(N + N / 3);
    eprintln!("replaced {replaced:.1?} after the loss, balanced {returned:.1?} after the return");
}
