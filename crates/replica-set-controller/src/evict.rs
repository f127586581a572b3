//! Evictions: within the budget, and before updates (L18, L19, L20).

use std::time::Duration;

use fedrs_api::{EvictionRecord, LocalRecord};
use jiff::Timestamp;
use planted_bugs::{PlantedBug, is_planted};

use crate::{
    account::Budget,
    drain,
    group::{Group, Member},
    migration::{Allowance, MigrationWait},
    order::{by_eviction, first},
    plan::{Purpose, Wait},
    pod::EvictionBy,
    record::{Places, blocks_until},
    set::Set,
    time::{Next, after},
};

/// Evictions that are not finished, and delay updates.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unfinished {
    pub(crate) evictions: usize,
    pub(crate) until: Timestamp,
}

/// A node that evicts its pods, and is not cordoned, gets new ones: they stay for this time, or nothing would end their evictions.
const LEAST_AGE: Duration = Duration::from_secs(30);

/// Records what is requested, and begins what the budget allows. Returns what has to wait.
pub(crate) fn begin<'a>(
    (set, places): (&Set<'a>, &Places),
    members: &[Member<'a>],
    record: &mut LocalRecord,
    (budget, waits): (&mut Budget<'a>, &mut Vec<Wait<'a>>),
    next: &mut Next,
    now: Timestamp,
) -> Option<Wait<'a>> {
    let requested = members.iter().filter(|member| {
        let is_requested = member.pod.eviction.is_some() && member.pod.is_live();
        // One that was surplus stays out of endpoints.
        let is_kept = member.is_leaving() && budget.account.surplus == 0;
        let is_new = is_kept || member.group != Group::MarkedRemove;
        is_requested && member.pod.is_owned() && is_new
    });
    let mut requested: Vec<_> = requested.collect();
    requested.retain(|member| match stays_until(member, now) {
        Some(until) => {
            let reason = MigrationWait::TooYoung { until };
            waits.push(waiting_of(member, reason, next, now));
            false
        }
        None => true,
    });
    record_those_of_others(members, record, now);
    let mut allowance = Allowance::of(set, members, (record, places), now);
    if !set.migration.waits_for_updates() {
        for member in &requested {
            let recorded = record.evictions.entry(member.pod.uid.to_owned());
            recorded.or_insert_with(|| EvictionRecord::requested(now));
        }
    }
    // The surplus goes first, in an order that begins with these pods.
    if budget.account.untouched_surplus() > 0 || requested.is_empty() {
        return None;
    }
    let count = requested.len();
    let mut waiting = 0;
    for member in first(&mut requested, count, by_eviction) {
        let is_forced = allowance.is_forced(member);
        let tolerated = (!is_forced).then(|| allowance.tolerates(member, &budget.account));
        if let Some(until) = tolerated.flatten() {
            budget.take(member, Group::MarkedRemove);
            waits.push(waiting_of(
                member,
                MigrationWait::Tolerated { until },
                next,
                now,
            ));
            continue;
        }
        let held = allowance.hold(member, &budget.account, record);
        if let Some(reason) = held.filter(|_| !is_forced) {
            waits.push(waiting_of(member, reason, next, now));
            continue;
        }
        let is_beside = is_planted(PlantedBug::EvictionsBesideTheBudget);
        if !is_forced && !budget.allows(member) && !is_beside {
            waiting += 1;
            waits.push(waiting_of(member, MigrationWait::Budget, next, now));
            continue;
        }
        allowance.begin(member, record);
        budget.take(member, Group::MarkedRemove);
    }
    (waiting > 0).then(|| Wait::Budget {
        purpose: Purpose::Eviction,
        pods: waiting,
        by: Vec::new(),
    })
}

/// The pod waits, until its deadline at most (M15).
fn waiting_of<'a>(
    member: &Member<'a>,
    reason: MigrationWait<'a>,
    next: &mut Next,
    now: Timestamp,
) -> Wait<'a> {
    let deadline = member.pod.migration.map(|asked| asked.deadline);
    for at in reason.until().into_iter().chain(deadline) {
        next.at(at, now);
    }
    Wait::Migration {
        pod: member.pod.name,
        uid: member.pod.uid,
        reason,
    }
}

/// Until when a young pod of a node that evicts it stays. One that was created later than now is of another clock.
fn stays_until(member: &Member<'_>, now: Timestamp) -> Option<Timestamp> {
    let pod = &member.pod;
    let until = after(pod.created, LEAST_AGE);
    let is_young = pod.created <= now && now < until;
    (pod.eviction_by == EvictionBy::Node && is_young).then_some(until)
}

/// Evictions through the API server have begun when they are seen.
fn record_those_of_others(members: &[Member<'_>], record: &mut LocalRecord, now: Timestamp) {
    let evicted = members
        .iter()
        .filter(|member| member.pod.is_evicted_by_others() && member.pod.is_owned());
    for Member { pod, .. } in evicted {
        if !record.evictions.contains_key(pod.uid) {
            let eviction = EvictionRecord::begun(now);
            record.evictions.insert(pod.uid.to_owned(), eviction);
            drain::observe(pod, record, now);
        }
    }
}

/// The evictions that delay updates; the others are reported.
pub(crate) fn unfinished<'a>(
    set: &Set<'_>,
    members: &[Member<'a>],
    record: &LocalRecord,
    waits: &mut Vec<Wait<'a>>,
    next: &mut Next,
    now: Timestamp,
) -> Option<Unfinished> {
    if record.evictions.is_empty() {
        return None;
    }
    let mut unfinished: Option<Unfinished> = None;
    let mut has_blocked = false;
    for eviction in record.evictions.values() {
        let until = blocks_until(set, eviction);
        next.at(until, now);
        if until <= now {
            has_blocked = true;
            continue;
        }
        unfinished = Some(Unfinished {
            evictions: unfinished.map_or(0, |others| others.evictions) + 1,
            until: unfinished.map_or(until, |others| others.until.max(until)),
        });
    }
    if has_blocked {
        let blocked = members.iter().filter_map(|member| {
            let eviction = record.evictions.get(member.pod.uid)?;
            (blocks_until(set, eviction) <= now).then_some(Wait::EvictionBlocked {
                pod: member.pod.name,
                since: eviction.since,
            })
        });
        waits.extend(blocked);
    }
    unfinished
}
