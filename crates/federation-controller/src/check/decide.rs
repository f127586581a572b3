//! From what the members show to the next step: what is learnt of their room, the layout, and what of it is safe now.

use federated_scheduler::Reason;
use jiff::Timestamp;

use super::{
    considered::Considered,
    drain,
    moves::{Bounds, next_step},
    snapshot::Snapshot,
    standing::Standing,
    target::{Targets, shares_with_room, targets},
};
use crate::preferences::Preferences;

/// Fills in room, target and next step of the usable members; answers what no cluster can run.
pub(super) fn decide(
    snapshot: &Snapshot<'_>,
    members: &mut [Considered<'_>],
    now: Timestamp,
) -> u64 {
    let wanted = u64::from(snapshot.frs.replicas);
    let frozen: u64 = members
        .iter()
        .filter(|it| matches!(it.standing, Standing::Frozen { .. }))
        .map(Considered::placed)
        .sum();
    let replicas = wanted.saturating_sub(frozen);
    let allowed = allowed(snapshot, members);
    let mut usable: Vec<&mut Considered<'_>> =
        members.iter_mut().filter(|it| it.usable()).collect();
    let laid_out = lay_out(snapshot, &mut usable, replicas, now);
    for (i, it) in usable.iter_mut().enumerate() {
        it.target = laid_out.per_cluster[i];
        if it.member.draining {
            it.reasons = vec![drain::reason(it.placed()).to_owned()];
            continue;
        }
        it.reasons = laid_out.layout.shares[i]
            .reasons
            .iter()
            // A cordon and a refusal limit it as well, and say so themselves.
            .filter(|reason| {
                it.room.capacity.is_some() || !matches!(reason, Reason::AtCapacity { .. })
            })
            .map(ToString::to_string)
            .collect();
    }
    let bounds = bounds(snapshot, &laid_out, frozen, allowed);
    let holdings: Vec<_> = usable.iter().map(|it| it.holding()).collect();
    let step = next_step(&holdings, bounds);
    for (it, next) in usable.iter_mut().zip(step) {
        it.next = next;
    }
    laid_out.layout.unplaced
}

/// Learns what the members show of their room, and lays `replicas` out over them.
fn lay_out(
    snapshot: &Snapshot<'_>,
    usable: &mut [&mut Considered<'_>],
    replicas: u64,
    now: Timestamp,
) -> Targets {
    let settings = snapshot.settings;
    let key = snapshot.frs.key.to_string();
    let rebalance = snapshot.frs.placement.rebalance;
    let preferences = Preferences::of(&snapshot.frs.placement);
    let mut clusters: Vec<_> = usable
        .iter()
        .map(|it| {
            let preference = preferences.of_cluster(&it.member.name);
            it.as_usable(preference, now, settings)
        })
        .collect();
    let mut with_room = shares_with_room(&key, replicas, &clusters);
    let mut has_learnt = false;
    for ((it, cluster), &share) in usable.iter_mut().zip(&mut clusters).zip(&with_room) {
        let room = std::mem::take(&mut it.room);
        it.room = room.learn(&it.seen, share, rebalance, now, settings);
        has_learnt |= it.room != cluster.room;
        cluster.room.clone_from(&it.room);
    }
    if has_learnt {
        with_room = shares_with_room(&key, replicas, &clusters);
    }
    targets(&key, replicas, rebalance, &clusters, with_room, settings)
}

/// How few may be left, and how many asked for (F20).
fn bounds(snapshot: &Snapshot<'_>, laid_out: &Targets, frozen: u64, allowed: u64) -> Bounds {
    let wanted = u64::from(snapshot.frs.replicas);
    let targets = laid_out.per_cluster.iter();
    let placed: u64 = targets.clone().map(|it| it.layout + it.pending).sum();
    let probes: u64 = targets.map(|it| it.probes).sum();
    // F39: what a frozen member runs can't be counted on, so that nothing is given up elsewhere because of it. Nor is
    // anything because a cluster that may have it can't take it now: preferences bind once replacements run.
    let floor = (placed + frozen).max(allowed).min(wanted);
    let surge = snapshot.settings.surge(wanted);
    Bounds {
        floor,
        ceiling: (wanted + surge + probes).saturating_sub(frozen),
    }
}

/// The most that the preferences allow in all members together, whether these can take it now or not.
fn allowed(snapshot: &Snapshot<'_>, members: &[Considered<'_>]) -> u64 {
    let placement = &snapshot.frs.placement;
    let of = |it: &Considered<'_>| -> u64 {
        let Some(preference) = placement.for_cluster(&it.member.name) else {
            return 0;
        };
        let max = preference.max_replicas.map_or(u64::MAX, i64::unsigned_abs);
        if preference.weight == 0 {
            preference.min_replicas.unsigned_abs().min(max)
        } else {
            max
        }
    };
    let members = members.iter().filter(|it| !it.is_twin());
    members.fold(0, |sum, it| sum.saturating_add(of(it)))
}
