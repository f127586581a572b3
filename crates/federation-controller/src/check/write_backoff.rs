//! Backoff of the writes of one local ReplicaSet that another writer undoes (F29, F31), or that fail.
//!
//! ```text
//!  as written --external change--> restored --external change--> restored after a pause, which doubles
//!       ^                             |                                   |
//!       '-------- no change for as long as the longest backoff -----------'
//! ```
//!
//! The set's generation detects external changes: every change of a spec raises it, and nothing else does. A change that
//! leaves the set in its desired state does not count.

use std::time::Duration;

use fedrs_api::WriteHistory;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::time::after;
use crate::config::Config;

/// The shortest pause between two writes of a set that another writer changes, or whose writes fail.
const PAUSE: Duration = Duration::from_secs(10);
/// Restorations in a row that need no pause.
const FREE_RESTORATIONS: i32 = 1;
/// Failed writes in a row that need no pause: one or two conflicts are normal.
const FREE_FAILURES: i32 = 2;
/// With so many conflicts in a row, for some minutes, the member counts as rejecting the writes.
const LASTING_CONFLICTS: i32 = 8;
/// A set counts as contended after so many external changes in a row.
const CONTENDED: i32 = 5;

/// The writes of one local ReplicaSet, as far as the next write depends on them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct WriteBackoff(pub(super) WriteHistory);

impl WriteBackoff {
    /// The history after the set was observed at `generation`, or no set; `needs_write` if it is not in its desired state.
    pub(super) fn observe(
        mut self,
        generation: Option<i64>,
        needs_write: bool,
        now: Timestamp,
        settings: &Config,
    ) -> Self {
        let written = self.0.written_generation;
        if needs_write {
            if written.is_some() && written != generation {
                self.0.written_generation = None;
                self.0.drift_count = self.0.drift_count.saturating_add(1);
            }
            return self;
        }
        if self.expires(settings).is_none_or(|time| time <= now) {
            return Self(WriteHistory {
                written_generation: generation,
                ..WriteHistory::default()
            });
        }
        self.without_failures()
    }

    /// The history with a write at `now`.
    pub(super) fn with_write(mut self, now: Timestamp) -> Self {
        if self.0.drift_count > 0 {
            self.0.repaired_time = Some(Time(now));
        }
        self
    }

    /// The history after a write that left the set at `generation`; `manager` made the external change before it, if known.
    pub(super) fn succeeded(mut self, generation: i64, manager: Option<String>) -> Self {
        self.0.written_generation = Some(generation);
        self.0.drift_manager = manager.or(self.0.drift_manager);
        self.without_failures()
    }

    /// The history after a write that failed; `error` is the member's message, if it is worth showing.
    pub(super) fn failed(mut self, error: Option<String>, now: Timestamp) -> Self {
        self.0.write_failures = self.0.write_failures.saturating_add(1);
        self.0.write_failure_time = Some(Time(now));
        self.0.write_error = error;
        self
    }

    fn without_failures(self) -> Self {
        self.with_failures_of(&Self::default())
    }

    /// The history with the failures of an earlier one.
    pub(super) fn with_failures_of(self, earlier: &Self) -> Self {
        let earlier = earlier.0.clone();
        Self(WriteHistory {
            write_failures: earlier.write_failures,
            write_failure_time: earlier.write_failure_time,
            write_error: earlier.write_error,
            write_rejected_since: earlier.write_rejected_since,
            ..self.0
        })
    }

    /// Whether so many writes failed in a row that the next one waits.
    pub(super) fn fails_repeatedly(&self) -> bool {
        self.0.write_failures > FREE_FAILURES
    }

    /// Whether so many writes failed in a row that conflicts are no longer what two writers of one object get now and then.
    pub(super) fn conflicts_for_long(&self) -> bool {
        self.0.write_failures >= LASTING_CONFLICTS
    }

    /// The history after a write that the member rejected, or failed to carry out again and again.
    pub(super) fn rejected(mut self, now: Timestamp) -> Self {
        self.0.write_rejected_since.get_or_insert(Time(now));
        self
    }

    /// The history after a write whose result is unknown: the next observed change may be that write.
    pub(super) fn without_generation(mut self) -> Self {
        self.0.written_generation = None;
        self
    }

    /// Whether it is not known who wrote the set, now at `generation`, and it was not changed externally several times in a row.
    pub(super) fn has_unknown_writer(&self, generation: Option<i64>) -> bool {
        match self.0.written_generation {
            Some(written) => self.0.drift_count == 0 && Some(written) != generation,
            None => self.0.drift_count <= 1,
        }
    }

    /// Whether the next write restores the set after an external change.
    pub(super) fn restores(&self) -> bool {
        self.0.drift_count > 0 && self.0.written_generation.is_none()
    }

    /// The number of external changes in a row and their field manager, if the set is contended.
    pub(super) fn contention(&self) -> Option<(i32, Option<&str>)> {
        let history = &self.0;
        (history.drift_count >= CONTENDED)
            .then_some((history.drift_count, history.drift_manager.as_deref()))
    }

    /// The member's message for the last write, if it failed.
    pub(super) fn error(&self) -> Option<&str> {
        self.0.write_error.as_deref()
    }

    /// Since when the member carries out no writes, if the last one was rejected, or several failed in a row.
    pub(super) fn rejected_since(&self) -> Option<Timestamp> {
        self.0.write_rejected_since.as_ref().map(|time| time.0)
    }

    /// The earliest time of the next write, if that is after `now`.
    pub(super) fn held_until(&self, now: Timestamp, settings: &Config) -> Option<Timestamp> {
        let pause = |count: i32, free: i32, last: &Option<Time>| {
            let doublings = u32::try_from(count.saturating_sub(free + 1)).ok()?.min(16);
            let longest = settings.recheck_interval.max(PAUSE);
            Some(after(
                last.as_ref()?.0,
                (PAUSE * (1 << doublings)).min(longest),
            ))
        };
        let history = &self.0;
        let restoration = pause(
            history.drift_count,
            FREE_RESTORATIONS,
            &history.repaired_time,
        );
        let retry = pause(
            history.write_failures,
            FREE_FAILURES,
            &history.write_failure_time,
        );
        restoration.max(retry).filter(|time| now < *time)
    }

    /// When external changes are forgotten, if none follows; `None` if there were none.
    pub(super) fn expires(&self, settings: &Config) -> Option<Timestamp> {
        let repaired = self.0.repaired_time.as_ref()?;
        Some(after(repaired.0, settings.backoff_max.max(PAUSE)))
    }
}
