//! Several controllers, of which one leads.

use std::time::Duration;

use fedrs_tests::{
    even, frs,
    stage::{Stage, short_waits},
};
use jiff::Timestamp;
use serde_json::json;

/// A move of 18 replicas from b and c to a, or back.
async fn favour(stage: &Stage, favoured: &str) {
    let weight = |name: &str| json!({ "weight": if name == favoured { 8 } else { 1 } });
    let clusters = json!({ "a": weight("a"), "b": weight("b"), "c": weight("c") });
    let patch = json!({ "spec": { "placement": { "clusters": clusters } } });
    stage.patch("web", &patch).await;
}

/// Who stands by has seen the last renewal no later than it happened, looks again after its period, and asks.
fn takeover_within() -> Duration {
    let election = short_waits().leader_election;
    election.lease_duration + 2 * election.retry_period
}

async fn leader(stage: &Stage) -> String {
    stage
        .wait_until("a controller leads", 30, async |it| {
            it.leader().await.is_some()
        })
        .await;
    stage.leader().await.unwrap()
}

/// The first controller works on a set of 30, and a second one stands by.
async fn set_up(stage: &mut Stage) -> (String, usize) {
    stage.run(&frs("web", 30, &even(true))).await;
    let first = leader(stage).await;
    let rival = stage.start_rival().await;
    stage
        .wait_until("the second one stands by", 30, async |it| {
            it.controller_log(rival).contains("standby")
        })
        .await;
    (first, rival)
}

pub(crate) async fn one_that_is_killed_is_succeeded(stage: &mut Stage) {
    let (first, _) = set_up(stage).await;
    let dips = stage.watch("web").await;
    favour(stage, "a").await;
    stage.kill(0);
    let took = stage.takeover(&first).await;
    eprintln!("taken over {took:.2?} after the leader was killed");
    assert!(took <= takeover_within(), "{took:?}");
    stage
        .wait_until("the second one has moved them", 90, async |it| {
            it.layout("web").await["a"] == 24 && it.available("web").await == 30
        })
        .await;
    dips.assert_never_below(30);
    assert!(dips.highest() <= 37, "{}", dips.highest());
}

pub(crate) async fn one_that_was_stopped_writes_nothing_that_lasts(stage: &mut Stage) {
    let (first, rival) = set_up(stage).await;
    let dips = stage.watch("web").await;
    // It has begun to move replicas, and hangs in the middle of it.
    favour(stage, "a").await;
    stage
        .wait_until("the move has begun", 20, async |it| {
            it.layout("web").await["a"] > 10
        })
        .await;
    stage.freeze(0, true);
    let took = stage.takeover(&first).await;
    eprintln!("taken over {took:.2?} after the leader was stopped");
    assert!(took <= takeover_within(), "{took:?}");
    // What the first one knew is no longer what is wanted.
    favour(stage, "b").await;
    stage
        .wait_until("the second one moves them elsewhere", 30, async |it| {
            it.layout("web").await["b"] > 10
        })
        .await;
    let back = Timestamp::now();
    stage.freeze(0, false);
    stage
        .wait_until("all are where they are wanted", 90, async |it| {
            it.layout("web").await["b"] == 24 && it.available("web").await == 30
        })
        .await;
    // Long enough to renew, to look, and to carry out whatever waited.
    tokio::time::sleep(2 * takeover_within()).await;
    assert_eq!(stage.layout("web").await["b"], 24);
    dips.assert_never_below(30);
    assert!(dips.highest() <= 37, "{}", dips.highest());

    let asked = stage.asked(0, back).await;
    assert!(!asked.is_empty(), "it goes on, and looks at the Lease");
    let written: Vec<_> = asked.iter().filter(|it| it.wrote()).collect();
    assert!(written.is_empty(), "the stopped one wrote: {written:#?}");
    let by_rival = stage.asked(rival, back).await;
    assert!(by_rival.iter().any(fedrs_tests::stage::Asked::wrote));
}
