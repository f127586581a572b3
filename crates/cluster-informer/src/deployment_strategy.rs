//! The strategy of a Deployment, in pods: percentages with Kubernetes' rounding.

use std::fmt;

use reflector::partial::{Text, is_present, null_as_default};
use serde::{
    Deserialize, Deserializer,
    de::{Error, Visitor},
};

use crate::{
    deployment_state::{LocalSpeed, RolloutStrategy},
    rolling_spec::{IsOther, is_other},
};

/// `spec.strategy`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct StrategyObject {
    #[serde(rename = "type", deserialize_with = "is_recreate")]
    recreate: bool,
    #[serde(deserialize_with = "null_as_default")]
    rolling_update: RollingUpdate,
}

#[derive(Debug, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RollingUpdate {
    max_unavailable: Option<Pods>,
    max_surge: Option<Pods>,
}

/// The API server's own defaults.
impl Default for RollingUpdate {
    fn default() -> Self {
        let quarter = Some(Pods::Percent(25));
        Self {
            max_unavailable: quarter,
            max_surge: quarter,
        }
    }
}

fn is_recreate<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    let kind = Option::<Text<'_>>::deserialize(deserializer)?;
    Ok(kind.is_some_and(|kind| kind.0 == "Recreate"))
}

/// A number of pods, or a percentage of the replicas.
#[derive(Clone, Copy, Debug)]
enum Pods {
    Number(u32),
    Percent(u32),
}

impl Pods {
    /// The exact number of pods, in hundredths.
    fn hundredths(self, replicas: u32) -> u64 {
        match self {
            Self::Number(pods) => u64::from(pods) * 100,
            Self::Percent(percent) => u64::from(percent) * u64::from(replicas),
        }
    }
}

/// `spec.deploymentStrategy` of a LocalReplicaSet.
#[derive(Debug, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct LocalStrategyObject {
    max_unavailable: Pods,
    pub(crate) deploy_speed: Option<LocalSpeed>,
    #[serde(rename = "minAvailable", deserialize_with = "is_present")]
    has_min_available: bool,
    #[serde(rename = "maxSurge", deserialize_with = "is_present")]
    has_max_surge: bool,
    #[serde(deserialize_with = "is_not_recreate")]
    resource_updates: IsOther,
}

fn is_not_recreate<'de, D: Deserializer<'de>>(deserializer: D) -> Result<IsOther, D::Error> {
    is_other(deserializer, "Recreate")
}

/// The API server's own default.
impl Default for LocalStrategyObject {
    fn default() -> Self {
        Self {
            max_unavailable: Pods::Percent(25),
            deploy_speed: None,
            has_min_available: false,
            has_max_surge: false,
            resource_updates: IsOther::default(),
        }
    }
}

impl LocalStrategyObject {
    /// Whether it has a field that fedrs does not set.
    pub(crate) fn has_others(&self) -> bool {
        self.has_min_available || self.has_max_surge || self.resource_updates.0
    }

    /// What the member's controller makes of it with `replicas`: it rounds down, but a percentage that rounds to nothing is one pod.
    pub(crate) fn in_pods(&self, replicas: u32) -> RolloutStrategy {
        let pods = self.max_unavailable.hundredths(replicas) / 100;
        let rounds = matches!(self.max_unavailable, Pods::Percent(1..)) && replicas > 0;
        RolloutStrategy {
            max_unavailable: u32::try_from(pods)
                .unwrap_or(u32::MAX)
                .max(u32::from(rounds)),
            max_surge: 0,
            is_fixed: matches!(self.max_unavailable, Pods::Number(_)),
        }
    }
}

impl<'de> Deserialize<'de> for Pods {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct IntOrString;

        impl Visitor<'_> for IntOrString {
            type Value = Pods;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of pods or a percentage")
            }

            fn visit_u64<E: Error>(self, pods: u64) -> Result<Pods, E> {
                u32::try_from(pods).map(Pods::Number).map_err(E::custom)
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Pods, E> {
                let percent = text.strip_suffix('%').and_then(|text| text.parse().ok());
                let invalid = || E::invalid_value(serde::de::Unexpected::Str(text), &self);
                percent.map(Pods::Percent).ok_or_else(invalid)
            }
        }

        deserializer.deserialize_any(IntOrString)
    }
}

impl StrategyObject {
    /// What the member's controller makes of it with `replicas`: it rounds what may be unavailable down and the surge up, and
    /// if that leaves nothing, one pod may be unavailable.
    pub(crate) fn in_pods(&self, replicas: u32) -> RolloutStrategy {
        if self.recreate {
            return RolloutStrategy {
                max_unavailable: replicas,
                max_surge: 0,
                is_fixed: false,
            };
        }
        let RollingUpdate {
            max_unavailable,
            max_surge,
        } = &self.rolling_update;
        let hundredths =
            |pods: &Option<Pods>| pods.map_or(0, |pods: Pods| pods.hundredths(replicas));
        let pods = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        let surge = pods(hundredths(max_surge).div_ceil(100));
        let unavailable = pods(hundredths(max_unavailable) / 100);
        let is_number = |pods: &Option<Pods>| matches!(pods, Some(Pods::Number(_)));
        RolloutStrategy {
            max_unavailable: unavailable.max(u32::from(surge == 0)),
            max_surge: surge,
            is_fixed: is_number(max_unavailable) && is_number(max_surge),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_strategy_is_what_the_members_controller_makes_of_it() {
        let rolling = |unavailable: Value, surge: Value| json!({ "type": "RollingUpdate", "rollingUpdate": { "maxUnavailable": unavailable, "maxSurge": surge } });
        for (strategy, replicas, expected) in [
            (rolling(json!(0), json!(1)), 5, (0, 1, true)),
            (rolling(json!(3), json!(0)), 2, (3, 0, true)),
            (rolling(json!("25%"), json!("25%")), 10, (2, 3, false)),
            (rolling(json!("10%"), json!("0%")), 5, (1, 0, false)),
            (rolling(json!("100%"), json!(2)), 7, (7, 2, false)),
            (
                rolling(json!("4294967295%"), json!(0)),
                u32::MAX,
                (u32::MAX, 0, false),
            ),
            (json!({}), 4, (1, 1, false)),
            (json!({ "rollingUpdate": null }), 3, (0, 1, false)),
            (json!({ "type": "Recreate" }), 6, (6, 0, false)),
        ] {
            let read: StrategyObject = serde_json::from_value(strategy.clone()).unwrap();
            let read = read.in_pods(replicas);
            let read = (read.max_unavailable, read.max_surge, read.is_fixed);
            assert_eq!(read, expected, "{strategy} of {replicas}");
        }
    }

    #[test]
    fn other_numbers_of_pods_are_rejected() {
        for pods in [json!(-1), json!("5"), json!("x%"), json!(1.5), json!([])] {
            let strategy = json!({ "rollingUpdate": { "maxSurge": pods } });
            assert!(
                serde_json::from_value::<StrategyObject>(strategy).is_err(),
                "{pods}"
            );
        }
    }
}
