//! The check of one federated set: pure, without clock, client or randomness.
//!
//! ```text
//! Snapshot -> MemberEvaluation   what each member shows: eligibility, counts, previous capacity and writes
//!          -> Plan               what each member should have: learned capacity, layout, target
//!          -> rollout            of a FederatedDeployment: which member may roll how many pods next
//!          -> Step               the next safe change: spec.replicas of each member, at most one action each
//!          -> StatusRefresh      status and events about all of these; a Check has the actions and the next check, too
//! ```
//!
//! Each stage is made once, from those before it. State that must outlive the process is in the status, so that a new leader
//! decides the same. The executor carries the actions out.

mod action;
mod candidate;
mod capacity;
mod count;
mod decision;
mod duplicates;
mod eligibility;
mod evaluation;
mod moves;
mod outcome;
mod plan;
mod pod_drain;
mod previous_status;
mod report;
mod rollout;
mod scheduling;
mod snapshot;
mod step;
mod target;
mod time;
mod write_backoff;

use std::time::Duration;

use fedrs_api::FederatedReplicaSetStatus;
use jiff::Timestamp;

pub(crate) use self::{
    action::kept_replicas,
    previous_status::bound_times,
    time::{after, after_limit},
};
pub use self::{
    action::{Action, Precondition, SetChange},
    outcome::{DesiredHashes, Outcome, Outcomes, with_outcomes},
    report::{InvalidFrs, StatusRefresh, reject},
    snapshot::{Member, NamespaceState, Outage, RolloutRecord, RolloutSnapshot, Snapshot},
};
use self::{decision::Decision, eligibility::Eligibility, report::report, step::Writes};
use controller_base::event::Event;

/// The time in which it is found out whether a watch works.
const CONFIRMATION_TIME: Duration = Duration::from_secs(6);

/// What a check decided.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// What to change in the members. Each is safe by itself, in any order, and at most one for each member.
    pub actions: Vec<Action>,
    /// The status to publish, which is the next check's previous one.
    pub status: FederatedReplicaSetStatus,
    /// What changed since the previous status.
    pub events: Vec<Event>,
    /// When to check again, if nothing happens before; `None` when settled (F27).
    pub next_check: Option<Timestamp>,
    /// The members of which it has to be confirmed that the watch of their workloads works (F32).
    pub unconfirmed: Vec<String>,
    /// Whether replicas wait for their replacements to be ready, or members for a part of the budget: each pod that gets ready is
    /// worth a check (F20).
    pub moving: bool,
}

/// Checks one federated set at `now` (F20, F26 to F39).
#[must_use]
pub fn check(snapshot: &Snapshot<'_>, now: Timestamp) -> Check {
    let decision = Decision::of(snapshot, Writes::Due, now);
    let refresh = report(&decision);
    Check {
        next_check: next_check(&decision, &refresh.status),
        status: refresh.status,
        events: refresh.events,
        moving: refresh.moving,
        unconfirmed: decision.unconfirmed().map(str::to_owned).collect(),
        actions: decision.step.actions,
    }
}

/// Updates the status of one FederatedReplicaSet at `now`, without changing anything in a member (F22).
#[must_use]
pub fn refresh_status(snapshot: &Snapshot<'_>, now: Timestamp) -> StatusRefresh {
    report(&Decision::of(snapshot, Writes::None, now))
}

/// When to check again, if nothing happens before (F27).
fn next_check(decision: &Decision<'_>, status: &FederatedReplicaSetStatus) -> Option<Timestamp> {
    let settings = decision.snapshot.settings;
    let mut times: Vec<Timestamp> = Vec::new();
    for member in decision.members() {
        match member.evaluation.eligibility {
            Eligibility::Joining { until } => times.push(until),
            Eligibility::Unknown { until, .. } => {
                times.extend(until);
                times.extend(member.evaluation.awaited_until(settings));
            }
            Eligibility::Eligible { .. }
            | Eligibility::Lost { .. }
            | Eligibility::Duplicate { .. }
            | Eligibility::Refused { .. } => {}
        }
        times.extend(member.evaluation.scheduling.next_failure);
        times.extend(member.evaluation.scheduling.counts_from);
        times.extend(member.evaluation.deletion_counts_from(settings));
        if member.is_eligible() {
            times.extend(member.step.held_until);
            times.extend(member.step.drain.until);
            times.extend(member.step.writes.expires(settings));
            times.extend(member.planned.capacity.next_attempt);
            if let Some(rejection) = member.template_rejection() {
                times.push(rejection.next_attempt_time.0);
                times.extend(after_limit(rejection.since.0, settings.unscheduled_timeout));
            }
        }
        times.extend(member.evaluation.next_creation());
        // The member itself may not be stabilizing, if the set has a grace period of its own.
        let stabilizes_at = member.evaluation.member.stabilizes_at;
        let stabilizes_at = stabilizes_at.filter(|_| member.is_stabilizing());
        // Outages are measured by a clock that is not corrected: if this one is ahead of it, the time is yet to come.
        let again = after(decision.now, settings.recheck_interval);
        times.extend(stabilizes_at.map(|time| if time > decision.now { time } else { again }));
        if member.evaluation.open_scale_up() > 0 {
            // Nothing shows when it can no longer be carried out: until then its replicas count as requested.
            times.push(after(decision.now, settings.recheck_interval));
        }
    }
    times.extend(decision.rollout.as_ref().and_then(|rollout| rollout.next));
    if decision.unconfirmed().next().is_some() {
        // What shows that a watch works causes no check.
        times.push(after(decision.now, CONFIRMATION_TIME));
    }
    if !decision.is_settled(status) || !decision.step.actions.is_empty() {
        times.push(after(decision.now, settings.recheck_interval));
        times.extend(decision.snapshot.keeps_running_until);
    }
    times.into_iter().filter(|time| *time > decision.now).min()
}
