//! One step of a set.

use std::{borrow::Cow, collections::HashSet};

use fedrs_api::LocalRecord;
use jiff::Timestamp;

use crate::{
    account::{Account, Budget, BudgetUser},
    carry_out::carry_out,
    copies::Copies,
    copy,
    disruption::{self, Disruptions, Lending, Share},
    drain, evict, finalizer,
    group::{Group, Member, classify},
    plan::{Plan, Wait},
    pod::Pod,
    record::reconcile,
    scale,
    set::Set,
    slow_start::SlowStart,
    speed,
    time::Next,
    update,
};

/// Decides what comes next at `now`. `pods` has what the set owns, and what it could adopt, with the results of all requests that
/// were answered; `recorded` is what is published in the status. `disruptions` has the PodDisruptionBudgets that match the pods, with
/// the results of all requests that were answered.
///
/// Publish [`Plan::record`], and step again with it: only what is recorded is carried out.
#[must_use]
pub fn step<'a>(
    set: &Set<'a>,
    pods: &'a [Pod<'a>],
    disruptions: &Disruptions<'_>,
    (recorded, slow_start): (&LocalRecord, &SlowStart),
    now: Timestamp,
) -> Plan<'a> {
    let mut next = Next::default();
    let (mut record, places, positions) = reconcile(set, pods, recorded, now);
    let copies = Copies::of(set, pods, &record);
    let recorded_pods = (&record, &positions, &copies);
    let (members, counts) = classify(set, pods, recorded_pods, &mut next, now);
    let lending = Lending::of(set, disruptions, recorded);
    let account = Account::of(set, &members, &places, lending.withheld(set));
    let mut budget = Budget {
        account,
        begun: Vec::new(),
        wanted: 0,
        is_wanted: false,
        is_shared: disruptions.ours.is_some(),
    };
    drain::reconcile(&members, &mut record, lending.allows_evictions(), now);
    let lends_nothing = disruptions.ours.is_some() && set.limit() == 0 && !set.is_still();
    let asked = (&mut record, lends_nothing);
    let drained = drain::waiting(set, &members, asked, &mut next, now);
    let is_idle = disruption::is_idle(&members, &account, &record);
    let (mut actions, mut waits) = (Vec::new(), Vec::new());
    if set.is_still() {
        actions.extend(finalizer::settle_removed(set, &members, now));
        waits.extend((!set.is_deleted).then_some(Wait::Stopped));
    } else {
        actions.extend(scale::claim(pods));
        let of = (&places, &copies);
        let (created, waiting) = scale::create(set, pods, &account, of, slow_start, now);
        copy::rename_taken(set, pods, &mut record, slow_start);
        actions.extend(created);
        waits.extend(waiting);
        if let Some(at) = slow_start.retry_at(now) {
            next.at(at, now);
        }
        let outcome = (&mut actions, &mut waits);
        let mut removed = scale::remove(set, &members, account.surplus, outcome, &mut next, now);
        let outcome = (&mut actions, &mut waits);
        let time = (&mut next, now);
        removed.extend(copy::remove_useless(
            (set, &copies),
            &members,
            &mut budget,
            outcome,
            time,
        ));

        let of = (set, pods, &places, slow_start);
        let outcome = (&mut budget, &mut waits);
        let evictions = evict::begin(of, &members, &mut record, outcome, &mut next, now);
        let unfinished = evict::unfinished(set, &members, &record, &mut waits, &mut next, now);
        let updates = update::begin(
            set,
            &members,
            unfinished,
            &mut record,
            &mut budget,
            &mut next,
            now,
        );
        let waiting = evictions.into_iter().chain(updates);
        waits.extend(waiting.map(|wait| with_users(wait, &members, &budget)));

        let rest = without(&removed, &members);
        let outcome = (&mut actions, &mut waits);
        carry_out((set, &copies), &rest, &mut record, outcome, &mut next, now);
    }
    let share = Share {
        set,
        account: budget.account,
        lending,
        wanted: budget.wanted,
        is_wanted: budget.is_wanted,
        is_idle: is_idle && record.updates.is_empty(),
    };
    let disruption = share.decide(disruptions, recorded, &mut record);
    speed::forget(set.speed, &mut record, recorded, now);
    Plan {
        record,
        actions,
        waits,
        drained,
        counts,
        account: budget.account,
        disruption,
        next: next.get(),
    }
}

/// The members whose removal was not just decided.
fn without<'m, 'a>(removed: &HashSet<&str>, members: &'m [Member<'a>]) -> Cow<'m, [Member<'a>]> {
    if removed.is_empty() {
        return Cow::Borrowed(members);
    }
    let rest = members
        .iter()
        .filter(|member| !removed.contains(member.pod.uid));
    Cow::Owned(rest.copied().collect())
}

/// Names who uses the budget, if that is what is waited for.
fn with_users<'a>(mut wait: Wait<'a>, members: &[Member<'a>], budget: &Budget<'a>) -> Wait<'a> {
    let account = &budget.account;
    if let Wait::Budget { by, pods, .. } = &mut wait {
        if account.in_use < account.limit {
            return Wait::DisruptionBudget { pods: *pods };
        }
        let is_surplus = |member: &Member<'_>| member.is_leaving() && account.leaving > 0;
        let before = members.iter();
        let before = before.filter(|member| member.group != Group::Ready && !is_surplus(member));
        let before = before.map(|member| BudgetUser {
            pod: member.pod.name,
            group: member.group,
            failure: member.pod.failure(),
        });
        *by = before.chain(budget.begun.iter().copied()).collect();
    }
    wait
}
