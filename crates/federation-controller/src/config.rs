//! The controller's configuration: one file, validated once. Unknown fields are errors.

use std::{borrow::Cow, time::Duration};

pub use controller_base::ConfigError;
use controller_base::{duration, election::LeaderElectionConfig};
use fedrs_api::{Surge, ValidRescheduling};
use serde::{Deserialize, Serialize};

/// The content of the file `--config`. `config/controller.yaml` has every default, with an explanation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Config {
    /// The federation that this controller handles (F40). Empty by default: the objects without a federation.
    pub federation: String,
    /// The delay of a check after a change of a local ReplicaSet or a pod (F22). 1 min.
    #[serde(with = "duration")]
    pub check_delay: Duration,
    /// The time between two checks of an object that is not in its desired state (F27, F37). 1 min.
    #[serde(with = "duration")]
    pub recheck_interval: Duration,
    /// The delay of a status update after a change (F22). 500 ms.
    #[serde(with = "duration")]
    pub status_delay: Duration,
    /// How long a pod may be unschedulable before its replica is rescheduled to another cluster; `never` for ever (F34).
    /// 60 s.
    #[serde(with = "duration_or_never")]
    pub unscheduled_timeout: Option<Duration>,
    /// Capacity probes: replicas left pending in a full cluster (F34). 2.
    pub capacity_probes: u32,
    /// Replicas beyond N during moves, as a number or in percent of N, at least one replica (F20). 25%.
    pub max_move_surge: Surge,
    /// The time before the first retry of a failed write or capacity probe; each retry doubles it (F28, F34). 60 s.
    #[serde(with = "duration")]
    pub backoff_initial: Duration,
    /// The longest time between two retries (F28, F34). 10 min.
    #[serde(with = "duration")]
    pub backoff_max: Duration,
    /// The liveness probe of members (F33).
    pub probe: ProbeConfig,
    /// How long a member may be unreachable before its replicas are rescheduled; `never` for ever (F33). 60 s.
    #[serde(with = "duration_or_never")]
    pub lost_grace_period: Option<Duration>,
    /// How long a member that was lost has to be healthy before replicas elsewhere are removed in favor of its own; doubled by
    /// each further loss within an hour, at most 30 min (F33). 60 s.
    #[serde(with = "duration")]
    pub stabilization_window: Duration,
    /// How long a member may reject the credentials before its replicas are rescheduled, unless all members reject them;
    /// `never` for ever (F33). 1 h.
    #[serde(with = "duration_or_never")]
    pub unauthorized_grace_period: Option<Duration>,
    /// How long the controller waits for the first answer of a new member, and for the first list of a kind or namespace there.
    /// 10 s.
    #[serde(with = "duration")]
    pub joining_timeout: Duration,
    /// How long the deletion of an object waits for a member that does not answer (F5). 10 min.
    #[serde(with = "duration")]
    pub deletion_deadline: Duration,
    /// The longest a call to a member or the host may take. 10 s.
    #[serde(with = "duration")]
    pub call_timeout: Duration,
    /// The number of concurrent writes to one member. 16.
    pub calls_per_member: u32,
    /// The number of workers (F25). 32: a worker mostly waits for responses.
    pub workers: u32,
    /// The namespaces of local ReplicaSets.
    pub namespaces: NamespacesConfig,
    /// The leader election.
    pub leader_election: LeaderElectionConfig,
    /// What kubeconfigs from Secrets may contain.
    pub secret_kubeconfigs: SecretKubeconfigs,
}

/// The namespaces of local ReplicaSets, of which members may lack some.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct NamespacesConfig {
    /// Whether the controller creates missing ones in members. Yes.
    pub create: bool,
    /// The labels of the host's namespace that a created one gets besides `pod-security.kubernetes.io/*`: keys, or prefixes
    /// that end with `*`. None.
    pub copy_labels: Vec<String>,
}

/// What kubeconfigs from Secrets may contain. Everybody who can write such a Secret decides what the controller does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SecretKubeconfigs {
    /// Whether they may run programs in the controller (`exec`, `auth-provider`). No.
    pub allow_exec: bool,
    /// Whether they may name files, which are the controller's own (`tokenFile`, certificates). No.
    pub allow_files: bool,
    /// Whether they may leave the credentials unprotected (`http://`, `insecure-skip-tls-verify`). No.
    pub allow_insecure: bool,
}

/// The liveness probe of members (F33).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ProbeConfig {
    /// How often a member is probed. 10 s.
    #[serde(with = "duration")]
    pub period: Duration,
    /// How long a response may take. 5 s.
    #[serde(with = "duration")]
    pub timeout: Duration,
    /// The number of failures in a row after which a member is unreachable. 3.
    pub failure_threshold: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            federation: String::new(),
            check_delay: Duration::from_secs(60),
            recheck_interval: Duration::from_secs(60),
            status_delay: Duration::from_millis(500),
            unscheduled_timeout: Some(Duration::from_secs(60)),
            capacity_probes: 2,
            max_move_surge: Surge::Percent(25),
            backoff_initial: Duration::from_secs(60),
            backoff_max: Duration::from_secs(600),
            probe: ProbeConfig::default(),
            lost_grace_period: Some(Duration::from_secs(60)),
            stabilization_window: Duration::from_secs(60),
            unauthorized_grace_period: Some(Duration::from_secs(3600)),
            joining_timeout: Duration::from_secs(10),
            deletion_deadline: Duration::from_secs(600),
            call_timeout: Duration::from_secs(10),
            calls_per_member: 16,
            workers: 32,
            namespaces: NamespacesConfig::default(),
            leader_election: LeaderElectionConfig::default(),
            secret_kubeconfigs: SecretKubeconfigs::default(),
        }
    }
}

impl Default for NamespacesConfig {
    fn default() -> Self {
        Self {
            create: true,
            copy_labels: Vec::new(),
        }
    }
}

/// The labels with which a namespace restricts its pods.
const POD_SECURITY: &str = "pod-security.kubernetes.io/*";

impl NamespacesConfig {
    /// Whether a namespace that is created gets the label `key` of the host's.
    pub(crate) fn copies(&self, key: &str) -> bool {
        let patterns = self.copy_labels.iter().map(String::as_str);
        patterns
            .chain([POD_SECURITY])
            .any(|pattern| match pattern.strip_suffix('*') {
                Some(prefix) => key.starts_with(prefix),
                None => key == pattern,
            })
    }
}

impl Default for ProbeConfig {
    fn default() -> Self {
        Self {
            period: Duration::from_secs(10),
            timeout: Duration::from_secs(5),
            failure_threshold: 3,
        }
    }
}

impl Config {
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

    /// Checks that all values are in their ranges; for a configuration that was changed after it was read.
    pub fn validate(&self) -> Result<(), ConfigError> {
        if !self.federation.is_empty() && !fedrs_api::is_dns_label(&self.federation) {
            return Err(ConfigError::Value {
                field: "federation",
                message: "must be a DNS label of at most 63 characters",
            });
        }
        ConfigError::require_positive([
            ("recheckInterval", self.recheck_interval.is_zero()),
            ("backoffInitial", self.backoff_initial.is_zero()),
            ("probe.period", self.probe.period.is_zero()),
            ("probe.timeout", self.probe.timeout.is_zero()),
            ("probe.failureThreshold", self.probe.failure_threshold == 0),
            ("callTimeout", self.call_timeout.is_zero()),
            ("callsPerMember", self.calls_per_member == 0),
            ("workers", self.workers == 0),
            (
                "leaderElection.retryPeriod",
                self.leader_election.retry_period.is_zero(),
            ),
        ])?;
        if self.backoff_max < self.backoff_initial {
            return Err(ConfigError::Value {
                field: "backoffMax",
                message: "must not be shorter than backoffInitial",
            });
        }
        self.leader_election.validate()
    }

    /// The backoff after `failures` failed attempts in a row: doubling, bounded, and without jitter, so that a new leader
    /// computes the same time.
    pub(crate) fn backoff(&self, failures: u32) -> Duration {
        let doublings = failures.saturating_sub(1).min(16);
        self.backoff_initial
            .saturating_mul(1 << doublings)
            .min(self.backoff_max)
    }

    /// The configuration for one FederatedReplicaSet.
    #[must_use]
    pub fn of_set(&self, rescheduling: &ValidRescheduling) -> Cow<'_, Self> {
        let ValidRescheduling {
            max_move_surge,
            unscheduled_timeout,
            // The registry decides who is lost.
            lost_grace_period: _,
        } = *rescheduling;
        let mut config = Cow::Borrowed(self);
        if let Some(surge) = max_move_surge {
            config.to_mut().max_move_surge = surge;
        }
        if let Some(limit) = unscheduled_timeout {
            config.to_mut().unscheduled_timeout = limit.0;
        }
        config
    }
}

/// A duration, or `never`.
mod duration_or_never {
    use controller_base::duration;
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer, de::IntoDeserializer};

    const NEVER: &str = "never";

    #[expect(clippy::ref_option, reason = "serde passes a reference")]
    pub(super) fn serialize<S: Serializer>(
        duration: &Option<Duration>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        match duration {
            Some(duration) => duration::serialize(duration, to),
            None => to.serialize_str(NEVER),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Duration>, D::Error> {
        match String::deserialize(from)?.as_str() {
            NEVER => Ok(None),
            text => duration::deserialize(text.into_deserializer()).map(Some),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_file_states_the_defaults() {
        let file = include_str!("../../../config/controller.yaml");
        assert_eq!(Config::parse(file).unwrap(), Config::default());
        let stated: serde_json::Value = serde_saphyr::from_str(file).unwrap();
        let all = serde_json::to_value(Config::default()).unwrap();
        let keys = |value: &serde_json::Value| {
            value
                .as_object()
                .unwrap()
                .keys()
                .cloned()
                .collect::<Vec<_>>()
        };
        assert_eq!(keys(&stated), keys(&all), "every field is stated");
        for part in ["probe", "namespaces", "leaderElection", "secretKubeconfigs"] {
            assert_eq!(
                keys(&stated[part]),
                keys(&all[part]),
                "every field is stated"
            );
        }
    }

    #[test]
    fn f33_f34_zero_and_never_are_times() {
        for (word, expected) in [("0s", Some(Duration::ZERO)), ("never", None)] {
            let yaml = format!(
                "unscheduledTimeout: {word}\nlostGracePeriod: {word}\nunauthorizedGracePeriod: {word}"
            );
            let config = Config::parse(&yaml).unwrap();
            assert_eq!(config.unscheduled_timeout, expected);
            assert_eq!(config.lost_grace_period, expected);
            assert_eq!(config.unauthorized_grace_period, expected);
        }
    }

    #[test]
    fn an_invalid_value_names_its_field() {
        for (yaml, part) in [
            ("workers: 0", "workers"),
            ("checkDelay: soon", "soon"),
            ("checkDelay: -1s", "negative"),
            ("checkdelay: 1s", "checkdelay"),
            ("probe: {period: 0s}", "probe.period"),
            ("backoffMax: 1s", "backoffMax"),
            ("maxMoveSurge: 0%", "percentage"),
            ("unscheduledTimeout: always", "always"),
            ("leaderElection: {leaseDuration: 10s}", "leaseDuration"),
            ("leaderElection: {retryPeriod: 9s}", "renewDeadline"),
            ("leaderElection: {retryPeriod: 0s}", "retryPeriod"),
            ("leaderElection: {enable: false}", "enable"),
            ("federation: a.b", "federation"),
            ("secretKubeconfigs: {allowexec: true}", "allowexec"),
        ] {
            let error = Config::parse(yaml).unwrap_err().to_string();
            assert!(error.contains(part), "{yaml}: {error}");
        }
    }
}
