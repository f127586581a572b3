//! Backoff of the writes of one local set, which another writer undoes (F29, F31) or which fail: never repeated in a loop.
//!
//! ```text
//!  as we left it --external change--> restored --external change--> restored after a pause, which doubles
//!       ^                                |                                   |
//!       '---------- no change for as long as the longest backoff -----------'
//! ```
//!
//! The set's generation detects external changes: every change of a spec raises it, and nothing else does. A change that
//! leaves the set in its desired state does not count.

use std::time::Duration;

use fedrs_api::ClusterInternalState;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{count, settings::CheckSettings, time::after};

/// The shortest pause between two writes of a set that another writer changes, or whose writes fail.
const PAUSE: Duration = Duration::from_secs(10);
/// Restorations in a row, from the first, without a pause.
const FREE_RESTORATIONS: u32 = 1;
/// Failed writes in a row without a pause: one or two conflicts are normal.
const FREE_FAILURES: u32 = 2;
/// External changes in a row from which on the set counts as contended.
const CONTENDED: u32 = 5;

/// The history of the writes of one local set, as far as the next write depends on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct WriteBackoff {
    /// The set's generation after our last write, while nobody else has changed it; `None` if it isn't known.
    written_generation: Option<i64>,
    /// External changes in a row.
    drift_count: u32,
    /// Our last write since they began.
    repaired: Option<Timestamp>,
    /// The field manager of the last external change.
    drift_manager: Option<String>,
    /// Failed writes in a row.
    failures: u32,
    /// The time of the last one.
    failed: Option<Timestamp>,
    /// The member's message for it.
    error: Option<String>,
    /// Since when the member rejects writes.
    rejected_since: Option<Timestamp>,
}

impl WriteBackoff {
    /// Reads the previous status.
    pub(super) fn of(previous: &ClusterInternalState) -> Self {
        Self {
            written_generation: previous.written_generation,
            drift_count: u32::try_from(previous.drift_count).unwrap_or(0),
            repaired: previous.repaired_time.as_ref().map(|time| time.0),
            drift_manager: previous.drift_manager.clone(),
            failures: u32::try_from(previous.write_failures).unwrap_or(0),
            failed: previous.write_failure_time.as_ref().map(|time| time.0),
            error: previous.write_error.clone(),
            rejected_since: previous.write_rejected_since.as_ref().map(|time| time.0),
        }
    }

    /// Writes the status.
    pub(super) fn store(&self, status: &mut ClusterInternalState) {
        status.written_generation = self.written_generation;
        status.drift_count = count::to_status(u64::from(self.drift_count));
        status.repaired_time = self.repaired.map(Time);
        status.drift_manager.clone_from(&self.drift_manager);
        status.write_failures = count::to_status(u64::from(self.failures));
        status.write_failure_time = self.failed.map(Time);
        status.write_error.clone_from(&self.error);
        status.write_rejected_since = self.rejected_since.map(Time);
    }

    /// The history after the set was observed at `generation`, or no set; `needs_write` if it is not in its desired state.
    pub(super) fn observe(
        self,
        generation: Option<i64>,
        needs_write: bool,
        now: Timestamp,
        settings: &CheckSettings,
    ) -> Self {
        let drifted = self.written_generation.is_some() && self.written_generation != generation;
        if needs_write {
            return Self {
                written_generation: self.written_generation.filter(|_| !drifted),
                drift_count: self.drift_count.saturating_add(drifted.into()),
                ..self
            };
        }
        if self.expires(settings).is_none_or(|time| time <= now) {
            return Self {
                written_generation: generation,
                ..Self::default()
            };
        }
        Self {
            failures: 0,
            failed: None,
            error: None,
            rejected_since: None,
            ..self
        }
    }

    /// The history with a write at `now`.
    pub(super) fn with_write(self, now: Timestamp) -> Self {
        Self {
            repaired: if self.drift_count > 0 {
                Some(now)
            } else {
                self.repaired
            },
            ..self
        }
    }

    /// The history after a write that left the set at `generation`; `manager` made the external change before it, if known.
    pub(super) fn succeeded(self, generation: i64, manager: Option<String>) -> Self {
        Self {
            written_generation: Some(generation),
            drift_manager: manager.or(self.drift_manager),
            failures: 0,
            failed: None,
            error: None,
            rejected_since: None,
            ..self
        }
    }

    /// The history after a write that failed; `error` is the member's message, if it is worth showing.
    pub(super) fn failed(self, error: Option<String>, now: Timestamp) -> Self {
        Self {
            failures: self.failures.saturating_add(1),
            failed: Some(now),
            error,
            ..self
        }
    }

    /// The history after a write that the member rejected.
    pub(super) fn rejected(self, now: Timestamp) -> Self {
        Self {
            rejected_since: self.rejected_since.or(Some(now)),
            ..self
        }
    }

    /// The history after a write whose result is unknown: the next observed change may be that write.
    pub(super) fn without_generation(self) -> Self {
        Self {
            written_generation: None,
            ..self
        }
    }

    /// Whether the next write restores the set after an external change.
    pub(super) fn restores(&self) -> bool {
        self.drift_count > 0 && self.written_generation.is_none()
    }

    /// The number of external changes in a row and their field manager, if the set is contended.
    pub(super) fn contention(&self) -> Option<(u32, Option<&str>)> {
        (self.drift_count >= CONTENDED).then_some((self.drift_count, self.drift_manager.as_deref()))
    }

    /// The member's message for the last write, if it failed.
    pub(super) fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// Since when the member rejects writes, if the last one was rejected or failed since.
    pub(super) fn rejected_since(&self) -> Option<Timestamp> {
        self.rejected_since
    }

    /// The earliest time of the next write, if that is after `now`.
    pub(super) fn held_until(&self, now: Timestamp, settings: &CheckSettings) -> Option<Timestamp> {
        let pause = |count: u32, free: u32, last: Option<Timestamp>| {
            let doublings = count.checked_sub(free + 1)?.min(16);
            let longest = settings.recheck_interval.max(PAUSE);
            Some(after(last?, (PAUSE * (1 << doublings)).min(longest)))
        };
        let restoration = pause(self.drift_count, FREE_RESTORATIONS, self.repaired);
        let retry = pause(self.failures, FREE_FAILURES, self.failed);
        restoration.max(retry).filter(|time| now < *time)
    }

    /// When external changes are forgotten, if none follows; `None` if there were none.
    pub(super) fn expires(&self, settings: &CheckSettings) -> Option<Timestamp> {
        Some(after(self.repaired?, settings.backoff_max.max(PAUSE)))
    }
}
