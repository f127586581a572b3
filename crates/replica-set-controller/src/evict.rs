//! Evictions: within the budget, and before updates (L18, L19, L20).

use std::time::Duration;

use fedrs_api::{EvictionRecord, LocalRecord, RecreateRecord};
use jiff::Timestamp;
use planted_bugs::{PlantedBug, is_planted};

use crate::{
    account::{Account, Budget, cost},
    copies, copy, drain,
    group::{Group, Member, Role},
    migration::{Allowance, MigrationWait, is_compaction},
    order::{by_eviction, first},
    plan::{Purpose, Wait},
    pod::{EvictionBy, Guard, Pod},
    record::{Places, blocks_until},
    set::Set,
    slow_start::SlowStart,
    time::{Next, after},
};

/// Evictions that are not finished, and delay updates.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unfinished {
    pub(crate) evictions: usize,
    pub(crate) until: Timestamp,
}

/// A node that evicts its pods, and is not cordoned, gets new ones: they stay for this time, or nothing would end their evictions.
pub const LEAST_AGE: Duration = Duration::from_secs(30);

/// What is decided about a pod that has to leave.
enum Decision<'a> {
    /// Its eviction begins.
    Begin,
    /// It gets a copy of this place first (M2).
    Copy(RecreateRecord),
    /// It bears the work on its node where it is, and uses the budget.
    Tolerate { until: Timestamp },
    /// It waits for this.
    Wait(MigrationWait<'a>),
    /// It waits for its copy, for persons who confirm it, or for its finalizer.
    Later,
}

/// Records what is requested, and begins what the budget allows. Returns what has to wait.
pub(crate) fn begin<'a>(
    (set, pods, places, slow_start): (&Set<'a>, &'a [Pod<'a>], &Places, &SlowStart),
    members: &[Member<'a>],
    record: &mut LocalRecord,
    (budget, waits): (&mut Budget<'a>, &mut Vec<Wait<'a>>),
    next: &mut Next,
    now: Timestamp,
) -> Option<Wait<'a>> {
    let mut requested = requested(set, members, budget, waits, next, now);
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
    let is_copying = set.migration.copy().is_some();
    let mut copied = if is_copying {
        copy::under_way(members, record) + copies::displaced(set, pods, record)
    } else {
        0
    };
    let mut waiting = 0;
    for member in first(&mut requested, count, by_eviction) {
        let of = (set, pods, slow_start);
        let wait = match decide(of, members, member, (&allowance, record, copied), budget) {
            Decision::Begin => {
                allowance.begin(member, record);
                budget.take(member, Group::MarkedRemove);
                continue;
            }
            Decision::Copy(place) => {
                allowance.copy(member, place, record);
                copied += 1;
                continue;
            }
            Decision::Later => continue,
            Decision::Tolerate { until } => {
                budget.take(member, Group::MarkedRemove);
                MigrationWait::Tolerated { until }
            }
            Decision::Wait(wait) => wait,
        };
        waiting += usize::from(wait == MigrationWait::Budget);
        waits.push(waiting_of(member, wait, next, now));
    }
    (waiting > 0).then(|| Wait::Budget {
        purpose: Purpose::Eviction,
        pods: waiting,
        by: Vec::new(),
    })
}

/// The pods that have to leave, without those that stay for a while.
fn requested<'m, 'a>(
    set: &Set<'a>,
    members: &'m [Member<'a>],
    budget: &Budget<'a>,
    waits: &mut Vec<Wait<'a>>,
    next: &mut Next,
    now: Timestamp,
) -> Vec<&'m Member<'a>> {
    let requested = members.iter().filter(|member| {
        let is_requested = member.pod.eviction.is_some() && member.pod.is_live();
        // One that was surplus stays out of endpoints.
        let is_kept = member.is_leaving() && budget.account.surplus == 0;
        let is_new = is_kept || member.group != Group::MarkedRemove;
        is_requested && member.pod.is_owned() && is_new
    });
    let mut requested: Vec<_> = requested.collect();
    requested.retain(|member| {
        let refused = set.migration.is_manual() && is_compaction(member);
        let refused = refused.then_some(MigrationWait::CompactionRefused);
        let stays = stays_until(member, now).map(|until| MigrationWait::TooYoung { until });
        let wait = refused.or(stays);
        waits.extend(wait.map(|reason| waiting_of(member, reason, next, now)));
        wait.is_none()
    });
    requested
}

/// What becomes of a pod that has to leave, while `copied` others are being copied.
fn decide<'a>(
    (set, pods, slow_start): (&Set<'a>, &'a [Pod<'a>], &SlowStart),
    members: &[Member<'a>],
    member: &Member<'a>,
    (allowance, record, copied): (&Allowance<'_, 'a>, &LocalRecord, usize),
    budget: &mut Budget<'a>,
) -> Decision<'a> {
    let account = budget.account;
    if allowance.is_forced(member) {
        return Decision::Begin;
    }
    if let Some(until) = allowance.tolerates(member, &account) {
        return Decision::Tolerate { until };
    }
    let recorded = record.evictions.get(member.pod.uid);
    if let Some(copy) = recorded.and_then(|eviction| eviction.copy.as_ref()) {
        if !copy::may_replace(set, members, (member.pod, copy)) {
            return Decision::Later;
        }
    } else if let Some(reason) = allowance.hold(member, &account, record) {
        return Decision::Wait(reason);
    } else if let Some(copy) = set.migration.copy().filter(|_| member.role != Role::Copy) {
        let limit = copy.max_at_once;
        let has_room = copied < limit;
        let place = has_room.then(|| copy::place(set, pods, member.pod, (record, slow_start)));
        let wait = Decision::Wait(MigrationWait::Copies { limit });
        return place.flatten().map_or(wait, Decision::Copy);
    } else if set.migration.is_manual()
        && !member.pod.is_destroyed
        && !is_planted(PlantedBug::PersonNotAwaited)
    {
        return by_person(member, &account);
    }
    if budget.allows(member) || is_planted(PlantedBug::EvictionsBesideTheBudget) {
        Decision::Begin
    } else {
        Decision::Wait(MigrationWait::Budget)
    }
}

/// A person shuts the pod down (M7), once the set can bear it. That takes nothing back which is lent to evictions of others.
fn by_person<'a>(member: &Member<'_>, account: &Account) -> Decision<'a> {
    // Without the finalizer, nothing would prove that it is down.
    if member.pod.guard == Guard::Absent {
        return Decision::Later;
    }
    let cost = cost(member);
    let is_borne = cost == 0 || account.in_use.saturating_add(cost) <= account.limit;
    Decision::Wait(if is_borne {
        MigrationWait::ShutdownByPerson
    } else {
        MigrationWait::Budget
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
