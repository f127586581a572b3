//! Pods stay until their containers are known to have stopped (M11, M13): the finalizer `fedrs.dev/shutdown`.
//!
//! ```text
//! live --AddFinalizer--> removed, by whomever --> its kubelet stops the containers --proof--> RemoveFinalizer -> gone
//!                                                               '--timeout--> Evict: ForceRemove, RemoveFinalizer
//!                                                                             HandsUp, Replace: waits for a person
//! ```
//!
//! None can be added to a pod that is being removed, and a drain removes first: so pods have it from their creation on. Without a policy
//! that asks for it, a pod loses it when the API server would have removed the pod.

use fedrs_api::{LocalRecord, ShutdownTimeout, ValidShutdown};
use jiff::Timestamp;
use planted_bugs::{PlantedBug, is_planted};

use crate::{
    pod::{Guard, Life, Pod},
    policy::Policy,
    set::Set,
    time::after,
};

/// What becomes of a pod with the finalizer that is being removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shutdown {
    /// The finalizer has done its work.
    Over,
    /// So it has, but its kubelet will never end it.
    Forced,
    /// Its containers have not stopped in time: a pod with another name takes its place, and a person has to confirm that they have.
    Replaced,
    /// Its containers have to stop.
    Stopping {
        /// Until when, if there is a limit.
        until: Option<Timestamp>,
    },
    /// Its containers have not stopped in time: a person has to confirm that they have.
    HandsUp,
    /// Its containers have stopped, which a person has to confirm (M7).
    Unconfirmed,
    /// Nobody waits for a proof: it is removed as others are.
    NotAwaited,
}

impl Shutdown {
    /// That of a pod that is being removed; `None` of any other one, and of one whose removal has just been requested.
    pub(crate) fn of(set: &Set<'_>, pod: &Pod<'_>, now: Timestamp) -> Option<Self> {
        let Life::Terminating { since: Some(since) } = pod.life else {
            return None;
        };
        let released = match pod.guard {
            Guard::Holding => Self::Forced,
            Guard::Absent | Guard::Unproved | Guard::Stopped => Self::Over,
        };
        Some(match (set.migration, set.migration.shutdown(), pod.guard) {
            (_, _, Guard::Absent) => Self::NotAwaited,
            (_, _, Guard::Stopped) if awaits_confirmation(set, pod, now) => Self::Unconfirmed,
            (_, _, Guard::Stopped) => Self::Over,
            _ if pod.is_destroyed => released,
            (_, _, Guard::Unproved) if is_planted(PlantedBug::ForcedDeletionProves) => Self::Over,
            (Policy::Unknown, ..) => Self::Stopping { until: None },
            (_, None, Guard::Unproved) => Self::Over,
            (_, None, Guard::Holding) => Self::NotAwaited,
            (_, Some(shutdown), Guard::Holding | Guard::Unproved) => {
                let until = limit(shutdown, pod, since);
                match shutdown.on_timeout {
                    _ if now < until => Self::Stopping { until: Some(until) },
                    ShutdownTimeout::Evict => released,
                    ShutdownTimeout::Replace => Self::Replaced,
                    ShutdownTimeout::HandsUp => Self::HandsUp,
                }
            }
        })
    }
}

/// Whether a person has to confirm that this pod is down, which has to leave its node: at its deadline, the proof is enough (M7, M15).
fn awaits_confirmation(set: &Set<'_>, pod: &Pod<'_>, now: Timestamp) -> bool {
    let is_unconfirmed = pod.migration.is_some_and(|asked| {
        let is_confirmed = asked.confirmed.is_stopped || pod.is_destroyed;
        !is_confirmed && now < asked.deadline
    });
    // One without a node has never run.
    let has_run = pod.node.is_some();
    set.migration.is_manual() && !set.is_deleted && has_run && is_unconfirmed
}

/// Whether nothing takes the place of this pod as long as it is there: it is being removed, and may still run, or persons move it, or have not
/// started it.
pub(crate) fn holds_place(set: &Set<'_>, pod: &Pod<'_>) -> bool {
    let is_removed = matches!(pod.life, Life::Terminating { .. });
    let is_manual = set.migration.is_manual() && pod.migration.is_some();
    let is_moved = is_manual && pod.guard != Guard::Absent;
    is_removed && (pod.is_gated || pod.may_still_run() || is_moved)
}

/// Until when the containers of a pod have to stop that is being removed since this time. Its node is taken at its deadline, whatever
/// holds it up (M15); a person is not hurried.
fn limit(shutdown: ValidShutdown, pod: &Pod<'_>, since: Timestamp) -> Timestamp {
    let timeout = after(since, shutdown.timeout);
    match pod.migration {
        Some(asked) if shutdown.on_timeout != ShutdownTimeout::HandsUp => {
            timeout.min(asked.deadline.max(since))
        }
        _ => timeout,
    }
}

impl Pod<'_> {
    /// Whether it is being removed, has not stopped in time, and a person has to confirm that it has.
    #[must_use]
    pub fn waits_for_a_person(&self, set: &Set<'_>, now: Timestamp) -> bool {
        let shutdown = Shutdown::of(set, self, now);
        matches!(shutdown, Some(Shutdown::HandsUp | Shutdown::Replaced))
    }
}

/// Whether a pod with another name is in the place of this one, which may still run.
pub(crate) fn is_replaced(
    set: &Set<'_>,
    pod: &Pod<'_>,
    record: &LocalRecord,
    now: Timestamp,
) -> bool {
    Shutdown::of(set, pod, now) == Some(Shutdown::Replaced) && !keeps_name(pod, record)
}

/// Whether the name of a pod that is being removed is kept for the one in its place.
pub(crate) fn keeps_name(pod: &Pod<'_>, record: &LocalRecord) -> bool {
    let update = record.updates.get(pod.uid).map(|of| &of.recreate);
    let eviction = record.evictions.get(pod.uid).map(|of| &of.recreate);
    update.into_iter().chain(eviction).any(Option::is_some)
}

/// Gives up the name of a pod that may still run. Returns whether it was kept.
pub(crate) fn give_name_up(pod: &Pod<'_>, record: &mut LocalRecord) -> bool {
    let update = record.updates.remove(pod.uid);
    let eviction = record.evictions.get_mut(pod.uid);
    let place = eviction.and_then(|eviction| eviction.recreate.take());
    update.is_some() || place.is_some()
}
