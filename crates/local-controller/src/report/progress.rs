//! Whether an update makes progress: another pod became updated and available within `progressDeadlineSeconds`.

use std::time::Duration;

use fedrs_api::{LocalConditionType, LocalReason, LocalReplicaSetStatus, conditions};
use jiff::Timestamp;
use replica_set_controller::{Counts, Plan, Set, Wait};

/// The last progress that this process has seen.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Progress(Option<Seen>);

#[derive(Clone, Copy, Debug)]
struct Seen {
    target: u32,
    updated_available: usize,
    since: Timestamp,
}

impl Progress {
    /// Compares with what was seen before. A new process counts from its start, unless the status says that the deadline has
    /// passed, and nothing has changed since.
    pub(crate) fn observe(
        &mut self,
        set: &Set<'_>,
        plan: &Plan<'_>,
        previous: &LocalReplicaSetStatus,
        now: Timestamp,
    ) {
        let updated_available = plan.counts.updated_available;
        let is_waiting = plan.waits.iter().any(waits_for_others);
        match self.0 {
            Some(seen)
                if seen.target == set.target
                    && seen.updated_available == updated_available
                    && !is_waiting => {}
            None if has_failed(previous) && is_same(previous, &plan.counts) => {
                let since = Timestamp::MIN;
                self.0 = Some(Seen {
                    target: set.target,
                    updated_available,
                    since,
                });
            }
            _ => {
                self.0 = Some(Seen {
                    target: set.target,
                    updated_available,
                    since: now,
                });
            }
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
            | Wait::UpdatesOff { .. }
            | Wait::Stopped
    )
}

fn has_failed(previous: &LocalReplicaSetStatus) -> bool {
    let progressing = conditions::find(&previous.conditions, LocalConditionType::Progressing);
    progressing
        .is_some_and(|condition| condition.reason == LocalReason::ProgressDeadlineExceeded.as_str())
}

fn is_same(previous: &LocalReplicaSetStatus, counts: &Counts) -> bool {
    usize::try_from(previous.updated_available_replicas) == Ok(counts.updated_available)
}
