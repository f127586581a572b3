//! The check of one FederatedReplicaSet (DoFrsCheck): pure, without clock, client or randomness.
//!
//! ```text
//! snapshot --> standing of each member --> what is seen and learnt --> targets (scheduler) --> next safe step
//!                                                                                                |
//!                            Check { actions, status (with memory), events, next_check } <-------'
//! ```
//!
//! What must outlive the process is in the status, so that a new leader decides the same. Carrying out is
//! the executor's.

mod actions;
mod capacity;
mod considered;
mod decide;
mod drain;
mod moves;
mod outcome;
mod recall;
mod report;
mod snapshot;
mod standing;
mod target;
mod twins;
mod writes;

use crate::event::Event;
use fedrs_api::FederatedReplicaSetStatus;
use jiff::Timestamp;

pub use self::{
    actions::{Action, Precondition, SetChange},
    outcome::{Outcome, Outcomes, reject, remember},
    snapshot::{CheckSettings, Member, Snapshot},
};
use self::{considered::Considered, recall::Recall, standing::Standing};
pub(crate) use self::{report::condition, standing::after};

/// What a check decided.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// What to change in the members. Each is safe by itself, in any order, and at most one for each member.
    pub actions: Vec<Action>,
    /// The status to publish, which is the next check's memory.
    pub status: FederatedReplicaSetStatus,
    /// What people should be told.
    pub events: Vec<Event>,
    /// When to check again, if nothing happens before; `None` when settled (F27).
    pub next_check: Option<Timestamp>,
    /// Whether replicas wait for their replacements to be ready: each that gets ready is worth a check (F20).
    pub moving: bool,
}

/// Checks one FederatedReplicaSet at `now` (F20, F26 to F39).
#[must_use]
pub fn check(snapshot: &Snapshot<'_>, now: Timestamp) -> Check {
    let mut memory = Recall::from(&snapshot.previous.clusters);
    let standings = standing::standings(snapshot.members, now, snapshot.settings);
    let mut members: Vec<_> = snapshot
        .members
        .iter()
        .zip(standings)
        .map(|(member, standing)| {
            let memory = memory.of(&member.name);
            Considered::new(member, standing, memory, snapshot, now)
        })
        .collect();
    let joining = members
        .iter()
        .any(|it| matches!(it.standing, Standing::Joining { .. }));
    let unplaced = if joining {
        count(snapshot.previous.unplaced_replicas)
    } else {
        decide::decide(snapshot, &mut members, now)
    };
    let actions = if joining || snapshot.frs.paused {
        Vec::new()
    } else if snapshot.observe_only {
        actions::hold(snapshot, &mut members, now);
        Vec::new()
    } else {
        actions::actions(snapshot, &mut members, now)
    };
    // What has been told stays until all have answered: a restart of a settled set writes nothing.
    let (status, events) = if joining && snapshot.is_answered() {
        (snapshot.previous.clone(), Vec::new())
    } else {
        let status = report::status(snapshot, &members, unplaced, joining, now);
        let events = report::events(snapshot, &members, &status);
        (status, events)
    };
    let next_check = next_check(snapshot, &members, &status, &actions, now);
    let moving = members
        .iter()
        .any(|it| it.usable() && it.placed() != it.target.total());
    Check {
        actions,
        status,
        events,
        next_check,
        moving,
    }
}

/// When to look again, if nothing happens before (F27).
fn next_check(
    snapshot: &Snapshot<'_>,
    members: &[Considered<'_>],
    status: &FederatedReplicaSetStatus,
    actions: &[Action],
    now: Timestamp,
) -> Option<Timestamp> {
    let mut times: Vec<Timestamp> = Vec::new();
    for it in members {
        match &it.standing {
            Standing::Joining { until } => times.push(*until),
            Standing::Frozen { until, .. } => times.extend(until),
            Standing::Usable | Standing::Lost { .. } | Standing::Twin { .. } => {}
        }
        times.extend(it.seen.next_failure);
        if it.usable() {
            times.extend(it.held_until);
            times.extend(it.writes.over_at(snapshot.settings));
        }
        if it.refused_since().is_some() {
            times.extend(
                it.memory
                    .and_then(|memory| memory.internal.next_attempt_time.as_ref())
                    .map(|time| time.0),
            );
        }
    }
    if !report::settled(members, status) || !actions.is_empty() {
        times.push(after(now, snapshot.settings.recheck_interval));
    }
    times.into_iter().filter(|time| *time > now).min()
}

/// A count of the status, which is never negative when it is ours.
fn count(number: i32) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// A count for the API: sets have at most `i32::MAX` replicas.
fn number(count: u64) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
