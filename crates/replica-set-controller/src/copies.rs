//! Pods that are copied before they are removed (M2, M4).
//!
//! ```text
//! asked to leave -> recorded with the name of its copy -> Create -> the copy has a node, and is available -> begun: the old pod is removed
//!                   the old pod is the replica, the copy is extra                                             the copy is the replica
//! ```
//!
//! So one pod more runs for the time, and none less. If the old pod is gone before that, the copy is an ordinary pod of the set; if nobody
//! asks it to leave any more, the copy is removed.
//!
//! The removal of either uses the budget until it is over: evictions of others are granted by the pods that are available, with the one
//! that is about to be removed.

use std::collections::{BTreeMap, HashSet};

use fedrs_api::{EvictionRecord, LocalRecord, RecreateRecord, ValidCopy};

use crate::{
    pod::{Life, Pod},
    set::Set,
    shutdown,
    slow_start::SlowStart,
};

/// A copy that has not taken the place of the old pod.
#[derive(Clone, Debug)]
pub(crate) struct Copy {
    /// What is created.
    pub(crate) place: RecreateRecord,
    /// Whether clients must not reach it before a person has confirmed it (M4).
    pub(crate) is_held: bool,
    /// Whether nobody asks the old pod to leave any more.
    is_cancelled: bool,
}

/// The copies of a step that have not taken the places of the old pods, by their names.
#[derive(Debug)]
pub(crate) struct Copies {
    by_name: BTreeMap<String, Copy>,
    /// How many may be created now.
    room: usize,
}

impl Copies {
    /// Those that are recorded.
    pub(crate) fn of(set: &Set<'_>, pods: &[Pod<'_>], record: &LocalRecord) -> Self {
        let recorded = record.evictions.iter();
        let recorded = recorded.filter(|(_, eviction)| !eviction.begun);
        let copies = recorded.filter_map(|(uid, eviction)| {
            let place = eviction.copy.clone()?;
            let pod = pods.iter().find(|pod| pod.uid == uid);
            let copy = Copy {
                is_held: is_held(set, pod),
                is_cancelled: pod.is_none_or(|pod| pod.eviction.is_none()),
                place,
            };
            Some((copy.place.name.clone(), copy))
        });
        Self {
            by_name: copies.collect(),
            room: room(set, pods, record),
        }
    }

    /// Whether the pod of this name is a copy that is not a replica yet.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// Whether clients must not reach the pod of this name.
    pub(crate) fn holds(&self, name: &str) -> bool {
        self.by_name.get(name).is_some_and(|copy| copy.is_held)
    }

    /// The names of all.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }

    /// Those that are to be created.
    pub(crate) fn missing(&self, pods: &[Pod<'_>], slow_start: &SlowStart) -> Vec<&Copy> {
        if self.by_name.is_empty() {
            return Vec::new();
        }
        let is_there = |name: &str| pods.iter().any(|pod| pod.name == name);
        let copies = self.by_name.values();
        let missing = copies.filter(|copy| {
            let name = &*copy.place.name;
            !copy.is_cancelled && !is_there(name) && !slow_start.is_taken(name)
        });
        missing.take(self.room).collect()
    }

    /// Whether the pod of this name is a copy of one that nobody asks to leave any more.
    pub(crate) fn is_cancelled(&self, name: &str) -> bool {
        self.by_name.get(name).is_some_and(|copy| copy.is_cancelled)
    }
}

/// The pods beside the replicas: copies by their names, and pods in whose places copies are by their uids.
pub(crate) struct Extra(HashSet<String>);

impl Extra {
    /// Whether the pod is among them.
    pub(crate) fn is_of(&self, pod: &Pod<'_>) -> bool {
        !self.0.is_empty() && (self.0.contains(pod.uid) || self.0.contains(pod.name))
    }
}

/// The pods beside the replicas.
pub(crate) fn extra(record: &LocalRecord) -> Extra {
    let evictions = record.evictions.iter();
    let extra = evictions.filter_map(|(uid, eviction)| {
        let copy = eviction.copy.as_ref()?;
        Some(if eviction.begun { uid } else { &copy.name }.clone())
    });
    Extra(extra.collect())
}

/// The removed pods without a place that may still run under `HandsUp`, such as those that were surplus: they count as copied pods do, or
/// more pods than the replicas and the copies might run (M11).
pub(crate) fn displaced(set: &Set<'_>, pods: &[Pod<'_>], record: &LocalRecord) -> usize {
    if !set.migration.waits_for_stop() {
        return 0;
    }
    let extra = extra(record);
    let displaced = pods.iter().filter(|pod| {
        let is_replica = pod.is_owned() && !extra.is_of(pod);
        is_replica && pod.may_still_run() && !shutdown::keeps_name(pod, record)
    });
    displaced.count()
}

/// How many copies may be created now: pods may have been displaced since these were recorded.
fn room(set: &Set<'_>, pods: &[Pod<'_>], record: &LocalRecord) -> usize {
    let Some(copy) = set.migration.copy() else {
        return usize::MAX;
    };
    let displaced = displaced(set, pods, record);
    if displaced == 0 {
        return usize::MAX;
    }
    let extra = extra(record);
    let running = pods
        .iter()
        .filter(|pod| extra.is_of(pod) && (pod.is_live() || pod.may_still_run()));
    (copy.max_at_once).saturating_sub(running.count() + displaced)
}

/// Whether clients must not reach the copy of this pod before a person has confirmed it (M4).
pub(crate) fn is_held(set: &Set<'_>, pod: Option<&Pod<'_>>) -> bool {
    let is_asked = |copy: ValidCopy| copy.confirm_before_activation;
    let is_confirmed = pod.is_some_and(|pod| pod.confirmed().is_some_and(|of| of.may_activate));
    set.migration.copy().is_some_and(is_asked) && !is_confirmed
}

/// Whether this pod must not be shut down before a person has confirmed it (M4).
pub(crate) fn is_kept(set: &Set<'_>, pod: &Pod<'_>) -> bool {
    let is_asked = |copy: ValidCopy| copy.confirm_before_shutdown;
    let is_confirmed = pod.confirmed().is_some_and(|of| of.may_shut_down);
    set.migration.copy().is_some_and(is_asked) && !is_confirmed
}

/// Whether the copy takes the place of this pod because others have removed it.
pub(crate) fn takes_over(
    eviction: &EvictionRecord,
    pod: Option<&Pod<'_>>,
    pods: &[Pod<'_>],
) -> bool {
    let is_removed = pod.is_some_and(|pod| matches!(pod.life, Life::Terminating { .. }));
    let is_there = |copy: &RecreateRecord| {
        let mut live = pods.iter().filter(|pod| pod.is_live());
        live.any(|pod| pod.name == copy.name)
    };
    is_removed && !eviction.begun && eviction.copy.as_ref().is_some_and(is_there)
}
