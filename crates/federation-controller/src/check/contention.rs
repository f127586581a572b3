//! Other hands on a local set (F29, F31): put right at once, but never in a loop.
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

use fedrs_api::ClusterStatus;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{number, snapshot::CheckSettings, standing::after};

/// A set that is fought over is not written more often.
const PAUSE: Duration = Duration::from_secs(10);
/// So many times put right in a row make a fight that people are told of.
const FIGHT: u32 = 5;

/// What is remembered of others' changes to one local set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Contention {
    /// The set's generation after our last write, while nobody else has changed it; `None` if it isn't known.
    left_at: Option<i64>,
    /// How often in a row somebody has undone what we wrote.
    disturbances: u32,
    /// Our last write since that began.
    repaired: Option<Timestamp>,
    /// Who did it.
    by: Option<String>,
}

impl Contention {
    /// As it is written in the status.
    pub(crate) fn recall(memory: &ClusterStatus) -> Self {
        Self {
            left_at: memory.written_generation,
            disturbances: u32::try_from(memory.disturbances).unwrap_or(0),
            repaired: memory.repaired_at.as_ref().map(|time| time.0),
            by: memory.disturbed_by.clone(),
        }
    }

    /// Writes it into the status.
    pub(crate) fn record(&self, memory: &mut ClusterStatus) {
        memory.written_generation = self.left_at;
        memory.disturbances = number(u64::from(self.disturbances));
        memory.repaired_at = self.repaired.map(Time);
        memory.disturbed_by.clone_from(&self.by);
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
        if disturbed && to_change {
            return Self {
                left_at: None,
                disturbances: self.disturbances.saturating_add(1),
                ..self
            };
        }
        if !to_change && self.over_at(settings).is_none_or(|over| over <= now) {
            return Self {
                left_at: found,
                ..Self::default()
            };
        }
        self
    }

    /// The set is written at `now`.
    pub(crate) fn write(&mut self, now: Timestamp) {
        if self.disturbances > 0 {
            self.repaired = Some(now);
        }
    }

    /// Whether a write puts right what somebody has changed.
    pub(crate) fn is_disturbed(&self) -> bool {
        self.disturbances > 0 && self.left_at.is_none()
    }

    /// How often in a row the set was disturbed, and by whom, if that is a fight.
    pub(crate) fn fight(&self) -> Option<(u32, Option<&str>)> {
        (self.disturbances >= FIGHT).then_some((self.disturbances, self.by.as_deref()))
    }

    /// Not before then may the set be written.
    pub(crate) fn not_before(&self, settings: &CheckSettings) -> Option<Timestamp> {
        let doublings = self.disturbances.checked_sub(2)?.min(16);
        let longest = settings.recheck_interval.max(PAUSE);
        Some(after(
            self.repaired?,
            (PAUSE * (1 << doublings)).min(longest),
        ))
    }

    /// When it is forgotten, if the set is left alone until then; `None` if there is nothing to forget.
    pub(crate) fn over_at(&self, settings: &CheckSettings) -> Option<Timestamp> {
        Some(after(self.repaired?, settings.backoff_max.max(PAUSE)))
    }
}
