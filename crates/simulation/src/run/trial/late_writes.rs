//! Trials of writes that are carried out some seconds after they were decided: the check of each write shows what they must not
//! remove.

use serde_json::{Value, json};
use tokio::time::{Duration, Instant};

use super::wait::{Failed, edit, replicas, requested, scale};
use crate::{
    plan::START_SECONDS,
    run::{processes::Processes, runner::Runner},
};

/// A write is decided, and sent, within this time.
const SENT: Duration = Duration::from_secs(2);
/// By how much a write arrives before the next term relies on nothing being on its way.
const EARLY: Duration = Duration::from_secs(3);

/// How long a slow member takes for a response: not so long that its probes fail.
const SLOW: Duration = Duration::from_secs(3);
/// How soon before replicas run they are moved away.
const SOON: Duration = Duration::from_millis(500);

/// A leader that starts again removes no replica that runs while a scale-down of the process before it may arrive.
pub(super) async fn resume(runner: &mut Runner, set: &str) -> Result<(), Failed> {
    let Some(leader) = leader(runner) else {
        return Ok(());
    };
    let running = requested(runner, set);
    let running = running.iter().filter(|(_, count)| *count > 0);
    let (before, clusters) = (replicas(runner, set), clusters(runner, set));
    if running.count() < 2 || clusters.is_null() {
        return Ok(());
    }
    let lease = runner.federation.config().leader_election.lease_duration;
    delay_changes(runner, 1, lease.saturating_sub(EARLY));
    scale(runner, set, before - 1).await;
    runner.wait_until(Instant::now() + SENT).await;
    delay_changes(runner, 0, Duration::ZERO);
    let sent = runner
        .recorder
        .observe(|observed| observed.with_in_flight(set));
    let Some(member) = sent else {
        return Ok(());
    };
    runner.processes.kill(leader).await;
    // Now the replicas of other members would have to go, too.
    let mut only: Value = clusters.clone();
    for preference in only
        .as_object_mut()
        .into_iter()
        .flat_map(|all| all.values_mut())
    {
        *preference = Value::Null;
    }
    only[&member] = json!({ "weight": 1, "minReplicas": null, "maxReplicas": null });
    edit(runner, set, &placement(&only)).await;
    runner.start_controller(leader);
    runner.wait_until(Instant::now() + lease * 2).await;
    put_back(runner, set, clusters, &member).await;
    Ok(())
}

/// Replicas that are removed because they do not run stay if they run by the time the removal is carried out.
pub(super) async fn idle(runner: &mut Runner, set: &str, member: &str) -> Result<(), Failed> {
    let clusters = clusters(runner, set);
    if clusters.get("*").is_none() {
        return Ok(());
    }
    let members = runner.federation.member_names().len() as u64;
    let more = replicas(runner, set) + members * 2;
    scale(runner, set, more).await;
    let starts = start_time(runner, set).saturating_sub(SOON);
    runner.wait_until(Instant::now() + starts).await;
    let faults = runner.federation.member(member).faults().clone();
    faults.set_latency(SLOW);
    let mut others = clusters.clone();
    others[member] = json!({ "weight": 0, "minReplicas": null, "maxReplicas": 0 });
    edit(runner, set, &placement(&others)).await;
    runner.wait_until(Instant::now() + SLOW * 3).await;
    faults.set_latency(Duration::ZERO);
    put_back(runner, set, clusters, member).await;
    Ok(())
}

/// How long pods of a set take to start.
fn start_time(runner: &Runner, set: &str) -> Duration {
    let frs = runner.frs(set).unwrap_or_default();
    let annotations = &frs["spec"]["template"]["metadata"]["annotations"];
    let seconds = annotations[START_SECONDS].as_str();
    let seconds = seconds.and_then(|seconds| seconds.parse().ok());
    seconds.map_or(Duration::from_secs(1), Duration::from_secs)
}

/// The number of the controller that leads, if there is an election.
fn leader(runner: &Runner) -> Option<usize> {
    let holder = runner.recorder.holder();
    (0..runner.processes.count())
        .find(|number| runner.processes.runs(*number) && Processes::name(*number) == holder)
}

/// The next changes of ReplicaSets in all members take so much longer.
fn delay_changes(runner: &Runner, times: u32, delay: Duration) {
    for member in runner.federation.member_names() {
        runner.recorder.delay_changes(&member, times, delay);
    }
}

/// The preferences of a set.
fn clusters(runner: &Runner, set: &str) -> Value {
    let frs = runner.frs(set).unwrap_or_default();
    frs["spec"]["placement"]["clusters"].clone()
}

/// The set has its preferences again, of which those of one member were changed.
async fn put_back(runner: &Runner, set: &str, mut clusters: Value, member: &str) {
    if clusters.get(member).is_none() {
        clusters[member] = Value::Null;
    }
    edit(runner, set, &placement(&clusters)).await;
}

/// The patch of a set with these preferences.
fn placement(clusters: &Value) -> Value {
    json!({ "spec": { "placement": { "clusters": clusters } } })
}
