//! The number of pods is brought to `replicas`, at once and without a budget (L13, C1).

use std::collections::HashSet;

use jiff::Timestamp;

use crate::{
    account::Account,
    copies::Copies,
    group::Member,
    leave::{self, NextStep},
    names::free_names,
    order::{RemovalRank, by_removal, first},
    plan::{Action, CreateReason, PodWait, RemoveReason, Start, Wait},
    pod::{Life, Owner, Pod},
    record::Places,
    set::Set,
    slow_start::SlowStart,
    time::Next,
};

/// A pod that is removed, and why.
type Removal<'a> = (&'a Pod<'a>, RemoveReason<'a>);

/// Adopts pods that match and have no controller, and releases those that do not match any more (C6).
pub(crate) fn claim<'a>(pods: &'a [Pod<'a>]) -> impl Iterator<Item = Action<'a>> {
    pods.iter().filter_map(|pod| match (pod.owner, pod.life) {
        (Owner::Nobody, Life::Live(_)) => Some(Action::Adopt { pod }),
        (Owner::SetWithoutMatch, Life::Live(_)) => Some(Action::Release { pod }),
        _ => None,
    })
}

/// Creates pods: first those that are recreated, then those that are missing, then copies.
pub(crate) fn create<'a>(
    set: &Set<'_>,
    pods: &[Pod<'_>],
    account: &Account,
    (places, copies): (&Places, &Copies),
    slow_start: &SlowStart,
    now: Timestamp,
) -> (Vec<Action<'a>>, Option<Wait<'a>>) {
    let copied = copies.missing(pods, slow_start);
    let wanted = places.vacant.len() + account.missing + copied.len();
    if wanted == 0 {
        return (Vec::new(), None);
    }
    let allowed = slow_start.allowed(now);
    let vacant = &places.vacant[..places.vacant.len().min(allowed)];
    let missing = account.missing.min(allowed - vacant.len());
    let kept = places.vacant.iter().map(|place| &*place.name);
    let taken = slow_start.taken().chain(kept).chain(copies.names());
    let count = vacant.len() + missing;
    let mut names = free_names(set, pods, taken, slow_start.unanswered(), count).into_iter();
    let mut actions = Vec::new();
    for place in vacant {
        // A pod that was released while it was to be recreated keeps its name.
        let name = if slow_start.is_taken(&place.name) {
            names.next()
        } else {
            Some(place.name.clone())
        };
        actions.extend(name.map(|name| Action::Create {
            name,
            prefers: place.node.clone(),
            shard: place.shard.clone(),
            start: if place.gated {
                Start::Gated
            } else {
                Start::AtOnce
            },
            reason: CreateReason::Recreated,
        }));
    }
    actions.extend(names.take(missing).map(|name| Action::Create {
        name,
        prefers: None,
        shard: None,
        start: Start::AtOnce,
        reason: CreateReason::Missing,
    }));
    let rest = allowed.saturating_sub(actions.len());
    actions.extend(copied.iter().take(rest).map(|copy| Action::Create {
        name: copy.place.name.clone(),
        prefers: None,
        shard: copy.place.shard.clone(),
        start: match copy.is_held {
            _ if copy.place.gated => Start::Gated,
            true => Start::Held,
            false => Start::AtOnce,
        },
        reason: CreateReason::Copied,
    }));
    let waiting = wanted - actions.len();
    let wait = (waiting > 0).then(|| Wait::Creation {
        pods: waiting,
        until: slow_start.retry_at(now),
    });
    (actions, wait)
}

/// Removes the surplus, or else a crowded pod, once clients have left it. Returns the uids of the pods.
pub(crate) fn remove<'a>(
    set: &Set<'_>,
    members: &[Member<'a>],
    surplus: usize,
    (actions, waits): (&mut Vec<Action<'a>>, &mut Vec<Wait<'a>>),
    next: &mut Next,
    now: Timestamp,
) -> HashSet<&'a str> {
    let removed = match surplus {
        0 => crowded(members).into_iter().collect(),
        _ => first_surplus(members, surplus),
    };
    for (pod, reason) in &removed {
        let step = if pod.is_owned() {
            leave::remove(set, pod, *reason, next, now)
        } else {
            NextStep::Wait(PodWait::Adoption)
        };
        step.add_to(pod, actions, waits);
    }
    removed.into_iter().map(|(pod, _)| pod.uid).collect()
}

/// A pod that no node has room for, and for another one in its place may have. One after the other: each changes which slots are in
/// use.
fn crowded<'a>(members: &[Member<'a>]) -> Option<Removal<'a>> {
    let mut pods = members.iter().map(|member| member.pod);
    let pod = pods.find(|pod| pod.is_crowded && pod.is_owned() && pod.is_live())?;
    Some((pod, RemoveReason::Crowded))
}

/// The surplus, in the order of L21.
fn first_surplus<'a>(members: &[Member<'a>], surplus: usize) -> Vec<Removal<'a>> {
    let live = members.iter();
    let live = live.filter(|member| member.pod.is_live() && !member.is_extra());
    let mut live: Vec<_> = live.collect();
    let removed = first(&mut live, surplus, by_removal).iter();
    let removed = removed.map(|member| {
        let rank = RemovalRank::of(member);
        (member.pod, RemoveReason::Surplus { rank })
    });
    removed.collect()
}
