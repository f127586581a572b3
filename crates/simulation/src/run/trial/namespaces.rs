//! The trial of a namespace that members do not have.

use http::Method;
use serde_json::{Value, json};
use sim_cluster::kinds;
use tokio::time::Duration;

use super::wait::{Failed, reached};
use crate::{
    checks::GUESTS,
    run::runner::Runner,
    sim_federation::{HOST, frs},
};

/// The collection of namespaces.
const NAMESPACES: &str = "/api/v1/namespaces";
/// The name of the set in the namespace.
const NAME: &str = "guest";
/// The replicas that each member has.
const REPLICAS: u64 = 2;
/// How long the creation of a set takes in members without the namespace.
const CREATED: Duration = Duration::from_secs(60);
/// How long a namespace that was deleted takes to end.
const ENDED: Duration = Duration::from_secs(120);
/// The first writes to a namespace that ends are rejected: they are repeated after one and two minutes.
const BACK: Duration = Duration::from_secs(600);

/// A set in a namespace that only the host has runs in all members, also after `member` has lost the namespace.
pub(super) async fn lost(runner: &mut Runner, member: &str) -> Result<(), Failed> {
    create(runner).await;
    let what = "all members run a set in a new namespace";
    reached(runner, CREATED, what, missing).await?;
    let uid = namespace_uid(runner, member);
    let path = format!("{NAMESPACES}/{GUESTS}");
    let all = Value::Null;
    runner.request(member, Method::DELETE, &path, &all).await;
    let kept = |runner: &Runner| {
        let is_same = namespace_uid(runner, member) == uid;
        is_same.then(|| format!("{member} has the namespace"))
    };
    reached(runner, ENDED, "the namespace ends", kept).await?;
    let what = "a member that lost the namespace runs the set again";
    reached(runner, BACK, what, missing).await?;
    let path = format!("{}/{NAME}", collection());
    runner.request(HOST, Method::DELETE, &path, &all).await;
    let left = |runner: &Runner| {
        let members = runner.federation.member_names();
        let mut with = members
            .iter()
            .filter(|member| available(runner, member).is_some());
        with.next().map(|member| format!("{member} has the set"))
    };
    reached(runner, CREATED, "the deleted set leaves", left).await
}

/// The collection of sets in the namespace.
fn collection() -> String {
    format!("/apis/fedrs.dev/v1alpha1/namespaces/{GUESTS}/federatedreplicasets")
}

/// Creates the namespace on the host, and the set in it.
async fn create(runner: &Runner) {
    let namespace = json!({ "metadata": { "name": GUESTS } });
    runner
        .request(HOST, Method::POST, NAMESPACES, &namespace)
        .await;
    let members = runner.federation.member_names().len() as u64;
    let replicas = u32::try_from(members * REPLICAS).unwrap_or(u32::MAX);
    let placement = json!({ "rebalance": true, "clusters": { "*": { "weight": 1 } } });
    let mut set = frs(NAME, replicas, &placement);
    set["metadata"]["namespace"] = GUESTS.into();
    set["spec"]["deletionPolicy"] = "Delete".into();
    runner
        .request(HOST, Method::POST, &collection(), &set)
        .await;
}

/// A member that does not run its replicas.
fn missing(runner: &Runner) -> Option<String> {
    let members = runner.federation.member_names();
    members.iter().find_map(|member| {
        let available = available(runner, member).unwrap_or(0);
        (available != REPLICAS).then(|| format!("{member} runs {available} replicas"))
    })
}

/// The available replicas of the local set in a member; none if there is none.
fn available(runner: &Runner, member: &str) -> Option<u64> {
    let api = runner.federation.member(member).api();
    let local = api.get(&kinds::REPLICA_SETS, GUESTS, NAME).ok()?;
    Some(local["status"]["availableReplicas"].as_u64().unwrap_or(0))
}

/// The uid of the namespace in a member, if it has it.
fn namespace_uid(runner: &Runner, member: &str) -> Option<Value> {
    let api = runner.federation.member(member).api();
    let namespace = api.get(&kinds::NAMESPACES, "", GUESTS).ok()?;
    Some(namespace["metadata"]["uid"].clone())
}
