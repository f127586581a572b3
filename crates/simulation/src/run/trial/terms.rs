//! The trial of a leader that dies while one of its writes is on its way.

use serde_json::{Value, json};
use tokio::time::{Duration, Instant};

use super::wait::{Failed, clusters, edit, placement, put_back, replicas, requested, scale};
use crate::run::{processes::Processes, runner::Runner};

/// A write is decided, and sent, within this time.
const SENT: Duration = Duration::from_secs(2);
/// By how much a write arrives before the next term relies on nothing being on its way.
const EARLY: Duration = Duration::from_secs(3);

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
