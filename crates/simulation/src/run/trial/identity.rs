//! Trials of what belongs to whom: a cluster with two names, and a local ReplicaSet of another federation.

use fedrs_api::ClusterState;
use http::Method;
use serde_json::Value;
use tokio::time::Duration;

use super::{
    sets::lacks_condition,
    wait::{Failed, reached, requested, stays},
};
use crate::{
    checks::{OTHER_FEDERATION, is_labeled},
    join::MEMBERS_PATH,
    run::runner::Runner,
    sim_federation::HOST,
};

/// How long a new name of a cluster takes to join.
const JOINED: Duration = Duration::from_secs(30);
/// How long nothing happens.
const UNTOUCHED: Duration = Duration::from_secs(90);

/// A second name of a cluster is called a duplicate, and nothing moves because of it, nor because it goes.
pub(super) async fn twin(runner: &mut Runner, member: &str) -> Result<(), Failed> {
    let mut sets: Vec<_> = runner.sets.iter().map(|set| set.name.clone()).collect();
    sets.retain(|set| runner.frs(set).is_some());
    // Without a ReplicaSet nothing shows that the two are one.
    let lacks = |set: &String| {
        let local = runner.federation.local_set(member, set);
        !local.is_some_and(|local| is_labeled(&local))
    };
    if sets.iter().any(lacks) {
        return Ok(());
    }
    let twin = format!("{member}-twin");
    let before = runner.recorder.writes();
    runner.processes.set_kubeconfig(&twin, Some(member));
    let shown = |runner: &Runner| {
        let mut sets = sets.iter();
        let set = sets.find(|set| !is_duplicate(runner, set, &twin))?;
        Some(format!("{set} does not show that {twin} is a duplicate"))
    };
    reached(runner, JOINED, "the second name is shown", shown).await?;
    let written = |runner: &Runner| written(runner, before);
    stays(runner, UNTOUCHED, "a second name", written).await?;
    runner.processes.set_kubeconfig(&twin, None);
    let path = format!("{MEMBERS_PATH}/{twin}");
    let all = Value::Null;
    runner.request(HOST, Method::DELETE, &path, &all).await;
    stays(runner, UNTOUCHED, "a second name has gone", written).await
}

/// Whether the status of a set calls a cluster a duplicate.
fn is_duplicate(runner: &Runner, set: &str, name: &str) -> bool {
    let frs = runner.frs(set).unwrap_or_default();
    let clusters = frs["status"]["clusters"].as_array();
    let mut clusters = clusters.into_iter().flatten();
    clusters.any(|cluster| {
        cluster["name"] == name && cluster["state"] == ClusterState::Duplicate.as_str()
    })
}

/// What was written in the members after the first `count` writes.
fn written(runner: &Runner, count: usize) -> Option<String> {
    let mut written = runner.recorder.writes_after(count);
    written.retain(|what| !what.contains(&format!(" {HOST} ")));
    written.pop()
}

/// A ReplicaSet that belongs to another federation stays as it is, and the status says so.
pub(super) async fn foreign(runner: &mut Runner, set: &str) -> Result<(), Failed> {
    let mut layout = requested(runner, set).into_iter();
    let Some((member, _)) = layout.find(|(_, count)| *count > 0) else {
        return Ok(());
    };
    runner.give_to(&member, set, Some(OTHER_FEDERATION)).await;
    let content = |runner: &Runner| {
        let local = runner
            .federation
            .local_set(&member, set)
            .unwrap_or_default();
        (local["spec"].clone(), local["metadata"]["labels"].clone())
    };
    let before = content(runner);
    let shown = |runner: &Runner| lacks_condition(runner, set, "NameConflict", "True");
    reached(
        runner,
        JOINED,
        "the status shows the other federation",
        shown,
    )
    .await?;
    let changed = |runner: &Runner| {
        let now = content(runner);
        (now != before).then(|| format!("{before:?} became {now:?}"))
    };
    stays(
        runner,
        UNTOUCHED,
        "a ReplicaSet of another federation",
        changed,
    )
    .await?;
    runner.give_back_to_federation(&member, set).await;
    Ok(())
}
