//! How the writes of one local set went: undone by somebody else (F29, F31), or not carried out. Either way they are
//! never repeated in a loop.
//!
//! ```text
//!  as we left it --changed by somebody--> put right --changed again--> put right after a pause, which doubles
//!       ^                                    |                                       |
//!       '------- left alone for as long as the longest backoff ---------------------'
//! ```
//!
//! Changes are told by the set's generation, which every change of a spec raises and nothing else does. One that leaves
//! the set as it should be is nobody's business.

use std::time::Duration;

use fedrs_api::ClusterInternalState;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{number, snapshot::CheckSettings, standing::after};

/// A set that is fought over is not written more often, nor is one tried that can't be written.
const PAUSE: Duration = Duration::from_secs(10);
/// Writes that may be undone in a row, from the first, without a pause.
const FREE_REPAIRS: u32 = 1;
/// Writes that may fail in a row without a pause: of conflicts one or two are nothing strange.
const FREE_FAILURES: u32 = 2;
/// So many times put right in a row make a fight that people are told of.
const FIGHT: u32 = 5;

/// What is remembered of the writes of one local set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Writes {
    /// The set's generation after our last write, while nobody else has changed it; `None` if it isn't known.
    left_at: Option<i64>,
    /// How often in a row somebody has undone what we wrote.
    disturbances: u32,
    /// Our last write since that began.
    repaired: Option<Timestamp>,
    /// Who did it.
    by: Option<String>,
    /// How many in a row failed.
    failures: u32,
    /// When the last one did.
    failed: Option<Timestamp>,
    /// What the member said to it.
    error: Option<String>,
}

impl Writes {
    /// As it is written in the status.
    pub(crate) fn recall(memory: &ClusterInternalState) -> Self {
        Self {
            left_at: memory.written_generation,
            disturbances: u32::try_from(memory.drift_count).unwrap_or(0),
            repaired: memory.repaired_time.as_ref().map(|time| time.0),
            by: memory.drift_manager.clone(),
            failures: u32::try_from(memory.write_failures).unwrap_or(0),
            failed: memory.write_failure_time.as_ref().map(|time| time.0),
            error: memory.write_error.clone(),
        }
    }

    /// Writes it into the status.
    pub(crate) fn record(&self, memory: &mut ClusterInternalState) {
        memory.written_generation = self.left_at;
        memory.drift_count = number(u64::from(self.disturbances));
        memory.repaired_time = self.repaired.map(Time);
        memory.drift_manager.clone_from(&self.by);
        memory.write_failures = number(u64::from(self.failures));
        memory.write_failure_time = self.failed.map(Time);
        memory.write_error.clone_from(&self.error);
    }

    /// What is known after having found the set at generation `found`, or no set; `to_change` if it is not as it
    /// should be.
    pub(crate) fn learn(
        self,
        found: Option<i64>,
        to_change: bool,
        now: Timestamp,
        settings: &CheckSettings,
    ) -> Self {
        let disturbed = self.left_at.is_some() && self.left_at != found;
        if to_change {
            return Self {
                left_at: self.left_at.filter(|_| !disturbed),
                disturbances: self.disturbances.saturating_add(disturbed.into()),
                ..self
            };
        }
        if self.over_at(settings).is_none_or(|over| over <= now) {
            return Self {
                left_at: found,
                ..Self::default()
            };
        }
        Self {
            failures: 0,
            failed: None,
            error: None,
            ..self
        }
    }

    /// The set is about to be written at `now`.
    pub(crate) fn write(&mut self, now: Timestamp) {
        if self.disturbances > 0 {
            self.repaired = Some(now);
        }
    }

    /// The set was written, and is left at `generation`; `by` if it is known who had changed it.
    pub(crate) fn succeed(&mut self, generation: i64, by: Option<String>) {
        self.left_at = Some(generation);
        self.by = by.or(self.by.take());
        (self.failures, self.failed, self.error) = (0, None, None);
    }

    /// The set could not be written; what the member said, if that is worth telling.
    pub(crate) fn fail(&mut self, error: Option<String>, now: Timestamp) {
        self.failures = self.failures.saturating_add(1);
        self.failed = Some(now);
        self.error = error;
    }

    /// Nobody knows whether the set was written: what is found next may be what we wrote.
    pub(crate) fn lose_track(&mut self) {
        self.left_at = None;
    }

    /// Whether a write puts right what somebody has changed.
    pub(crate) fn is_disturbed(&self) -> bool {
        self.disturbances > 0 && self.left_at.is_none()
    }

    /// How often in a row the set was disturbed, and by whom, if that is a fight.
    pub(crate) fn fight(&self) -> Option<(u32, Option<&str>)> {
        (self.disturbances >= FIGHT).then_some((self.disturbances, self.by.as_deref()))
    }

    /// Why the member could not be written when that was last tried.
    pub(crate) fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// Not before then may the set be written.
    pub(crate) fn not_before(&self, settings: &CheckSettings) -> Option<Timestamp> {
        let pause = |count: u32, free: u32, last: Option<Timestamp>| {
            let doublings = count.checked_sub(free + 1)?.min(16);
            let longest = settings.recheck_interval.max(PAUSE);
            Some(after(last?, (PAUSE * (1 << doublings)).min(longest)))
        };
        let repair = pause(self.disturbances, FREE_REPAIRS, self.repaired);
        repair.max(pause(self.failures, FREE_FAILURES, self.failed))
    }

    /// When disturbances are forgotten, if the set is left alone until then; `None` if there were none.
    pub(crate) fn over_at(&self, settings: &CheckSettings) -> Option<Timestamp> {
        Some(after(self.repaired?, settings.backoff_max.max(PAUSE)))
    }
}
