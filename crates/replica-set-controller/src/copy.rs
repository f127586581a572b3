//! When pods are copied, and when the copies take their places (M2, M3): see [`copies`](crate::copies).

use fedrs_api::{LocalRecord, RecreateRecord};
use jiff::Timestamp;
use planted_bugs::{PlantedBug, is_planted};

use crate::{
    account::Budget,
    copies::{self, Copies},
    group::{Group, Member, Role},
    leave,
    names::free_names,
    order::RemovalRank,
    plan::{Action, RemoveReason, Wait},
    pod::Pod,
    record::move_of,
    set::Set,
    slow_start::SlowStart,
    time::Next,
};

/// Whether the copy of a pod may take its place (M3): it is available, and nobody has to confirm more.
pub(crate) fn may_replace(
    set: &Set<'_>,
    members: &[Member<'_>],
    (pod, copy): (&Pod<'_>, &RecreateRecord),
) -> bool {
    let is_copy = |other: &&Member<'_>| other.pod.name == copy.name && other.pod.is_owned();
    let found = members.iter().find(is_copy);
    let is_available = found.is_some_and(|copy| copy.group == Group::Ready)
        || is_planted(PlantedBug::CopyNotAwaited);
    is_available && !copies::is_kept(set, pod)
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

/// Removes copies whose pods nobody asks to leave any more, within the budget, and those that are not available, and have an earlier template.
/// Returns their uids.
pub(crate) fn remove_useless<'a>(
    (set, copies): (&Set<'_>, &Copies),
    members: &[Member<'a>],
    budget: &mut Budget<'a>,
    (actions, waits): (&mut Vec<Action<'a>>, &mut Vec<Wait<'a>>),
    (next, now): (&mut Next, Timestamp),
) -> Vec<&'a str> {
    let useless = members.iter().filter(|member| {
        let is_live = member.pod.is_live() && member.pod.is_owned();
        // Otherwise one of a broken template would be waited for, and its update for its old pod.
        let is_stale = member.is_outdated && member.group != Group::Ready;
        let is_copy = member.role == Role::Copy;
        is_live && is_copy && (is_stale || copies.is_cancelled(member.pod.name))
    });
    let mut removed = Vec::new();
    for member in useless {
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
