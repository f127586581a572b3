//! Which updates begin: within the budget (L14) and the speed (L15), in the order of L22.

use fedrs_api::{LocalRecord, RecreateRecord, UpdateRecord};
use jiff::Timestamp;

use crate::{
    account::{Budget, cost},
    change::Change,
    drain,
    evict::Unfinished,
    group::{Group, Member, is_evicted},
    order::{by_update, first},
    plan::{Purpose, Wait},
    pod::Pod,
    set::Set,
    speed,
    time::Next,
};

/// Records the updates that begin. Returns what the others wait for.
pub(crate) fn begin<'a>(
    set: &Set<'_>,
    members: &[Member<'a>],
    unfinished: Option<Unfinished>,
    record: &mut LocalRecord,
    budget: &mut Budget<'a>,
    next: &mut Next,
    now: Timestamp,
) -> Option<Wait<'a>> {
    let due = members.iter().filter(|member| is_due(set, member, record));
    let mut candidates: Vec<_> = due.collect();
    let pods = candidates.len();
    if pods == 0 {
        return None;
    }
    if !set.may_update() {
        return Some(Wait::UpdatesOff { pods });
    }
    if budget.account.missing + budget.account.surplus > 0 {
        return Some(Wait::Scaling { pods });
    }
    if let Some(Unfinished { evictions, until }) = unfinished {
        return Some(Wait::Evictions {
            pods,
            evictions,
            until,
        });
    }
    let unavailable = candidates.iter().filter(|member| cost(member) == 0).count();
    let covered = if budget.account.covers_unavailable() {
        unavailable
    } else {
        0
    };
    let is_drained = budget.is_shared && budget.account.limit > 0 && pods > unavailable;
    let drained = is_drained.then(|| drain::delay_until(set, members, record, now));
    let drained = drained.flatten();
    let room = drained.map_or(budget.account.room(), |_| 0);
    let within_budget = pods.min(covered.saturating_add(room));
    let within_speed = speed::room(set.speed, record, now);
    let count = within_budget.min(within_speed);
    if count > 0 {
        for member in first(&mut candidates, count, by_update) {
            budget.take(member, Group::InProgress);
            let update = new_record(set, member.pod);
            record.updates.insert(member.pod.uid.to_owned(), update);
        }
    }
    if let Some(until) = drained.filter(|_| count < pods) {
        next.at(until, now);
        let pods = pods - count;
        return Some(Wait::Drains { pods, until });
    }
    let due = pods.min(within_speed);
    budget.wanted += due.saturating_sub(count.max(unavailable));
    budget.is_wanted |= count < due.min(unavailable);
    match set.speed {
        _ if count == pods => None,
        Some(speed) if within_speed <= within_budget => {
            let until = speed::next(speed, record, now);
            if let Some(until) = until {
                next.at(until, now);
            }
            Some(Wait::Speed {
                pods: pods - count,
                until,
            })
        }
        _ => Some(Wait::Budget {
            purpose: Purpose::Update,
            pods: pods - count,
            by: Vec::new(),
        }),
    }
}

/// Whether an update of it could begin. Who asks for its eviction gets that: its successor has the current template. With a
/// MigrationPolicy it waits for the end of all updates, and so for its own.
fn is_due(set: &Set<'_>, member: &Member<'_>, record: &LocalRecord) -> bool {
    let pod = member.pod;
    let is_evicted = if set.migration.waits_for_updates() {
        is_evicted(pod, record)
    } else {
        pod.eviction.is_some()
    };
    member.is_outdated
        && !member.is_extra()
        && member.group != Group::MarkedRemove
        && pod.is_owned()
        && !is_evicted
        && !member.is_recorded()
}

fn new_record(set: &Set<'_>, pod: &Pod<'_>) -> UpdateRecord {
    let is_in_place = matches!(set.change(pod), Some(Change::InPlace(_)));
    UpdateRecord {
        from: pod.revision,
        seen: false,
        recreate: (!is_in_place).then(|| place_of(pod)),
    }
}

/// The name and the node that a pod keeps when it is recreated; not a node that does not run it.
pub(crate) fn place_of(pod: &Pod<'_>) -> RecreateRecord {
    let node = pod.node.filter(|node| node.is_ready);
    RecreateRecord {
        name: pod.name.to_owned(),
        node: node.map(|node| node.name.to_owned()),
        shard: pod.shard.map(str::to_owned),
        gated: pod.is_gated,
    }
}
