//! Several controllers, of which one leads.

use std::time::Duration;

use fedrs_tests::{
    even, frs,
    test_environment::{TestEnvironment, short_waits},
};
use jiff::Timestamp;
use serde_json::json;

/// Moves 18 replicas from b and c to `favoured`, or back.
async fn favour(env: &TestEnvironment, favoured: &str) {
    let weight = |name: &str| json!({ "weight": if name == favoured { 8 } else { 1 } });
    let clusters = json!({ "a": weight("a"), "b": weight("b"), "c": weight("c") });
    let patch = json!({ "spec": { "placement": { "clusters": clusters } } });
    env.patch("web", &patch).await;
}

/// A standby has seen the last renewal at the latest when it happened, checks again after its retry period, and acquires the
fn takeover_within() -> Duration {
    let election = short_waits().leader_election;
    election.lease_duration + 2 * election.retry_period
}

async fn leader(env: &TestEnvironment) -> String {
    env.wait_until("a controller is the leader", 30, async |env| {
        env.leader().await.is_some()
    })
    .await;
    env.leader().await.unwrap()
}

/// The first controller handles a set of 30, and a second one is its standby.
async fn set_up(env: &mut TestEnvironment) -> (String, usize) {
    env.run(&frs("web", 30, &even(true))).await;
    let first = leader(env).await;
    let standby = env.start_standby().await;
    env.wait_until("the second controller is a standby", 30, async |env| {
        env.controller_log(standby).contains("standby")
    })
    .await;
    (first, standby)
}

pub(crate) async fn a_killed_leader_is_replaced(env: &mut TestEnvironment) {
    let (first, _) = set_up(env).await;
    let dips = env.watch("web").await;
    favour(env, "a").await;
    env.kill_number(0);
    let took = env.wait_for_takeover(&first).await;
    eprintln!("taken over {took:.2?} after the leader was killed");
    assert!(took <= takeover_within(), "{took:?}");
    env.wait_until(
        "the second controller has finished the move",
        90,
        async |env| env.layout("web").await["a"] == 24 && env.available("web").await == 30,
    )
    .await;
    dips.assert_never_below(30);
    assert!(dips.highest() <= 37, "{}", dips.highest());
}

pub(crate) async fn a_suspended_leader_writes_nothing_after_it_resumes(env: &mut TestEnvironment) {
    let (first, standby) = set_up(env).await;
    let dips = env.watch("web").await;
    // The process is suspended in the middle of the move.
    favour(env, "a").await;
    env.wait_until("the move has begun", 20, async |env| {
        env.layout("web").await["a"] > 10
    })
    .await;
    env.suspend(0, true);
    let took = env.wait_for_takeover(&first).await;
    eprintln!("taken over {took:.2?} after the leader was stopped");
    assert!(took <= takeover_within(), "{took:?}");
    // The spec that the first controller knows is outdated.
    favour(env, "b").await;
    env.wait_until(
        "the second controller starts another move",
        30,
        async |env| env.layout("web").await["b"] > 10,
    )
    .await;
    let back = Timestamp::now();
    env.suspend(0, false);
    env.wait_until("all replicas are in their clusters", 90, async |env| {
        env.layout("web").await["b"] == 24 && env.available("web").await == 30
    })
    .await;
    // Long enough to renew the term, to check, and to send pending writes.
    tokio::time::sleep(2 * takeover_within()).await;
    assert_eq!(env.layout("web").await["b"], 24);
    dips.assert_never_below(30);
    assert!(dips.highest() <= 37, "{}", dips.highest());

    let requests = env.audit_entries(0, back).await;
    assert!(
        !requests.is_empty(),
        "the resumed controller reads the Lease"
    );
    let written: Vec<_> = requests.iter().filter(|entry| entry.wrote()).collect();
    assert!(
        written.is_empty(),
        "the suspended controller wrote: {written:#?}"
    );
    let by_standby = env.audit_entries(standby, back).await;
    assert!(
        by_standby
            .iter()
            .any(fedrs_tests::test_environment::AuditEntry::wrote)
    );
}
