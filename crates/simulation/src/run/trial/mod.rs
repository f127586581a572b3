//! The trial at the end of a run: one change of a federation that is as it should be, and what must follow from it, how soon,
//! and what must not.

mod members;
mod sets;

use serde_json::{Value, json};
use tokio::time::{Duration, Instant};

use super::{
    goal::{Goal, REACHED_WITHIN, is_any_unsettled, is_labeled},
    runner::Runner,
};
use crate::{
    checks::Invariant,
    plan::Trial,
    sim_federation::{FRS_PATH, HOST},
    trace::Topic,
};

/// The controller has reacted to what a user or another writer has changed.
const REACTION: Duration = Duration::from_secs(5);
/// How often the state is polled.
const LOOK: Duration = Duration::from_millis(250);

/// Tries `trial` in a federation in which all of `goal` is reached, and no fault is left.
pub(super) async fn carry_out(runner: &mut Runner, goal: &Goal, trial: &Trial) {
    if trial.names().iter().any(|name| {
        !goal.members.iter().any(|member| member == name) && !has_all(runner, goal, name)
    }) {
        runner.recorder.trace(
            Topic::Step,
            format!("(no trial: {trial}: there is none with all its replicas)"),
        );
        return;
    }
    runner.recorder.trace(Topic::Step, trial.to_string());
    runner.count("trials");
    let ended = match trial {
        Trial::Drift { set, drift } => sets::drift(runner, set, *drift).await,
        Trial::Growth { set } => sets::growth(runner, set).await,
        Trial::Template { set } => sets::template(runner, set).await,
        Trial::Pause { set } => sets::pause(runner, set).await,
        Trial::Invalid { set } => sets::invalid(runner, set).await,
        Trial::Annotation { set, member } => sets::annotation(runner, set, member).await,
        Trial::Unbalanced { set, member } => sets::unbalanced(runner, set, member).await,
        Trial::Deletion { set, deletes } => sets::deletion(runner, set, *deletes).await,
        Trial::Closing { member, closing } => {
            members::closing(runner, goal, member, *closing).await
        }
        Trial::Loss { member } => members::loss(runner, goal, member).await,
        Trial::Disconnection => members::disconnection(runner, goal).await,
        Trial::Unauthorized { member } => members::unauthorized(runner, member).await,
        // What members reject, or have no capacity for, is tried again.
        Trial::Restart if is_any_unsettled(runner) => Ok(()),
        Trial::Restart => members::restart(runner).await,
    };
    if ended.is_ok() {
        let all = |runner: &Runner| goal.pending(runner).into_iter().next();
        let _ = reached(runner, REACHED_WITHIN, "after the trial", all).await;
    }
}

/// A trial has failed: the violation is recorded.
#[derive(Debug)]
struct Failed;

/// Whether the set exists, and members accept it and run all its replicas.
fn has_all(runner: &Runner, goal: &Goal, set: &str) -> bool {
    goal.wanted(runner, set)
        .is_some_and(|(wanted, replicas)| wanted == replicas && replicas > 0)
}

/// Waits until nothing is pending any more.
async fn reached(
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
async fn stays(
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
async fn edit(runner: &Runner, set: &str, patch: &Value) {
    runner
        .patch(HOST, &format!("{FRS_PATH}/{set}"), patch)
        .await;
}

/// A user changes the number of replicas.
async fn scale(runner: &Runner, set: &str, replicas: u64) {
    edit(runner, set, &json!({ "spec": { "replicas": replicas } })).await;
}

/// What the controller has written to the local ReplicaSets of a set since it had sent `count` writes.
fn local_writes(runner: &Runner, set: &str, count: usize) -> Option<String> {
    let mut written = runner.recorder.writes_after(count);
    let path = format!("/replicasets/{set}");
    written.retain(|what| what.ends_with(&path));
    written.pop()
}

/// The replicas that are requested of each member.
fn requested(runner: &Runner, set: &str) -> Vec<(String, u64)> {
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
fn replicas(runner: &Runner, set: &str) -> u64 {
    let frs = runner.frs(set);
    frs.and_then(|frs| frs["spec"]["replicas"].as_u64())
        .unwrap_or(1)
}
