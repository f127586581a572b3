//! The events of a check and of its actions (F38).

use federated_scheduler::Reasons;
use fedrs_api::EventReason;
use jiff::Timestamp;

use super::{
    cluster::ClusterDetail,
    text::{Time, quoted, replicas},
};
use crate::{check::action::SetChange, event::Event};

/// The event of a write in `cluster`, once it is done; `why` decided the replicas. `repairs` after an external change.
pub(in crate::check) fn action_event(
    cluster: &str,
    change: &SetChange,
    why: Option<Reasons>,
    repairs: bool,
) -> Event {
    let why = why.map_or_else(|| "draining".to_owned(), |reasons| reasons.to_string());
    match change {
        SetChange::Create { replicas: count } if repairs => {
            let count = replicas(u64::from(*count));
            let text = format!("{cluster}: deleted externally; recreated with {count}");
            Event::warning(EventReason::DriftRepaired, text)
        }
        SetChange::Scale { from, to, .. } if repairs => {
            let text = format!("{cluster}: scaled externally to {from}; restored to {to}");
            Event::warning(EventReason::DriftRepaired, text)
        }
        SetChange::Create { replicas: count } => {
            let count = replicas(u64::from(*count));
            let text = format!("{cluster}: created with {count}: {why}");
            Event::normal(EventReason::Created, text)
        }
        SetChange::Scale { from, to, .. } if to > from => {
            let text = format!("{cluster}: scaled up from {from} to {to}: {why}");
            Event::normal(EventReason::ScaledUp, text)
        }
        SetChange::Scale { from, to, .. } => {
            let text = format!("{cluster}: scaled down from {from} to {to}: {why}");
            Event::normal(EventReason::ScaledDown, text)
        }
        SetChange::Overwrite { drifted: true, .. } => {
            let text = format!("{cluster}: changed externally; restored");
            Event::warning(EventReason::DriftRepaired, text)
        }
        SetChange::Overwrite { drifted: false, .. } => {
            Event::normal(EventReason::Updated, format!("{cluster}: template updated"))
        }
        SetChange::LabelPods { .. } => Event::normal(
            EventReason::PodsAdopted,
            format!("{cluster}: adopted pods labeled"),
        ),
    }
}

/// A cluster that is full, or can run more replicas again (F34).
pub(in crate::check) fn capacity_event(
    cluster: &str,
    capacity: (Option<u64>, Option<u64>),
    unschedulable: u64,
    message: Option<&str>,
) -> Option<Event> {
    match capacity {
        (None, Some(capacity)) => Some(Event::warning(
            EventReason::ClusterFull,
            format!(
                "{cluster}: cluster full: capacity {capacity}, {} unschedulable {}",
                super::text::pods(unschedulable),
                quoted(message)
            ),
        )),
        (Some(before), Some(after)) if after > before => Some(Event::normal(
            EventReason::CapacityRaised,
            format!("{cluster}: capacity raised from {before} to {after}"),
        )),
        (Some(before), None) => Some(Event::normal(
            EventReason::CapacityRaised,
            format!("{cluster}: capacity of {before} is no longer a limit"),
        )),
        _ => None,
    }
}

/// A cluster that is lost (F33).
pub(in crate::check) fn lost_event(cluster: &str, since: Timestamp, count: u64) -> Event {
    let (since, count) = (Time(since), replicas(count));
    let text = format!("{cluster}: lost since {since}: rescheduling {count} to other clusters");
    Event::warning(EventReason::ClusterLost, text)
}

/// A lost cluster that answers again (F33).
pub(in crate::check) fn returned_event(cluster: &str, count: u64) -> Event {
    let text = format!("{cluster}: cluster returned with {}", replicas(count));
    Event::normal(EventReason::ClusterReturned, text)
}

/// A cluster that is registered under two names.
pub(in crate::check) fn duplicate_event(cluster: &str, of: &str) -> Event {
    let detail = ClusterDetail::Duplicate { of };
    let text = format!("{cluster}: {detail}; remove one of the two members");
    Event::warning(EventReason::DuplicateMember, text)
}

/// Replicas that have no cluster, as the condition Placed describes it (F18).
pub(in crate::check) fn unplaced_event(has_match: bool, message: &str) -> Event {
    let reason = if has_match {
        EventReason::InsufficientCapacity
    } else {
        EventReason::NoMatchingCluster
    };
    Event::warning(reason, message)
}

/// A condition that became true.
pub(in crate::check) fn condition_event(reason: EventReason, message: &str) -> Event {
    Event::warning(reason, message)
}

/// A spec that is invalid (F4).
pub(in crate::check) fn invalid_event(message: &str) -> Event {
    Event::warning(EventReason::InvalidSpec, message)
}
