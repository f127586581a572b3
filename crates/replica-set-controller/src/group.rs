//! The group of each pod (L16), and the counts of them.

use std::collections::BTreeMap;

use fedrs_api::LocalRecord;
use jiff::Timestamp;

use crate::{
    copies::Copies,
    pod::{InPlace, Life, Owner, Pod, Readiness},
    record::Recorded,
    resize::{Resize, ResizeWait},
    set::Set,
    shutdown,
    time::{Next, after},
};

/// The group of a pod (L16). All but the first use the budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// It is available, and may be updated.
    Ready,
    /// It is being created or updated.
    InProgress,
    /// It does not become available.
    Failed,
    /// It is being removed.
    MarkedRemove,
}

/// A pod that counts, with its group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member<'a> {
    pub(crate) pod: &'a Pod<'a>,
    pub(crate) group: Group,
    /// Whether it has another revision than the current one.
    pub(crate) is_outdated: bool,
    /// What is under way with it.
    pub(crate) under_way: UnderWay,
    /// Whether it is starting for the first time, and no update is under way.
    pub(crate) is_starting: bool,
    /// Whether it is a replica.
    pub(crate) role: Role,
}

/// Whether a pod is one of the replicas, of which there are as many as the set wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Replica,
    /// It is a copy that has not taken the place of the pod that it was made for.
    Copy,
    /// Its copy is in its place.
    Copied,
    /// Another pod is in its place, though it may still run.
    Replaced,
}

/// What is under way with a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnderWay {
    Nothing,
    /// An update of it was recorded, and still holds.
    Update,
    /// Clients leave it though nothing of it is recorded: it was surplus, or its update or eviction is not wanted any more.
    Leaving,
}

impl Member<'_> {
    /// Whether it is beside the replicas.
    pub(crate) fn is_extra(&self) -> bool {
        self.role != Role::Replica
    }

    pub(crate) fn is_recorded(&self) -> bool {
        self.under_way == UnderWay::Update
    }

    pub(crate) fn is_leaving(&self) -> bool {
        self.under_way == UnderWay::Leaving
    }
}

/// Pods by group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupCounts {
    /// Available pods that may be updated.
    pub ready: usize,
    /// Pods that are being created or updated.
    pub in_progress: usize,
    /// Pods that do not become available.
    pub failed: usize,
    /// Pods that are being removed.
    pub marked_remove: usize,
}

/// The counts of a status.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Pods that run or are about to, without those that are being removed.
    pub live: usize,
    /// Ready pods.
    pub ready: usize,
    /// Available pods.
    pub available: usize,
    /// Live pods of the current revision.
    pub updated: usize,
    /// Available pods of the current revision.
    pub updated_available: usize,
    /// Pods that are being removed.
    pub terminating: usize,
    /// Pods by revision and group.
    pub revisions: BTreeMap<Option<u32>, GroupCounts>,
}

/// The pods that count, in the order of the input. `record` has what was recorded and still holds.
pub(crate) fn classify<'a>(
    set: &Set<'_>,
    pods: &'a [Pod<'a>],
    (record, recorded, copies): (&LocalRecord, &Recorded, &Copies),
    next: &mut Next,
    now: Timestamp,
) -> (Vec<Member<'a>>, Counts) {
    let mut counts = Counts::default();
    let mut members = Vec::with_capacity(pods.len());
    for (position, pod) in pods.iter().enumerate() {
        let has_record = recorded.has(position);
        let is_recorded = has_record && record.updates.contains_key(pod.uid);
        let is_being_updated = is_recorded || pod.shows_update();
        let is_outdated = set.is_outdated(pod);
        let is_evicted = has_record && is_evicted(pod, record);
        let is_leaving = pod.is_draining() && pod.is_live() && !is_evicted;
        let under_way = match (is_recorded, is_leaving) {
            (true, _) => UnderWay::Update,
            (false, true) => UnderWay::Leaving,
            (false, false) => UnderWay::Nothing,
        };
        let group = match pod.life {
            Life::Terminating { .. } if pod.owner != Owner::Nobody => {
                counts.terminating += 1;
                Group::MarkedRemove
            }
            Life::Live(readiness) if pod.is_live() => {
                let is_available = is_available(set, pod, next, now);
                let is_updated = !is_outdated && pod.resize == Resize::Settled;
                counts.live += 1;
                counts.ready += usize::from(pod.ready_since().is_some());
                counts.available += usize::from(is_available);
                counts.updated += usize::from(is_updated);
                counts.updated_available += usize::from(is_available && is_updated);
                if is_evicted || under_way == UnderWay::Leaving {
                    Group::MarkedRemove
                } else {
                    let state = (is_available, is_being_updated);
                    live_group(set, pod, readiness, state, next, now)
                }
            }
            _ => continue,
        };
        counts.revisions.entry(pod.revision).or_default().add(group);
        members.push(Member {
            pod,
            group,
            is_outdated,
            under_way,
            is_starting: group == Group::InProgress && !is_being_updated,
            role: if has_record && is_copied(pod, record) {
                Role::Copied
            } else if copies.has(pod.name) {
                Role::Copy
            } else if shutdown::is_replaced(set, pod, record, now) {
                Role::Replaced
            } else {
                Role::Replica
            },
        });
    }
    (members, counts)
}

/// Whether it has been ready for long enough, and its node still runs it.
fn is_available(set: &Set<'_>, pod: &Pod<'_>, next: &mut Next, now: Timestamp) -> bool {
    pod.ready_since().is_some_and(|since| {
        let from = after(since, set.min_ready);
        next.at(from, now);
        from <= now && !pod.is_on_lost_node()
    })
}

/// The group of a live pod.
fn live_group(
    set: &Set<'_>,
    pod: &Pod<'_>,
    readiness: Readiness<'_>,
    (is_available, is_being_updated): (bool, bool),
    next: &mut Next,
    now: Timestamp,
) -> Group {
    if is_available && !is_being_updated {
        return Group::Ready;
    }
    let has_failure = matches!(
        readiness,
        Readiness::NotReady {
            failure: Some(_),
            ..
        }
    );
    if has_failure || pod.is_on_lost_node() {
        return Group::Failed;
    }
    let begun = match (pod.in_place, pod.resize, readiness) {
        // It is carried out when there is room.
        (
            _,
            Resize::Pending {
                wait: ResizeWait::Room,
                ..
            },
            _,
        ) => None,
        // It does not run into the deadline while clients leave it.
        _ if pod.is_draining() => None,
        (InPlace::Restarting { since }, _, _)
        | (_, Resize::Due { since } | Resize::Pending { since, .. }, _)
        | (_, _, Readiness::NotReady { since, .. }) => Some(since),
        // It is ready, and counts as available after a while.
        (_, _, Readiness::Ready { .. }) => None,
    };
    let limits = begun.zip(set.progress_deadline);
    match limits.map(|(begun, deadline)| after(begun, deadline)) {
        Some(end) if end <= now => Group::Failed,
        Some(end) => {
            next.at(end, now);
            Group::InProgress
        }
        None => Group::InProgress,
    }
}

/// Whether its removal has begun by an eviction.
pub(crate) fn is_evicted(pod: &Pod<'_>, record: &LocalRecord) -> bool {
    let eviction = record.evictions.get(pod.uid);
    eviction.is_some_and(|eviction| eviction.begun)
}

/// Whether its copy is in its place.
fn is_copied(pod: &Pod<'_>, record: &LocalRecord) -> bool {
    let eviction = record.evictions.get(pod.uid);
    eviction.is_some_and(|eviction| eviction.begun && eviction.copy.is_some())
}

impl GroupCounts {
    fn add(&mut self, group: Group) {
        let count = match group {
            Group::Ready => &mut self.ready,
            Group::InProgress => &mut self.in_progress,
            Group::Failed => &mut self.failed,
            Group::MarkedRemove => &mut self.marked_remove,
        };
        *count += 1;
    }
}
