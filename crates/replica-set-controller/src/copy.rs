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
use jiff::Timestamp;
use planted_bugs::{PlantedBug, is_planted};

use crate::{
    account::Budget,
    group::{Group, Member, Role},
    leave,
    names::free_names,
    order::RemovalRank,
    plan::{Action, RemoveReason, Wait},
    pod::{Life, Pod},
    record::move_of,
    set::Set,
    slow_start::SlowStart,
    time::Next,
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
#[derive(Debug, Default)]
pub(crate) struct Copies(BTreeMap<String, Copy>);

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
        Self(copies.collect())
    }

    /// Whether the pod of this name is a copy that is not a replica yet.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Whether clients must not reach the pod of this name.
    pub(crate) fn holds(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|copy| copy.is_held)
    }

    /// The names of all.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Those that are to be created.
    pub(crate) fn missing(&self, pods: &[Pod<'_>], slow_start: &SlowStart) -> Vec<&Copy> {
        if self.0.is_empty() {
            return Vec::new();
        }
        let is_there = |name: &str| pods.iter().any(|pod| pod.name == name);
        let copies = self.0.values();
        let missing = copies.filter(|copy| {
            let name = &*copy.place.name;
            !copy.is_cancelled && !is_there(name) && !slow_start.is_taken(name)
        });
        missing.collect()
    }

    /// Removes those for whose pods nobody asks any more, within the budget, and those that are not available, and have an earlier template.
    /// Returns their uids.
    pub(crate) fn remove_useless<'a>(
        &self,
        set: &Set<'_>,
        members: &[Member<'a>],
        budget: &mut Budget<'a>,
        (actions, waits): (&mut Vec<Action<'a>>, &mut Vec<Wait<'a>>),
        (next, now): (&mut Next, Timestamp),
    ) -> Vec<&'a str> {
        let is_cancelled = |name: &str| self.0.get(name).is_some_and(|copy| copy.is_cancelled);
        let copies = members.iter().filter(|member| {
            let is_live = member.pod.is_live() && member.pod.is_owned();
            // Otherwise one of a broken template would be waited for, and its update for its old pod.
            let is_stale = member.is_outdated && member.group != Group::Ready;
            let is_copy = member.role == Role::Copy;
            is_live && is_copy && (is_stale || is_cancelled(member.pod.name))
        });
        let mut removed = Vec::new();
        for member in copies {
            if budget.allows(member) {
                budget.take(member, Group::MarkedRemove);
                let rank = RemovalRank::of(member);
                let reason = RemoveReason::Surplus { rank };
                let step = leave::remove(set, member.pod, reason, next, now);
                step.add_to(member.pod, actions, waits);
                removed.push(member.pod.uid);
            }
        }
        removed
    }
}

/// The pods beside the replicas: the names of copies, and the uids of pods in whose places copies are.
pub(crate) fn extra(record: &LocalRecord) -> HashSet<String> {
    let evictions = record.evictions.iter();
    let extra = evictions.filter_map(|(uid, eviction)| {
        let copy = eviction.copy.as_ref()?;
        Some(if eviction.begun { uid } else { &copy.name }.clone())
    });
    extra.collect()
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

/// Whether the copy of a pod may take its place (M3): it is available, and nobody has to confirm more.
pub(crate) fn may_replace(
    set: &Set<'_>,
    members: &[Member<'_>],
    member: &Member<'_>,
    record: &LocalRecord,
) -> bool {
    let eviction = record.evictions.get(member.pod.uid);
    let Some(copy) = eviction.and_then(|eviction| eviction.copy.as_ref()) else {
        return false;
    };
    let is_copy = |other: &&Member<'_>| other.pod.name == copy.name && other.pod.is_owned();
    let found = members.iter().find(is_copy);
    let is_available = found.is_some_and(|copy| copy.group == Group::Ready)
        || is_planted(PlantedBug::CopyNotAwaited);
    eviction.is_some_and(|eviction| eviction.begun) || is_available && !is_kept(set, member.pod)
}

/// The old pods that run beside their copies, or may.
pub(crate) fn under_way(members: &[Member<'_>], record: &LocalRecord) -> usize {
    let is_copied = |member: &&Member<'_>| {
        let eviction = record.evictions.get(member.pod.uid);
        eviction.is_some_and(|eviction| eviction.copy.is_some())
    };
    let copied = members.iter().filter(is_copied);
    let running = copied.filter(|member| member.pod.is_live() || member.pod.may_still_run());
    running.count()
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

/// The place of a copy of `pod`, under a name that is free.
pub(crate) fn place(
    set: &Set<'_>,
    pods: &[Pod<'_>],
    pod: &Pod<'_>,
    (record, slow_start): (&LocalRecord, &SlowStart),
) -> Option<RecreateRecord> {
    let evictions = record.evictions.values();
    let places = evictions.flat_map(|eviction| [&eviction.copy, &eviction.recreate]);
    let updates = record.updates.values().map(|update| &update.recreate);
    let kept = places.chain(updates).flatten().map(|place| &*place.name);
    let taken = slow_start.taken().chain(slow_start.unanswered());
    let names = free_names(set, pods, taken.chain(kept), std::iter::empty(), 1);
    let place = move_of(set, pod);
    let name = names.into_iter().next()?;
    Some(RecreateRecord { name, ..place })
}

/// Copies whose names others have get other ones.
pub(crate) fn rename_taken(
    set: &Set<'_>,
    pods: &[Pod<'_>],
    record: &mut LocalRecord,
    slow_start: &SlowStart,
) {
    let is_taken = |place: &RecreateRecord| slow_start.is_taken(&place.name);
    let evictions = record.evictions.iter();
    let evictions = evictions.filter(|(_, eviction)| !eviction.begun);
    let taken = evictions.filter(|(_, eviction)| eviction.copy.as_ref().is_some_and(is_taken));
    let taken: Vec<_> = taken.map(|(uid, _)| uid.clone()).collect();
    for uid in taken {
        let pod = pods.iter().find(|pod| pod.uid == uid);
        let renamed = pod.and_then(|pod| place(set, pods, pod, (record, slow_start)));
        if let (Some(eviction), Some(renamed)) = (record.evictions.get_mut(&uid), renamed) {
            eviction.copy = Some(renamed);
        }
    }
}
