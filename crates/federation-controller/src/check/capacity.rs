//! The learned capacity of a cluster for one set (F10, F34): a pure step from the previous estimate and what is observed.
//!
//! ```text
//!     failed for longer than T = unscheduledTimeout  a capacity probe got a node
//!  no limit -----------------------------> full at c --------------------------> c + scheduled beyond it + step,
//!      ^                                    |   ^                                |          step doubles
//!      '------- its share fits in c --------'   '---- growth failed for T -------'  (step 1, next attempt backs off)
//! ```

use fedrs_api::ClusterStatus;
use jiff::Timestamp;

use super::{count, scheduling::Scheduling, time::after};
use crate::config::Config;

/// What is known of one cluster's capacity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CapacityEstimate {
    /// The most replicas it has shown it can run; `None` if it never showed a limit.
    pub(super) capacity: Option<u64>,
    /// How many replicas beyond the scheduled ones the next growth adds.
    pub(super) step: u64,
    /// Failed attempts in a row.
    pub(super) failures: u32,
    /// The earliest time of growth beyond what a capacity probe showed.
    pub(super) next_attempt: Option<Timestamp>,
}

/// The largest step: a set of 2^16 replicas is back after 16 steps.
const MAX_STEP: u64 = 1 << 16;

impl CapacityEstimate {
    /// Reads the estimate of the previous status.
    pub(super) fn of(previous: &ClusterStatus) -> Self {
        let Some(capacity) = previous.capacity else {
            return Self::default();
        };
        let internal = &previous.internal;
        Self {
            capacity: Some(count::from_status(capacity)),
            step: count::from_status(internal.growth_step).max(1),
            failures: u32::try_from(internal.failures).unwrap_or(0),
            next_attempt: internal.next_attempt_time.as_ref().map(|time| time.0),
        }
    }

    /// The estimate after an observation (F10, F34).
    ///
    /// A lower limit shows once replicas have failed for which there was capacity before. Then all without a node count as
    /// beyond it, also younger ones: the member removes the newest first, so that those that failed would stay, and show a
    /// lower limit with each removal.
    ///
    /// `unlimited_share` is what the cluster would get if its capacity had no limit, where one is known: a limit that does
    /// not bind is forgotten. With `rebalance` false nothing moves back, so that a capacity probe that got a node lifts the
    /// limit, unless another one still shows it.
    pub(super) fn observe(
        self,
        scheduling: &Scheduling<'_>,
        unlimited_share: Option<u64>,
        rebalance: bool,
        now: Timestamp,
        settings: &Config,
    ) -> Self {
        let has_failed = scheduling.failed > 0;
        let shown = scheduling.requested - scheduling.failed;
        if has_failed && self.capacity.is_none_or(|capacity| shown < capacity) {
            let with_node = scheduling.requested - scheduling.unscheduled;
            return self.lowered_to(with_node, now, settings);
        }
        match self.capacity {
            Some(capacity) if scheduling.scheduled > capacity => {
                if rebalance || has_failed {
                    self.raised(scheduling.scheduled, now)
                } else {
                    Self::default()
                }
            }
            Some(capacity)
                if scheduling.unscheduled == 0
                    && unlimited_share.is_none_or(|share| share <= capacity) =>
            {
                Self::default()
            }
            Some(_) | None => self,
        }
    }

    fn lowered_to(self, shown: u64, now: Timestamp, settings: &Config) -> Self {
        let failures = self.failures.saturating_add(1);
        Self {
            capacity: Some(shown),
            step: 1,
            failures,
            next_attempt: Some(after(now, settings.backoff(failures))),
        }
    }

    /// A capacity probe got a node: the cluster can run what is scheduled. Growth beyond it adds a step that doubles, unless an
    /// attempt has just failed.
    fn raised(self, scheduled: u64, now: Timestamp) -> Self {
        if self.next_attempt.is_some_and(|time| now < time) {
            return Self {
                capacity: Some(scheduled),
                ..self
            };
        }
        // A step above 1 means that the attempt before this one was used in full.
        let failures = if self.step > 1 { 0 } else { self.failures };
        Self {
            capacity: Some(scheduled.saturating_add(self.step)),
            step: self.step.saturating_mul(2).min(MAX_STEP),
            failures,
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f34_where_replicas_show_a_limit_all_without_a_node_are_beyond_it() {
        // Capacity, with a node, failed and younger ones; the capacity after that, and whether it was a failed attempt.
        for (capacity, [with_node, failed, younger], expected, lowered) in [
            (None, [2, 0, 30], None, false),
            (None, [2, 1, 29], Some(2), true),
            (None, [0, 2, 5], Some(0), true),
            // What was beyond the limit says nothing about replicas that were there: pods of a node that is replaced.
            (Some(10), [5, 2, 5], Some(10), false),
            (Some(10), [5, 3, 4], Some(5), true),
            // Growth has its time, although capacity probes wait.
            (Some(12), [11, 1, 2], Some(12), false),
            (Some(12), [11, 3, 0], Some(11), true),
            // One of two capacity probes got a node.
            (Some(10), [11, 1, 1], Some(12), false),
        ] {
            for rebalance in [true, false] {
                let scheduling = Scheduling {
                    requested: with_node + failed + younger,
                    scheduled: with_node,
                    unscheduled: failed + younger,
                    failed,
                    ..Scheduling::default()
                };
                let before = CapacityEstimate {
                    capacity,
                    step: u64::from(capacity.is_some()),
                    ..CapacityEstimate::default()
                };
                let (now, settings) = (Timestamp::UNIX_EPOCH, Config::default());
                let after = before.observe(&scheduling, Some(40), rebalance, now, &settings);
                let found = (after.capacity, after.failures == 1);
                assert_eq!(found, (expected, lowered), "{capacity:?} {scheduling:?}");
                let again = after.observe(&scheduling, Some(40), rebalance, now, &settings);
                assert_eq!(again.capacity, expected, "the same shows nothing new");
            }
        }
    }
}
