//! The configuration of the leader election.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{config_error::ConfigError, duration};

/// The leader election, by a Lease. The names are those of client-go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct LeaderElectionConfig {
    /// Whether leaders are elected. Yes: without an election, several processes would write.
    pub enabled: bool,
    /// How long standbys wait after the last renewal before they take the Lease. 15 s.
    #[serde(with = "duration")]
    pub lease_duration: Duration,
    /// How long a term lasts after the last renewal. 10 s.
    #[serde(with = "duration")]
    pub renew_deadline: Duration,
    /// How often the leader renews the Lease, and standbys read it. 2 s.
    #[serde(with = "duration")]
    pub retry_period: Duration,
}

impl Default for LeaderElectionConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        }
    }
}

impl LeaderElectionConfig {
    /// Checks that a term ends before another process can become the leader, and has time for more than one renewal.
    pub fn validate(&self) -> Result<(), ConfigError> {
        if self.lease_duration <= self.renew_deadline {
            return Err(ConfigError::Value {
                field: "leaderElection.leaseDuration",
                message: "must be longer than renewDeadline",
            });
        }
        if self.renew_deadline <= self.retry_period.mul_f64(RETRY_JITTER) {
            return Err(ConfigError::Value {
                field: "leaderElection.renewDeadline",
                message: "must be longer than 1.2 times retryPeriod",
            });
        }
        Ok(())
    }
}

/// As in client-go: a retry may come later than its period by this factor.
const RETRY_JITTER: f64 = 1.2;
