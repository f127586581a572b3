//! The status of a MemberCluster, from what is known of the member. Pure.

use std::time::Duration;

use cluster_informer::{Health, NodeInfo, SyncState, WorkloadTotals};
use fedrs_api::{MemberClusterStatus, NodeCounts, pluralize};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use super::registry::MemberFacts;

/// How often what only goes on, such as a drain, is written: between two writes are at least so many seconds.
pub(super) const PROGRESS_PERIOD: Duration = Duration::from_secs(10);
/// Sets that the condition Drained names.
const NAMES: usize = 3;

/// What a condition says.
struct Said {
    holds: bool,
    reason: &'static str,
    message: String,
}

impl Said {
    fn new(holds: bool, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            holds,
            reason,
            message: message.into(),
        }
    }
}

/// The status that `facts` come to, after `before`: a condition keeps the time of its last transition, and what is not
/// known yet stays as it was.
pub(super) fn status(
    before: &MemberClusterStatus,
    facts: &MemberFacts,
    now: Timestamp,
) -> MemberClusterStatus {
    let store = facts.access.as_ref().map(|access| &access.store);
    let health = store.map_or(Health::Unknown, |it| it.health());
    let info = store.map(|store| store.cluster_info()).unwrap_or_default();
    let totals = store.map(|store| store.totals(NAMES)).unwrap_or_default();
    let (ready, synced) = (ready(facts, &health), synced(facts));
    let drained = facts.draining.then(|| drained(&ready, &synced, &totals));
    let said = [
        ("Ready", Some(ready)),
        ("Synced", Some(synced)),
        ("Drained", drained),
    ];
    let conditions = said.into_iter().filter_map(|(type_, said)| {
        let Said {
            holds,
            reason,
            message,
        } = said?;
        let condition: Condition = fedrs_api::conditions::condition(
            &before.conditions,
            type_,
            holds,
            reason,
            message,
            None,
            now,
        );
        // Who changed the spec can tell what is said of it from what was said of an earlier one.
        Some(Condition {
            observed_generation: facts.object.generation,
            ..condition
        })
    });
    let (nodes, allocatable) = match info.nodes {
        NodeInfo::Unknown => (before.nodes, before.allocatable.clone()),
        NodeInfo::Forbidden => Default::default(),
        NodeInfo::Known(totals) => {
            let counts = NodeCounts {
                total: number(totals.total),
                ready: number(totals.ready),
            };
            (Some(counts), totals.allocatable())
        }
    };
    let was_removed = before.conditions.iter().any(|it| it.reason == "Removed");
    let unreachable_since = match health {
        // A restart does not begin it anew.
        _ if facts.removed.is_some() && was_removed => {
            before.unreachable_since.as_ref().map(|it| it.0)
        }
        _ if facts.removed.is_some() => facts.removed,
        Health::Unreachable { since, .. } => Some(since),
        _ => None,
    };
    MemberClusterStatus {
        conditions: conditions.collect(),
        version: info.version.or_else(|| before.version.clone()),
        unreachable_since: unreachable_since.map(Time),
        observed_generation: facts.object.generation,
        source: before.source,
        workloads: number(totals.workloads),
        nodes,
        allocatable,
        token_expires: facts.credentials.expires.map(Time),
    }
}

fn ready(facts: &MemberFacts, health: &Health) -> Said {
    if facts.removed.is_some() {
        let message =
            "neither a file of the members' folder nor spec.secretRef tells how to reach it";
        return Said::new(false, "Removed", message);
    }
    if let Some(trouble) = &facts.trouble {
        return Said::new(false, trouble.reason, &*trouble.message);
    }
    let mut said = match health {
        Health::Healthy => Said::new(true, "Healthy", "the API server answers"),
        Health::Unknown => Said::new(false, "Unknown", "not probed yet"),
        Health::Failing { message, .. } => Said::new(false, "ProbeFailing", message),
        Health::Unauthorized { message } => Said::new(false, "Unauthorized", message),
        Health::Unreachable { message, .. } => Said::new(false, "Unreachable", message),
    };
    if let Some(trouble) = &facts.credentials.trouble {
        said.message = format!("{}; {trouble}", said.message);
    }
    said
}

fn synced(facts: &MemberFacts) -> Said {
    let sync = facts
        .access
        .as_ref()
        .map(|access| access.store.sync_state());
    match sync.unwrap_or(SyncState::NotSynced) {
        _ if !facts.followed && sync.is_some() => Said::new(
            false,
            "NotWatched",
            "its sets and pods are not watched any longer",
        ),
        SyncState::Synced => Said::new(true, "Synced", "its sets and pods are watched"),
        SyncState::NotSynced => {
            Said::new(false, "NotSynced", "its sets and pods are not listed yet")
        }
        SyncState::Stale { since } => {
            let message = format!("what is known of it is from {since:.0}");
            Said::new(false, "Stale", message)
        }
    }
}

/// How far a drain is. Where the member's state isn't known, nothing is said to be empty.
fn drained(ready: &Said, synced: &Said, totals: &WorkloadTotals) -> Said {
    if !ready.holds || !synced.holds {
        let why = if ready.holds { synced } else { ready };
        let message = format!("what is left there is not known: {}", why.message);
        return Said::new(false, "NotKnown", message);
    }
    if totals.replicas == 0 {
        let message = "no replica of any FederatedReplicaSet is left there";
        return Said::new(true, "Drained", message);
    }
    let named: Vec<String> = totals.first.iter().map(ToString::to_string).collect();
    let more = (totals.workloads as usize).saturating_sub(named.len());
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    let message = format!(
        "{} of {} left: {}{more}",
        pluralize(totals.replicas, "replica"),
        pluralize(totals.workloads, "FederatedReplicaSet"),
        named.join(", ")
    );
    Said::new(false, "Draining", message)
}

/// Whether `wanted` is to be written over `before` at once: what somebody waits for, and not only numbers that change
/// while something goes on.
pub(super) fn is_urgent(before: &MemberClusterStatus, wanted: &MemberClusterStatus) -> bool {
    let outline = |status: &MemberClusterStatus| {
        let mut conditions = status.conditions.clone();
        for condition in conditions.iter_mut().filter(|it| it.type_ == "Drained") {
            condition.message.clear();
        }
        MemberClusterStatus {
            conditions,
            version: status.version.clone(),
            unreachable_since: status.unreachable_since.clone(),
            token_expires: status.token_expires.clone(),
            ..MemberClusterStatus::default()
        }
    };
    outline(before) != outline(wanted)
}

fn number(count: u32) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

#[cfg(test)]
#[path = "status_tests.rs"]
mod tests;
