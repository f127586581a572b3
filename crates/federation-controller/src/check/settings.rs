//! Durations and bounds of a check.

use std::time::Duration;

/// The durations and bounds of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckSettings {
    /// How long a pod may be unschedulable, or not created, before it counts as failed (F34, X).
    pub unscheduled_timeout: Duration,
    /// How long a member that was just added may take to answer before other members get its replicas.
    pub joining_timeout: Duration,
    /// Time between two checks of a set that is not settled (F27).
    pub recheck_interval: Duration,
    /// Surplus replicas during moves, in percent of N, at least one replica (F20).
    pub max_move_surge_percent: u32,
    /// Capacity probes: replicas left pending in a full cluster (F34).
    pub capacity_probes: u32,
    /// Time before the second attempt of a rejected creation (F28) or of growth that failed (F34); doubles each time.
    pub backoff_initial: Duration,
    /// Longest time between two attempts.
    pub backoff_max: Duration,
}

impl Default for CheckSettings {
    fn default() -> Self {
        Self {
            unscheduled_timeout: Duration::from_secs(60),
            joining_timeout: Duration::from_secs(10),
            recheck_interval: Duration::from_secs(60),
            max_move_surge_percent: 25,
            capacity_probes: 2,
            backoff_initial: Duration::from_secs(60),
            backoff_max: Duration::from_secs(600),
        }
    }
}

impl CheckSettings {
    /// The backoff after `failures` failed attempts in a row: doubling, bounded, and without jitter, so that a new leader
    /// computes the same time.
    pub(super) fn backoff(&self, failures: u32) -> Duration {
        let doublings = failures.saturating_sub(1).min(16);
        self.backoff_initial
            .saturating_mul(1 << doublings)
            .min(self.backoff_max)
    }

    /// Replicas above N that a move may use at once (F20).
    pub(super) fn surge(&self, replicas: u64) -> u64 {
        (replicas * u64::from(self.max_move_surge_percent) / 100).max(1)
    }
}
