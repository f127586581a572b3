//! The order in which pods are removed (L21), evicted and updated (L22). Each is total: it depends on the pods alone, and not on
//! the order in which they are listed.
//!
//! Among pods of one rank, those whose loss hurts least go first, as with a ReplicaSet: without a node, not ready, a lower
//! deletion cost, ready for a shorter time, more restarts, younger; at last by name.

use std::cmp::{Ordering, Reverse};

use crate::{
    account::cost,
    group::{Group, Member},
    pod::Pod,
};

/// The rank of a pod for removal (L21). The first ones are removed first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RemovalRank {
    /// It is being removed already.
    MarkedRemove,
    /// Its eviction is requested.
    EvictionRequested,
    /// It has failed, and has not the current revision.
    OutdatedFailed,
    /// It is in progress, and has not the current revision.
    OutdatedInProgress,
    /// It is ready, and has not the current revision.
    OutdatedReady,
    /// It has failed, and has the current revision.
    Failed,
    /// It is in progress, and has the current revision.
    InProgress,
    /// It is ready, and has the current revision.
    Ready,
}

/// The rank of an outdated pod for its update (L22), and of any pod for its eviction. The first ones go first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum UpdateRank {
    MarkedRemove,
    EvictionRequested,
    Failed,
    InProgress,
    Ready,
}

impl RemovalRank {
    pub(crate) fn of(member: &Member<'_>) -> Self {
        match (member.group, member.pod.eviction, member.is_outdated) {
            (Group::MarkedRemove, _, _) => Self::MarkedRemove,
            (_, Some(_), _) => Self::EvictionRequested,
            (Group::Failed, None, true) => Self::OutdatedFailed,
            (Group::InProgress, None, true) => Self::OutdatedInProgress,
            (Group::Ready, None, true) => Self::OutdatedReady,
            (Group::Failed, None, false) => Self::Failed,
            (Group::InProgress, None, false) => Self::InProgress,
            (Group::Ready, None, false) => Self::Ready,
        }
    }
}

impl UpdateRank {
    pub(crate) fn of(member: &Member<'_>) -> Self {
        match (member.group, member.pod.eviction) {
            (Group::MarkedRemove, _) => Self::MarkedRemove,
            (_, Some(_)) => Self::EvictionRequested,
            (group, None) => Self::of_group(group),
        }
    }

    fn of_group(group: Group) -> Self {
        match group {
            Group::MarkedRemove => Self::MarkedRemove,
            Group::Failed => Self::Failed,
            Group::InProgress => Self::InProgress,
            Group::Ready => Self::Ready,
        }
    }
}

/// L21. A surplus pod that clients leave stays the first one whatever happens to the others, so that no other one drains instead.
pub(crate) fn by_removal(a: &Member<'_>, b: &Member<'_>) -> Ordering {
    let key = |member: &Member<'_>| (RemovalRank::of(member), !member.is_leaving());
    let ranks = key(a).cmp(&key(b));
    ranks.then_with(|| by_loss(a.pod, b.pod))
}

/// L22, after what costs nothing: an available pod that waits for its migration does not take the turn of one that has failed.
pub(crate) fn by_update(a: &Member<'_>, b: &Member<'_>) -> Ordering {
    let key = |member: &Member<'_>| (cost(member), UpdateRank::of(member));
    key(a).cmp(&key(b)).then_with(|| by_loss(a.pod, b.pod))
}

/// Involuntary evictions first, then as L22 has it; of running pods, the one whose deadline is nearest (M15).
pub(crate) fn by_eviction(a: &Member<'_>, b: &Member<'_>) -> Ordering {
    let key = |member: &Member<'_>| {
        let deadline = member.pod.migration.map(|asked| asked.deadline);
        let rank = UpdateRank::of_group(member.group);
        (member.pod.eviction, rank, deadline)
    };
    key(a).cmp(&key(b)).then_with(|| by_loss(a.pod, b.pod))
}

/// The pod whose loss hurts less comes first.
fn by_loss(a: &Pod<'_>, b: &Pod<'_>) -> Ordering {
    let key = |pod: &Pod<'_>| {
        (
            pod.node.is_some(),
            pod.ready_since().is_some(),
            pod.deletion_cost,
            Reverse(pod.ready_since()),
            Reverse(pod.restarts),
            Reverse(pod.created),
        )
    };
    let loss = key(a).cmp(&key(b));
    loss.then_with(|| (a.name, a.uid).cmp(&(b.name, b.uid)))
}

/// The first `count` of `members`, in order. The rest is not sorted: a step changes few of many pods.
pub(crate) fn first<'m, 'a>(
    members: &'m mut [&'m Member<'a>],
    count: usize,
    order: impl Fn(&Member<'_>, &Member<'_>) -> Ordering,
) -> &'m [&'m Member<'a>] {
    if count < members.len() {
        members.select_nth_unstable_by(count, |a, b| order(a, b));
    }
    let count = count.min(members.len());
    let first = &mut members[..count];
    first.sort_unstable_by(|a, b| order(a, b));
    first
}
