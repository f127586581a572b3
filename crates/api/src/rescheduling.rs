//! When replicas are rescheduled to other clusters, and how many at a time.

use std::{fmt, time::Duration};

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::{field::Errors, percentage::percentage};

/// The word for a time that never ends.
const NEVER: &str = "Never";

/// When replicas are rescheduled to other clusters, and how many at a time. Absent fields have the values of the
/// controller's configuration. A change takes effect at once.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rescheduling {
    /// The replicas beyond `spec.replicas` that may exist while replicas move: a number, at least 1, or a percentage of
    /// `spec.replicas`, rounded down to a number of at least 1. Defaults to `maxMoveSurge` of the controller's configuration
    /// (25%).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "surge_schema")]
    pub max_move_surge: Option<IntOrString>,
    /// Seconds for which a pod may have no node, or a cluster may fail to create it, before its replica is rescheduled to
    /// another cluster; `Never` keeps it waiting there. Defaults to `unscheduledTimeout` of the controller's configuration
    /// (60).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "seconds_schema")]
    pub unscheduled_timeout_seconds: Option<IntOrString>,
    /// Seconds for which a member cluster may be unreachable before its replicas are rescheduled to other clusters; `Never`
    /// keeps them there. Defaults to `spec.lostGracePeriodSeconds` of the MemberCluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "seconds_schema")]
    pub lost_grace_period_seconds: Option<IntOrString>,
}

/// A valid [`Rescheduling`]. Absent fields have the values of the controller's configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ValidRescheduling {
    /// Replicas beyond N while replicas move (F20).
    pub max_move_surge: Option<Surge>,
    /// How long a pod may be unscheduled (F34).
    pub unscheduled_timeout: Option<TimeLimit>,
    /// How long a member may be unreachable (F33).
    pub lost_grace_period: Option<TimeLimit>,
}

/// How long something may last; `None` for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeLimit(pub Option<Duration>);

/// Replicas beyond N.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "IntOrString", into = "IntOrString")]
pub enum Surge {
    /// This many.
    Replicas(u32),
    /// This percentage of N.
    Percent(u32),
}

impl Rescheduling {
    /// Validates all fields. Returns every error, each at its field below `path`.
    pub(crate) fn check(&self, path: &str, errors: &mut Errors) -> ValidRescheduling {
        let seconds = |value: &Option<IntOrString>, field: &str, errors: &mut Errors| {
            let limit = value.as_ref().map(TimeLimit::try_from)?;
            limit
                .map_err(|error| errors.add(format!("{path}.{field}"), error))
                .ok()
        };
        let surge = self.max_move_surge.clone().map(Surge::try_from);
        ValidRescheduling {
            max_move_surge: surge.and_then(|surge| {
                let add = |error| errors.add(format!("{path}.maxMoveSurge"), error);
                surge.map_err(add).ok()
            }),
            unscheduled_timeout: seconds(
                &self.unscheduled_timeout_seconds,
                "unscheduledTimeoutSeconds",
                errors,
            ),
            lost_grace_period: seconds(
                &self.lost_grace_period_seconds,
                "lostGracePeriodSeconds",
                errors,
            ),
        }
    }
}

impl TryFrom<&IntOrString> for TimeLimit {
    type Error = &'static str;

    fn try_from(value: &IntOrString) -> Result<Self, Self::Error> {
        let seconds = match value {
            IntOrString::Int(seconds) => u64::try_from(*seconds).ok(),
            IntOrString::String(word) if word == NEVER => return Ok(Self(None)),
            IntOrString::String(_) => None,
        };
        let seconds = seconds.ok_or("must be a number of seconds, not negative, or Never")?;
        Ok(Self(Some(Duration::from_secs(seconds))))
    }
}

impl TryFrom<IntOrString> for Surge {
    type Error = &'static str;

    fn try_from(value: IntOrString) -> Result<Self, Self::Error> {
        let surge = match &value {
            IntOrString::Int(replicas) => u32::try_from(*replicas).ok().map(Self::Replicas),
            IntOrString::String(text) => percentage(text).map(Self::Percent),
        };
        surge
            .filter(|surge| !matches!(surge, Self::Replicas(0) | Self::Percent(0)))
            .ok_or("must be a number of at least 1, or a percentage such as 25%")
    }
}

impl From<Surge> for IntOrString {
    fn from(surge: Surge) -> Self {
        match surge {
            Surge::Replicas(replicas) => Self::Int(i32::try_from(replicas).unwrap_or(i32::MAX)),
            Surge::Percent(_) => Self::String(surge.to_string()),
        }
    }
}

impl fmt::Display for Surge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Replicas(replicas) => replicas.fmt(f),
            Self::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

impl Surge {
    /// Replicas above `replicas` that may exist, at least one.
    #[must_use]
    pub fn of(self, replicas: u64) -> u64 {
        match self {
            Self::Replicas(surge) => surge.into(),
            Self::Percent(percent) => replicas.saturating_mul(percent.into()) / 100,
        }
        .max(1)
    }
}

fn surge_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "x-kubernetes-int-or-string": true,
        "minimum": 1,
        "maximum": i32::MAX,
        "pattern": "^[1-9][0-9]{0,3}%$",
    })
}

/// Seconds, or `Never`.
pub(crate) fn seconds_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "x-kubernetes-int-or-string": true,
        "minimum": 0,
        "maximum": i32::MAX,
        "pattern": "^Never$",
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::FieldError;

    fn check(fields: Value) -> (ValidRescheduling, Vec<FieldError>) {
        let rescheduling: Rescheduling = serde_json::from_value(fields).unwrap();
        let mut errors = Errors::default();
        let valid = rescheduling.check("spec.rescheduling", &mut errors);
        (valid, errors.into_list())
    }

    #[test]
    fn f33_f34_zero_and_never_are_times() {
        for (value, expected) in [
            (json!(0), Some(Duration::ZERO)),
            (json!(90), Some(Duration::from_secs(90))),
            (json!("Never"), None),
        ] {
            let fields =
                json!({ "unscheduledTimeoutSeconds": value, "lostGracePeriodSeconds": value });
            let (valid, errors) = check(fields);
            assert_eq!(errors, []);
            assert_eq!(valid.unscheduled_timeout, Some(TimeLimit(expected)));
            assert_eq!(valid.lost_grace_period, Some(TimeLimit(expected)));
        }
    }

    #[test]
    fn f20_a_surge_is_a_number_or_a_percentage_and_at_least_one_replica() {
        for (value, of_10, of_3) in [
            (json!("25%"), 2, 1),
            (json!("100%"), 10, 3),
            (json!("1%"), 1, 1),
            (json!(4), 4, 4),
        ] {
            let (valid, errors) = check(json!({ "maxMoveSurge": value }));
            assert_eq!(errors, []);
            let surge = valid.max_move_surge.unwrap();
            assert_eq!((surge.of(10), surge.of(3)), (of_10, of_3), "{value}");
            let written = serde_json::to_value(surge).unwrap();
            assert_eq!(written, value);
        }
    }

    #[test]
    fn an_invalid_value_names_its_field() {
        for (field, value) in [
            ("maxMoveSurge", json!(0)),
            ("maxMoveSurge", json!("0%")),
            ("maxMoveSurge", json!("+5%")),
            ("maxMoveSurge", json!("25")),
            ("unscheduledTimeoutSeconds", json!(-1)),
            ("unscheduledTimeoutSeconds", json!("60s")),
            ("lostGracePeriodSeconds", json!("never")),
        ] {
            let (_, errors) = check(json!({ field: value }));
            let fields: Vec<_> = errors.iter().map(|error| &*error.field).collect();
            assert_eq!(fields, [format!("spec.rescheduling.{field}")]);
        }
    }
}
