//! The number of pods is brought to `replicas`, at once and without a budget (L13, C1).

use jiff::Timestamp;

use crate::{
    account::Account,
    group::Member,
    names::free_names,
    order::{RemovalRank, by_removal, first},
    plan::{Action, CreateReason, PodWait, RemoveReason, Wait},
    pod::{Life, Owner, Pod},
    record::Places,
    set::Set,
    slow_start::SlowStart,
};

/// Adopts pods that match and have no controller, and releases those that do not match any more (C6).
pub(crate) fn claim<'a>(pods: &'a [Pod<'a>]) -> impl Iterator<Item = Action<'a>> {
    pods.iter().filter_map(|pod| match (pod.owner, pod.life) {
        (Owner::Nobody, Life::Live(_)) => Some(Action::Adopt { pod }),
        (Owner::SetWithoutMatch, Life::Live(_)) => Some(Action::Release { pod }),
        _ => None,
    })
}

/// Creates pods: first those that are recreated, then those that are missing.
pub(crate) fn create<'a>(
    set: &Set<'_>,
    pods: &[Pod<'_>],
    account: &Account,
    places: &Places,
    slow_start: &SlowStart,
    now: Timestamp,
) -> (Vec<Action<'a>>, Option<Wait<'a>>) {
    let wanted = places.vacant.len() + account.missing;
    if wanted == 0 {
        return (Vec::new(), None);
    }
    let allowed = slow_start.allowed(now);
    let vacant = places.vacant.iter().take(allowed);
    let recreated = vacant.map(|place| Action::Create {
        name: place.name.clone(),
        prefers: place.node.clone(),
        reason: CreateReason::Recreated,
    });
    let mut actions: Vec<_> = recreated.collect();
    let missing = account.missing.min(allowed - actions.len());
    let kept = places.vacant.iter().map(|place| &*place.name);
    let taken = slow_start.taken().chain(kept);
    let names = free_names(set, pods, taken, slow_start.unanswered(), missing);
    actions.extend(names.into_iter().map(|name| Action::Create {
        name,
        prefers: None,
        reason: CreateReason::Missing,
    }));
    let waiting = wanted - actions.len();
    let wait = (waiting > 0).then(|| Wait::Creation {
        pods: waiting,
        until: slow_start.retry_at(now),
    });
    (actions, wait)
}

/// Removes a pod that no node has room for, and for another one in its place may have. One after the other: each changes which slots
/// are in use.
pub(crate) fn replace_crowded<'a>(members: &[Member<'a>]) -> Option<Action<'a>> {
    let mut pods = members.iter().map(|member| member.pod);
    let pod = pods.find(|pod| pod.is_crowded && pod.is_owned() && pod.is_live())?;
    let reason = RemoveReason::Crowded;
    Some(Action::Remove { pod, reason })
}

/// Removes the surplus, in the order of L21.
pub(crate) fn remove<'a>(
    members: &[Member<'a>],
    surplus: usize,
    actions: &mut Vec<Action<'a>>,
    waits: &mut Vec<Wait<'a>>,
) {
    if surplus == 0 {
        return;
    }
    let live = members.iter().filter(|member| member.pod.is_live());
    let mut live: Vec<_> = live.collect();
    for member in first(&mut live, surplus, by_removal) {
        let pod = member.pod;
        if pod.is_owned() {
            let rank = RemovalRank::of(member);
            let reason = RemoveReason::Surplus { rank };
            actions.push(Action::Remove { pod, reason });
        } else {
            waits.push(Wait::Pod {
                pod: pod.name,
                reason: PodWait::Adoption,
            });
        }
    }
}
