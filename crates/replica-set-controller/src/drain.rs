//! Nodes that are being drained through Kubernetes' eviction subresource (L19).
//!
//! Such an eviction is seen only once the API server has granted it, and it grants none while the budget is used for updates. So
//! updates wait for a while if a node with pods of the set is cordoned, as `kubectl drain` does first. A cordon by itself moves
//! nothing, and if no eviction follows, the updates go on.
//!
//! A set that may make nothing unavailable, as one of a federation without a loan, asks for what a drain needs in the same way: for a
//! while after the cordon, and after each eviction. If none follows, it asks again later.

use std::{collections::BTreeSet, time::Duration};

use fedrs_api::{DrainRecord, LocalRecord};
use jiff::Timestamp;

use crate::{
    group::{Group, Member},
    pod::{Node, Pod},
    set::Set,
    time::{Next, after},
};

/// How long an eviction may take once the PodDisruptionBudget allows it. `kubectl drain` tries again every 5 s.
const PATIENCE: Duration = Duration::from_secs(30);

/// Forgets nodes that are not drained any more, and records since when evictions are allowed.
pub(crate) fn reconcile(
    members: &[Member<'_>],
    record: &mut LocalRecord,
    is_allowed: bool,
    now: Timestamp,
) {
    if record.drains.is_empty() {
        return;
    }
    let nodes = cordoned(members);
    record.drains.retain(|node, _| nodes.contains(&**node));
    for drain in record.drains.values_mut() {
        if is_allowed && drain.allowed.is_none() {
            drain.allowed = Some(now);
        }
    }
}

/// A pod was evicted by others: the drain of its node goes on.
pub(crate) fn observe(pod: &Pod<'_>, record: &mut LocalRecord, now: Timestamp) {
    let drain = pod.node.and_then(|node| record.drains.get_mut(node.name));
    if let Some(drain) = drain {
        drain.since = now;
        drain.allowed = drain.allowed.and(Some(now));
    }
}

/// Until when updates wait for drains, which are recorded; `None` if they do not.
pub(crate) fn delay_until(
    set: &Set<'_>,
    members: &[Member<'_>],
    record: &mut LocalRecord,
    now: Timestamp,
) -> Option<Timestamp> {
    for node in cordoned(members) {
        if !record.drains.contains_key(node) {
            let drain = DrainRecord {
                since: now,
                allowed: None,
            };
            record.drains.insert(node.to_owned(), drain);
        }
    }
    let ends = record.drains.values().map(|drain| end(set, drain));
    ends.filter(|end| *end > now).max()
}

/// Available pods of cordoned nodes that evictions may follow for. Of a set without a budget, these are recorded.
pub(crate) fn waiting(
    set: &Set<'_>,
    members: &[Member<'_>],
    (record, lends_nothing): (&mut LocalRecord, bool),
    next: &mut Next,
    now: Timestamp,
) -> usize {
    if lends_nothing {
        ask(set, members, record, now);
    }
    let is_waiting = |member: &&Member<'_>| {
        let is_left = |node: &Node<'_>| node.is_cordoned && member.group == Group::Ready;
        let node = member.pod.node.filter(is_left);
        let drain = node.and_then(|node| record.drains.get(node.name));
        drain.is_some_and(|drain| end(set, drain) > now)
    };
    let waiting = members.iter().filter(is_waiting).count();
    for drain in record.drains.values() {
        let end = end(set, drain);
        next.at(end, now);
        next.at(after(end, set.eviction_timeout), now);
    }
    waiting
}

/// Records the cordoned nodes that are not known, and those for which nothing was asked for long.
fn ask(set: &Set<'_>, members: &[Member<'_>], record: &mut LocalRecord, now: Timestamp) {
    for node in cordoned(members) {
        let is_due = |drain: &DrainRecord| after(end(set, drain), set.eviction_timeout) <= now;
        if record.drains.get(node).is_none_or(is_due) {
            let drain = DrainRecord {
                since: now,
                allowed: None,
            };
            record.drains.insert(node.to_owned(), drain);
        }
    }
}

fn end(set: &Set<'_>, drain: &DrainRecord) -> Timestamp {
    let last = after(drain.since, set.eviction_timeout);
    let allowed = drain.allowed.map(|allowed| after(allowed, PATIENCE));
    allowed.map_or(last, |end| end.min(last))
}

/// The cordoned nodes that pods of the set run on.
fn cordoned<'a>(members: &[Member<'a>]) -> BTreeSet<&'a str> {
    let live = members.iter().filter(|member| member.pod.is_live());
    let nodes = live.filter_map(|member| member.pod.node);
    nodes
        .filter(|node| node.is_cordoned && node.is_ready)
        .map(|node| node.name)
        .collect()
}
