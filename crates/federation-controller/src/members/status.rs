//! The status of a MemberCluster, from what is known of the member. Pure.

use std::time::Duration;

use cluster_informer::{Health, NodeInfo, SyncState, UnreadNamespace, WorkloadTotals};
use fedrs_api::{
    ConditionStatus, LocalKind, MemberClusterStatus, MemberConditionType, MemberReason,
    NewCondition, NodeCounts, conditions,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::registry::MemberState;
use crate::messages;

/// The shortest time between two writes of mere progress, such as a drain.
pub(super) const PROGRESS_PERIOD: Duration = Duration::from_secs(10);
/// Sets that the condition Drained names.
const NAMES: usize = 3;

/// A condition of a MemberCluster.
type MemberCondition = NewCondition<MemberConditionType, MemberReason>;

/// The status of `member`, after `before`: a condition keeps the time of its last transition, and what is not
/// known yet stays as it was.
pub(super) fn status(
    before: &MemberClusterStatus,
    member: &MemberState,
    now: Timestamp,
) -> MemberClusterStatus {
    let store = member.access.as_ref().map(|access| &access.store);
    let health = store.map_or(Health::Unknown, |store| store.health());
    let info = store.map(|store| store.cluster_info()).unwrap_or_default();
    let totals = store.map(|store| store.totals(NAMES)).unwrap_or_default();
    let unread = store.map(|store| store.unread_namespaces());
    let unread = unread.unwrap_or_default();
    let ready = ready(member, &health, info.nodes);
    let synced = synced(member, &unread);
    let drained = (member.spec.drain).then(|| drained(member, &ready, &synced, &unread, &totals));
    let summary = summary(member, &ready, drained.as_ref());
    let generation = member.object.generation;
    let conditions = [Some(ready), Some(synced), drained].into_iter().flatten();
    let conditions = conditions.map(|new| new.into_condition(&before.conditions, generation, now));
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
    MemberClusterStatus {
        summary,
        conditions: conditions.collect(),
        version: info.version.or_else(|| before.version.clone()),
        unreachable_since: unreachable_since(before, member, &health).map(Time),
        observed_generation: generation,
        // After a restart the last source is a better guess than none.
        source: match member.removed {
            Some(_) => None,
            None => member.credentials.source.or(before.source),
        },
        workloads: number(totals.workloads),
        nodes,
        allocatable,
        token_expires: member.credentials.expires.map(Time),
        internal: member.outage.internal.clone(),
    }
}

/// Since when the member is unreachable, or without a kubeconfig.
fn unreachable_since(
    before: &MemberClusterStatus,
    member: &MemberState,
    health: &Health,
) -> Option<Timestamp> {
    let ready_before = conditions::find(&before.conditions, MemberConditionType::Ready);
    let was_removed =
        ready_before.is_some_and(|condition| condition.reason == MemberReason::Removed.as_str());
    match health {
        // A restart does not begin it anew.
        _ if member.removed.is_some() && was_removed => {
            before.unreachable_since.as_ref().map(|time| time.0)
        }
        _ if member.removed.is_some() => member.removed,
        Health::Unreachable { since, .. } => Some(*since),
        _ => None,
    }
}

/// As `kubectl get nodes` shows the state of a node: `Ready,SchedulingDisabled`.
fn summary(
    member: &MemberState,
    ready: &MemberCondition,
    drained: Option<&MemberCondition>,
) -> String {
    let ready = match ready.status {
        ConditionStatus::True => "Ready",
        ConditionStatus::False => "NotReady",
        ConditionStatus::Unknown => "Unknown",
    };
    let excluded = match drained.map(|drained| drained.status) {
        Some(ConditionStatus::True) => ",Drained",
        Some(_) => ",Draining",
        None if member.spec.unschedulable => ",SchedulingDisabled",
        None => "",
    };
    format!("{ready}{excluded}")
}

fn ready(member: &MemberState, health: &Health, nodes: NodeInfo) -> MemberCondition {
    use ConditionStatus::{False, True, Unknown};
    let new = |status: ConditionStatus, reason, message: &str| {
        MemberCondition::new(MemberConditionType::Ready, status, reason, message)
    };
    if member.removed.is_some() {
        let message = match member.outage.lost_at {
            Some(time) => messages::lost_at(messages::NO_KUBECONFIG, time),
            None => messages::NO_KUBECONFIG.to_owned(),
        };
        return new(False, MemberReason::Removed, &message);
    }
    if let Some(error) = &member.source_error {
        return new(False, error.reason(), &error.to_string());
    }
    let mut ready = match health {
        Health::Healthy if nodes.none_is_ready() => {
            new(False, MemberReason::NoReadyNodes, messages::NO_READY_NODES)
        }
        Health::Healthy if nodes.none_is_confirmed() => new(
            Unknown,
            MemberReason::NodesUnconfirmed,
            messages::NODES_UNCONFIRMED,
        ),
        Health::Healthy => match member.outage.stabilizing {
            Some((until, losses)) => new(
                True,
                MemberReason::Stabilizing,
                &messages::stabilizing(until, losses),
            ),
            None => new(True, MemberReason::Healthy, messages::API_SERVER_ANSWERS),
        },
        Health::Failing { message, .. } | Health::Unreachable { message, .. }
            if member.outage.disconnected =>
        {
            let message = messages::controller_disconnected(message);
            new(Unknown, MemberReason::ControllerDisconnected, &message)
        }
        Health::Unknown => new(False, MemberReason::NotProbed, messages::NOT_PROBED),
        Health::Failing { message, .. } => new(False, MemberReason::ProbeFailing, message),
        Health::Unauthorized { message } => new(False, MemberReason::Unauthorized, message),
        Health::Unreachable { message, .. } => new(False, MemberReason::Unreachable, message),
    };
    if ready.status == ConditionStatus::False
        && let Some(time) = member.outage.lost_at
    {
        ready.message = messages::lost_at(&ready.message, time);
    }
    if let Some(error) = &member.credentials.renewal_error {
        ready.message = format!("{}; {error}", ready.message);
    }
    ready
}

fn synced(member: &MemberState, unread: &[UnreadNamespace]) -> MemberCondition {
    use ConditionStatus::{False, True};
    let new = |status: ConditionStatus, reason, message: &str| {
        MemberCondition::new(MemberConditionType::Synced, status, reason, message)
    };
    let store = member.access.as_ref().map(|access| &access.store);
    let sync = store.map(|store| store.sync_state());
    let exceeded = store.and_then(|store| store.exceeded_limit());
    match sync.unwrap_or(SyncState::NotSynced) {
        _ if !member.followed && sync.is_some() => {
            new(False, MemberReason::NotWatched, messages::NOT_WATCHED)
        }
        // What will be known in seconds must not change the condition of a quiet member each time.
        SyncState::Synced | SyncState::Unconfirmed => {
            let message = if store.is_some_and(|store| store.lacks(LocalKind::LocalReplicaSet)) {
                format!("{}; {}", messages::SYNCED, messages::KIND_NOT_INSTALLED)
            } else {
                messages::SYNCED.to_owned()
            };
            new(True, MemberReason::Synced, &message)
        }
        SyncState::NotSynced | SyncState::Stale { .. } if exceeded.is_some() => {
            new(False, MemberReason::Degraded, &exceeded.unwrap_or_default())
        }
        SyncState::NotSynced => new(
            False,
            MemberReason::NotSynced,
            &messages::in_namespaces(messages::NOT_SYNCED, unread),
        ),
        SyncState::Stale { since } => new(
            False,
            MemberReason::Stale,
            &messages::in_namespaces(&messages::stale(since), unread),
        ),
    }
}

/// The progress of a drain. Where the state of the member is unknown, it is not known to be empty; a namespace in which no
/// set had replicas when it was last read is.
fn drained(
    member: &MemberState,
    ready: &MemberCondition,
    synced: &MemberCondition,
    unread: &[UnreadNamespace],
    totals: &WorkloadTotals,
) -> MemberCondition {
    use ConditionStatus::{False, True};
    let new = |status: ConditionStatus, reason, message: &str| {
        MemberCondition::new(MemberConditionType::Drained, status, reason, message)
    };
    let holds = |condition: &MemberCondition| condition.status == ConditionStatus::True;
    let had_replicas = |namespace: &UnreadNamespace| member.occupied.contains(&namespace.name);
    let is_known = holds(synced) || !unread.is_empty() && !unread.iter().any(had_replicas);
    if !holds(ready) || !is_known {
        let why = if holds(ready) { synced } else { ready };
        return new(
            False,
            MemberReason::Unknown,
            &messages::drain_unknown(&why.message),
        );
    }
    if totals.replicas == 0 {
        return new(True, MemberReason::Drained, messages::DRAINED);
    }
    new(False, MemberReason::Draining, &messages::draining(totals))
}

/// Whether `wanted` is written at once: it differs from `before` in more than the numbers of something in progress.
pub(super) fn is_urgent(before: &MemberClusterStatus, wanted: &MemberClusterStatus) -> bool {
    let outline = |status: &MemberClusterStatus| {
        let mut conditions = status.conditions.clone();
        for condition in conditions
            .iter_mut()
            .filter(|condition| condition.type_ == MemberConditionType::Drained.as_str())
        {
            condition.message.clear();
        }
        MemberClusterStatus {
            conditions,
            version: status.version.clone(),
            unreachable_since: status.unreachable_since.clone(),
            token_expires: status.token_expires.clone(),
            source: status.source,
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
