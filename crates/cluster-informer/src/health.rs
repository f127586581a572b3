//! Whether a member cluster is reachable (F33).

use std::fmt;

use jiff::Timestamp;

/// The result of the liveness probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// Not probed yet.
    Unknown,
    /// `/readyz` succeeds.
    Healthy,
    /// The probe fails, but fewer times in a row than the failure threshold.
    Failing {
        /// The first failure of the streak.
        since: Timestamp,
        /// What failed, without secrets.
        message: String,
    },
    /// The probe has failed as many times in a row as the failure threshold.
    Unreachable {
        /// The first failure of the streak: the grace period starts here.
        since: Timestamp,
        /// What failed, without secrets.
        message: String,
    },
    /// The member is reachable and rejects our credentials, or the controller has none.
    Unauthorized {
        /// The member's answer, or why there are no credentials.
        message: String,
    },
}

/// The healthy results of the probe, which tell errors of before from those of after one of them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HealthyProbes {
    total: u64,
    /// The total when a probe last failed.
    failed_at: u64,
}

impl HealthyProbes {
    /// Records the result of a probe.
    pub(crate) fn observe(&mut self, health: &Health) {
        if *health == Health::Healthy {
            self.total += 1;
        } else {
            self.failed_at = self.total;
        }
    }

    /// How many there were.
    pub(crate) fn total(self) -> u64 {
        self.total
    }

    /// Whether a probe has failed since there were `then`.
    pub(crate) fn have_ended_since(self, then: u64) -> bool {
        self.failed_at >= then
    }
}

/// For logs.
impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("unknown"),
            Self::Healthy => f.write_str("healthy"),
            Self::Failing { since, message } => write!(f, "failing since {since:.0}: {message}"),
            Self::Unreachable { since, message } => {
                write!(f, "unreachable since {since:.0}: {message}")
            }
            Self::Unauthorized { message } => write!(f, "unauthorized: {message}"),
        }
    }
}
