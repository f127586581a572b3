//! Trials of pods that somebody deletes.

use http::Method;
use serde_json::{Value, json};
use sim_cluster::Object;
use tokio::time::{Duration, Instant};

use super::wait::{Failed, clusters, edit, placement, pods, put_back};
use crate::{
    checks::Invariant,
    name_of,
    plan::START_SECONDS,
    run::{actions::PODS, runner::Runner},
    sim_federation::HOST,
};

/// How long a slow member takes for a response: not so long that its probes fail.
const SLOW: Duration = Duration::from_secs(3);
/// How soon before replicas run they are moved away.
const SOON: Duration = Duration::from_millis(500);
/// The fewest pods, and the shortest start, with which some are missing all the time.
const FEWEST: usize = 5;
const SHORTEST: Duration = Duration::from_secs(5);
/// The longest pause between two statuses that only say how far the replicas are.
const PAUSE: u64 = 8;
/// Statuses before the pauses are that long, and of what a person may act on.
const OTHER_STATUSES: u64 = 6;

/// Replicas that are removed because they do not run stay if they run by the time the removal is carried out.
pub(super) async fn idle(runner: &mut Runner, set: &str, member: &str) -> Result<(), Failed> {
    let clusters = clusters(runner, set);
    if clusters.get("*").is_none() {
        return Ok(());
    }
    for pod in pods(runner, member, set) {
        delete(runner, member, &pod).await;
    }
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

/// While pods are missing, and the number of those that run changes each second, few statuses are written.
pub(super) async fn churn(runner: &mut Runner, set: &str) -> Result<(), Failed> {
    let members = runner.federation.member_names();
    let of_member = |member: &String| {
        let pods = pods(runner, member, set).into_iter();
        pods.map(|pod| (member.clone(), pod)).collect::<Vec<_>>()
    };
    let pods: Vec<_> = members.iter().flat_map(of_member).collect();
    let starts = start_time(runner, set);
    if pods.len() < FEWEST || starts < SHORTEST {
        return Ok(());
    }
    let (before, began) = (runner.recorder.writes(), Instant::now());
    for (member, pod) in &pods {
        delete(runner, member, pod).await;
        runner
            .wait_until(Instant::now() + Duration::from_secs(1))
            .await;
    }
    runner.wait_until(Instant::now() + starts).await;
    let seconds = began.elapsed().as_secs();
    let most = OTHER_STATUSES + seconds / PAUSE;
    let path = format!("{HOST} {}/status", runner.federation.set_path(set));
    let mut written = runner.recorder.writes_after(before);
    written.retain(|what| what.ends_with(&path));
    if written.len() as u64 > most {
        let text = format!(
            "{} statuses of {set} in {seconds} s, more than {most}",
            written.len()
        );
        runner.fail(Invariant::BoundedRate, text);
        return Err(Failed);
    }
    Ok(())
}

/// Somebody deletes a pod of a member.
async fn delete(runner: &Runner, member: &str, pod: &Object) {
    let path = format!("{PODS}/{}", name_of(pod));
    let all = Value::Null;
    runner.request(member, Method::DELETE, &path, &all).await;
}

/// How long pods of a set take to start.
fn start_time(runner: &Runner, set: &str) -> Duration {
    let frs = runner.frs(set).unwrap_or_default();
    let annotations = &frs["spec"]["template"]["metadata"]["annotations"];
    let seconds = annotations[START_SECONDS].as_str();
    let seconds = seconds.and_then(|seconds| seconds.parse().ok());
    seconds.map_or(Duration::from_secs(1), Duration::from_secs)
}
