//! The trial of a node that stops.

use std::collections::BTreeMap;

use tokio::time::Duration;

use super::wait::{Failed, pods, reached};
use crate::{
    ready_pods::is_ready,
    run::{goal::Goal, runner::Runner},
};

/// When the node controller says that a node does not answer, and more.
const NODE_NOTICED: Duration = Duration::from_secs(60);
/// How long replacements take to start.
const REPLACED: Duration = Duration::from_secs(180);
/// How often at most pods are missing for the timeout until it is known how few the other nodes can run: what is left of them may
/// have room for fewer than it seemed at first.
const ROUNDS: u32 = 3;

/// The replicas of a node that has stopped run elsewhere once its pods have been missing for `unscheduledTimeout`.
pub(super) async fn loss(runner: &mut Runner, goal: &Goal, member: &str) -> Result<(), Failed> {
    let sets: Vec<_> = runner.sets.iter().map(|set| set.name.clone()).collect();
    let timeout = longest_timeout(runner, &sets);
    let node = busiest_node(runner, &sets, member);
    let (Some(timeout), Some(node)) = (timeout, node) else {
        return Ok(());
    };
    if goal.without(runner, member).is_none() {
        return Ok(());
    }
    runner.federation.member(member).fail_node(&node);
    let missing = |runner: &Runner| {
        sets.iter().find_map(|set| {
            let (wanted, _) = goal.wanted(runner, set)?;
            let running = running_without(runner, set, (member, &node));
            (running < wanted).then(|| format!("{running} of {wanted} replicas of {set} run"))
        })
    };
    let within = NODE_NOTICED + timeout * ROUNDS + REPLACED;
    let what = "the replicas of a node that stopped run elsewhere";
    reached(runner, within, what, missing).await?;
    runner.federation.member(member).recover_node(&node);
    Ok(())
}

/// The longest time that one of the sets waits for pods without a node; none if it waits for ever.
fn longest_timeout(runner: &Runner, sets: &[String]) -> Option<Duration> {
    let usual = runner.federation.config().unscheduled_timeout?;
    let timeout = |set: &String| {
        let frs = runner.frs(set).unwrap_or_default();
        let own = frs["spec"]["rescheduling"]["unscheduledTimeoutSeconds"].as_u64();
        own.map_or(usual, Duration::from_secs)
    };
    sets.iter().map(timeout).max()
}

/// The node of a member with the most pods of the sets.
fn busiest_node(runner: &Runner, sets: &[String], member: &str) -> Option<String> {
    let mut counts = BTreeMap::<String, u32>::new();
    for set in sets {
        for pod in pods(runner, member, set) {
            let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
            *counts.entry(node.to_owned()).or_default() += 1;
        }
    }
    let busiest = counts.into_iter().max_by_key(|(_, count)| *count);
    busiest.map(|(node, _)| node)
}

/// The replicas of a set that are ready in all members, but for those on one node of one member.
fn running_without(runner: &Runner, set: &str, (without, node): (&str, &str)) -> u64 {
    let members = runner.federation.member_names();
    let running = members.iter().flat_map(|member| {
        let mut pods = pods(runner, member, set);
        pods.retain(|pod| {
            is_ready(pod, set) && (member != without || pod["spec"]["nodeName"] != node)
        });
        pods
    });
    running.count() as u64
}
