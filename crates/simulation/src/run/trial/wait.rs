//! What trials do and wait for.

use serde_json::{Value, json};
use sim_cluster::Object;
use tokio::time::{Duration, Instant};

use crate::{
    checks::{Invariant, is_labeled},
    run::{goal::pods_of, runner::Runner},
    sim_federation::HOST,
};

/// The controller has reacted to what a user or another writer has changed.
pub(super) const REACTION: Duration = Duration::from_secs(5);
/// How often the state is polled.
const LOOK: Duration = Duration::from_millis(250);

/// A trial has failed: the violation is recorded.
#[derive(Debug)]
pub(super) struct Failed;

/// Waits until nothing is pending any more.
pub(super) async fn reached(
    runner: &mut Runner,
    within: Duration,
    what: &str,
    pending: impl Fn(&Runner) -> Option<String>,
) -> Result<(), Failed> {
    let deadline = Instant::now() + within;
    while let Some(text) = pending(runner) {
        if Instant::now() >= deadline {
            let text = format!("{what}, not within {} s: {text}", within.as_secs());
            runner.fail(Invariant::InTime, text);
            return Err(Failed);
        }
        runner.wait_until(Instant::now() + LOOK).await;
    }
    Ok(())
}

/// Checks for some time that nothing is wrong.
pub(super) async fn stays(
    runner: &mut Runner,
    time: Duration,
    what: &str,
    wrong: impl Fn(&Runner) -> Option<String>,
) -> Result<(), Failed> {
    let until = Instant::now() + time;
    loop {
        if let Some(text) = wrong(runner) {
            runner.fail(Invariant::Settled, format!("{what}: {text}"));
            return Err(Failed);
        }
        if Instant::now() >= until {
            return Ok(());
        }
        runner
            .wait_until((Instant::now() + LOOK * 4).min(until))
            .await;
    }
}

/// A user changes a set by a merge patch.
pub(super) async fn edit(runner: &Runner, set: &str, patch: &Value) {
    runner
        .patch(HOST, &runner.federation.set_path(set), patch)
        .await;
}

/// A user changes the number of replicas.
pub(super) async fn scale(runner: &Runner, set: &str, replicas: u64) {
    edit(runner, set, &json!({ "spec": { "replicas": replicas } })).await;
}

/// What the controller has written to the local ReplicaSets of a set since it had sent `count` writes.
pub(super) fn local_writes(runner: &Runner, set: &str, count: usize) -> Option<String> {
    let mut written = runner.recorder.writes_after(count);
    let path = runner.federation.local_path(set);
    written.retain(|what| what.ends_with(&path));
    written.pop()
}

/// The replicas that are requested of each member.
pub(super) fn requested(runner: &Runner, set: &str) -> Vec<(String, u64)> {
    let mut layout = runner.federation.layout(set);
    for (member, replicas) in &mut layout {
        // One that somebody else has created, where the set has no replicas, is not ours.
        let local = runner.federation.local_set(member, set);
        if !local.is_some_and(|local| is_labeled(&local)) {
            *replicas = 0;
        }
    }
    layout.into_iter().collect()
}

/// The desired replicas of a set.
pub(super) fn replicas(runner: &Runner, set: &str) -> u64 {
    let frs = runner.frs(set);
    frs.and_then(|frs| frs["spec"]["replicas"].as_u64())
        .unwrap_or(1)
}

/// The preferences of a set.
pub(super) fn clusters(runner: &Runner, set: &str) -> Value {
    let frs = runner.frs(set).unwrap_or_default();
    frs["spec"]["placement"]["clusters"].clone()
}

/// The set has its preferences again, of which those of one member were changed.
pub(super) async fn put_back(runner: &Runner, set: &str, mut clusters: Value, member: &str) {
    if clusters.get(member).is_none() {
        clusters[member] = Value::Null;
    }
    edit(runner, set, &placement(&clusters)).await;
}

/// The patch of a set with these preferences.
pub(super) fn placement(clusters: &Value) -> Value {
    json!({ "spec": { "placement": { "clusters": clusters } } })
}

/// The pods of a set in a member.
pub(super) fn pods(runner: &Runner, member: &str, set: &str) -> Vec<Object> {
    let local = runner.federation.local_set(member, set);
    let pods = local.map(|local| pods_of(runner, member, &local));
    pods.unwrap_or_default()
}
