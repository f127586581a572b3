//! Whether an update makes progress: another pod became updated and available within `progressDeadlineSeconds`.

use std::time::Duration;

use fedrs_api::{
    LocalConditionType, LocalReason, LocalReplicaSetStatus, conditions, revision_name,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use replica_set_controller::{Counts, Plan, PodWait, Set, Wait};

/// The last progress that this process has seen.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Progress(Option<Seen>);

#[derive(Clone, Copy, Debug)]
struct Seen {
    target: u32,
    updated_available: usize,
    since: Timestamp,
    /// Whether updates wait for something else: `since` moves along.
    is_waiting: bool,
}

impl Progress {
    /// Compares with what was seen before. A new process continues from the status, if nothing has changed since and no update
    /// begins: what updates have waited for may have ended while nobody led.
    pub(crate) fn observe(
        &mut self,
        set: &Set<'_>,
        plan: &Plan<'_>,
        (previous, generation): (&LocalReplicaSetStatus, i64),
        now: Timestamp,
    ) {
        let updated_available = plan.counts.updated_available;
        let is_waiting = plan.waits.iter().any(waits_for_others);
        let since = match self.0 {
            Some(seen)
                if seen.target == set.target
                    && seen.updated_available == updated_available
                    && !is_waiting
                    && !seen.is_waiting =>
            {
                seen.since
            }
            None if !is_waiting
                && is_same(previous, set, generation, &plan.counts)
                && previous.record == plan.record =>
            {
                recorded(previous).unwrap_or(now)
            }
            _ => now,
        };
        self.0 = Some(Seen {
            target: set.target,
            updated_available,
            since,
            is_waiting,
        });
    }

    /// The last progress, for the status. It stays while updates wait, so that they cause no writes.
    pub(super) fn published(&self, previous: &LocalReplicaSetStatus) -> Option<Time> {
        match self.0 {
            Some(seen) if !seen.is_waiting => {
                // Times of objects have no fractions of seconds.
                let since = Timestamp::from_second(seen.since.as_second());
                since.ok().map(Time)
            }
            _ => previous.last_progress_time.clone(),
        }
    }

    /// When an update that makes no progress has failed.
    pub(crate) fn deadline(&self, deadline: Option<Duration>) -> Option<Timestamp> {
        let (seen, deadline) = self.0.zip(deadline)?;
        Some(seen.since.checked_add(deadline).unwrap_or(Timestamp::MAX))
    }
}

/// Updates that wait for this are not late.
fn waits_for_others(wait: &Wait<'_>) -> bool {
    matches!(
        wait,
        Wait::Speed { until: Some(_), .. }
            | Wait::Evictions { .. }
            | Wait::Drains { .. }
            | Wait::Pod {
                reason: PodWait::Drain { .. },
                ..
            }
            | Wait::UpdatesOff { .. }
            | Wait::Stopped
    )
}

/// When the last leader saw progress; an earlier version did not say so, but whether that was too long ago.
fn recorded(previous: &LocalReplicaSetStatus) -> Option<Timestamp> {
    let time = previous.last_progress_time.as_ref();
    let progressing = conditions::find(&previous.conditions, LocalConditionType::Progressing);
    let has_failed = progressing.is_some_and(|condition| {
        condition.reason == LocalReason::ProgressDeadlineExceeded.as_str()
    });
    time.map(|time| time.0)
        .or(has_failed.then_some(Timestamp::MIN))
}

/// Whether the status is about this spec, and the pods are as far.
fn is_same(
    previous: &LocalReplicaSetStatus,
    set: &Set<'_>,
    generation: i64,
    counts: &Counts,
) -> bool {
    previous.observed_generation == Some(generation)
        && previous.update_revision.as_ref() == Some(&revision_name(set.name, set.target))
        && usize::try_from(previous.updated_available_replicas) == Ok(counts.updated_available)
}
