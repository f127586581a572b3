//! The configuration of the controller.

use std::{sync::Arc, time::Duration};

use controller_base::{ConfigError, duration, election::LeaderElectionConfig};
use fedrs_api::{MigrationPolicySpec, ValidMigrationPolicy};
use serde::{Deserialize, Serialize};

use crate::notify::{NotifyConfig, NotifySettings};

/// What can be configured. Unknown fields are errors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct LocalControllerConfig {
    /// The longest a call may take. 10 s.
    #[serde(with = "duration")]
    pub call_timeout: Duration,
    /// The number of workers: sets that are reconciled at the same time. 16.
    pub workers: u32,
    /// Requests for pods that may be under way at the same time, of all sets together. 32: the API server is not flooded by a set of
    /// a thousand replicas.
    pub concurrent_requests: u32,
    /// The shortest time between two statuses of a set, unless an update or an eviction begins. 500 ms.
    #[serde(with = "duration")]
    pub status_delay: Duration,
    /// Migrations of pods.
    pub migration: MigrationConfig,
    /// The leader election.
    pub leader_election: LeaderElectionConfig,
}

impl Default for LocalControllerConfig {
    fn default() -> Self {
        Self {
            call_timeout: Duration::from_secs(10),
            workers: 16,
            concurrent_requests: 32,
            status_delay: Duration::from_millis(500),
            migration: MigrationConfig::default(),
            leader_election: LeaderElectionConfig::default(),
        }
    }
}

/// What can be configured of migrations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct MigrationConfig {
    /// The time from a MigrationRequest until its pod is moved whatever holds it up (M15). 168 h, a week.
    #[serde(with = "duration")]
    pub deadline: Duration,
    /// How long a MigrationRequest is kept after its end. 720 h, 30 days.
    #[serde(with = "duration")]
    pub history: Duration,
    /// The spec of the MigrationPolicy for LocalReplicaSets and ReplicaSets that have none. Absent by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_policy: Option<MigrationPolicySpec>,
    /// Who is notified of migrations (M8).
    pub notify: NotifyConfig,
}

impl Default for MigrationConfig {
    fn default() -> Self {
        Self {
            deadline: Duration::from_hours(7 * 24),
            history: Duration::from_hours(30 * 24),
            default_policy: None,
            notify: NotifyConfig::default(),
        }
    }
}

impl MigrationConfig {
    /// The policy for sets that have none.
    pub(crate) fn default_policy(&self) -> Option<Arc<ValidMigrationPolicy>> {
        let spec = self.default_policy.as_ref()?;
        ValidMigrationPolicy::check(spec).ok().map(Arc::new)
    }

    /// Who is notified.
    pub(crate) fn notify_settings(&self) -> NotifySettings {
        self.notify.settings().unwrap_or_default()
    }

    fn validate(&self) -> Result<(), ConfigError> {
        self.notify.settings()?;
        let notifies = |policy: &MigrationPolicySpec| policy.notify.is_some();
        if self.default_policy.as_ref().is_some_and(notifies) {
            return Err(ConfigError::Value {
                field: "migration.defaultPolicy.notify",
                message: "has no effect: migration.notify names the webhook",
            });
        }
        let Some(Err(errors)) = self
            .default_policy
            .as_ref()
            .map(ValidMigrationPolicy::check)
        else {
            return Ok(());
        };
        let error = errors.into_iter().next();
        let error = error.map_or_else(String::new, |error| error.to_string());
        Err(ConfigError::Parse(format!(
            "migration.defaultPolicy: {error}"
        )))
    }
}

impl LocalControllerConfig {
    /// Reads `yaml`. Missing fields have their defaults.
    pub fn parse(yaml: &str) -> Result<Self, ConfigError> {
        let config = if yaml.trim().is_empty() {
            Self::default()
        } else {
            serde_saphyr::from_str(yaml).map_err(|error| ConfigError::Parse(error.to_string()))?
        };
        config.validate()?;
        Ok(config)
    }

    /// Checks that all values are in their ranges.
    pub fn validate(&self) -> Result<(), ConfigError> {
        ConfigError::require_positive([
            ("callTimeout", self.call_timeout.is_zero()),
            ("workers", self.workers == 0),
            ("concurrentRequests", self.concurrent_requests == 0),
            ("migration.deadline", self.migration.deadline.is_zero()),
            (
                "leaderElection.retryPeriod",
                self.leader_election.retry_period.is_zero(),
            ),
        ])?;
        self.migration.validate()?;
        self.leader_election.validate()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_file_states_the_defaults() {
        let file = include_str!("../../../config/replica-set-controller/controller.yaml");
        let config = LocalControllerConfig::parse(file).unwrap();
        assert_eq!(config, LocalControllerConfig::default());
        let stated: serde_json::Value = serde_saphyr::from_str(file).unwrap();
        let all = serde_json::to_value(LocalControllerConfig::default()).unwrap();
        for field in all.as_object().unwrap().keys() {
            assert!(!stated[field].is_null(), "{field} is not in the file");
        }
    }

    #[test]
    fn what_is_out_of_range_is_named() {
        for (yaml, expected) in [
            ("workers: 0", "workers: must be more than 0"),
            ("callTimeout: 0s", "callTimeout: must be more than 0"),
            (
                "leaderElection: { leaseDuration: 5s }",
                "leaderElection.leaseDuration: must be longer than renewDeadline",
            ),
        ] {
            let error = LocalControllerConfig::parse(yaml).unwrap_err();
            assert_eq!(error.to_string(), expected);
        }
        let error = LocalControllerConfig::parse("worker: 1").unwrap_err();
        assert!(error.to_string().contains("worker"), "{error}");
    }
}
