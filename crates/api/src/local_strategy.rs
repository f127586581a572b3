//! The budget and the speed of a LocalReplicaSet: `spec.deploymentStrategy` (L5, L14, L15).

use std::time::Duration;

use federated_rollout::{Amount, Speed};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    compact::is_default,
    deployment_strategy::{
        amount_of_pods, max_surge_schema, max_unavailable_schema, part_of_pods, quarter,
    },
    field::Errors,
    valid::positive,
};

/// How many pods may be unavailable, and how fast pods are updated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LocalDeploymentStrategy {
    /// The pods that updates and evictions may make unavailable (L14, L20): a number, or a percentage of `spec.replicas` of at most
    /// 100%, rounded down, but at least 1. Pods that are failed, being updated or being removed count, whatever the reason. With 0, no
    /// available pod is updated or evicted. Defaults to 25%.
    #[schemars(schema_with = "max_unavailable_schema")]
    pub max_unavailable: IntOrString,
    /// The most pods that begin to be updated within a time (L15). Only the budget limits them if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deploy_speed: Option<DeploySpeed>,
    /// How CPU and memory of containers are updated (L12). Defaults to `Recreate`.
    #[serde(skip_serializing_if = "is_default")]
    pub resource_updates: ResourceUpdates,
    /// Accepted without effect, and reported (L5): `spec.replicas` less `maxUnavailable` holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "max_unavailable_schema")]
    pub min_available: Option<IntOrString>,
    /// Accepted without effect, and reported (L5): there are never more than `spec.replicas` pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "max_surge_schema")]
    pub max_surge: Option<IntOrString>,
}

/// How CPU and memory of containers are updated (L12).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ResourceUpdates {
    /// By other pods.
    #[default]
    Recreate,
    /// In place, through the subresource `resize` of pods, if nothing else recreates them. A container restarts only if its
    /// `resizePolicy` says so. Pods that their nodes can't resize are recreated.
    Resize,
}

/// The most pods that begin to be updated within a time (L15).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeploySpeed {
    /// The most pods that begin to be updated within any `minDelay` seconds, also across a restart of the controller; at least 1.
    #[schemars(range(min = 1))]
    pub update_portion: i32,
    /// The length of the time, in seconds; at least 1.
    #[schemars(range(min = 1))]
    pub min_delay: i32,
}

impl Default for LocalDeploymentStrategy {
    fn default() -> Self {
        Self {
            max_unavailable: quarter(),
            deploy_speed: None,
            resource_updates: ResourceUpdates::default(),
            min_available: None,
            max_surge: None,
        }
    }
}

/// A valid [`LocalDeploymentStrategy`].
#[derive(Clone, Debug, PartialEq)]
pub struct ValidLocalStrategy {
    /// The pods that may be unavailable (L14): see [`Amount::without_surge`].
    pub max_unavailable: Amount,
    /// The most pods that begin to be updated within a time (L15).
    pub speed: Option<Speed>,
    /// How CPU and memory are updated (L12).
    pub resource_updates: ResourceUpdates,
    /// Fields of the strategy that are set and have no effect (L5).
    pub without_effect: Vec<&'static str>,
}

impl LocalDeploymentStrategy {
    /// Validates all fields, and adds every error at its field below `path`. What it returns is valid if there is none.
    pub(crate) fn check(&self, path: &str, errors: &mut Errors) -> ValidLocalStrategy {
        let field = |name| format!("{path}.{name}");
        let max_unavailable = part_of_pods(&self.max_unavailable, &field("maxUnavailable"), errors);
        let mut without_effect = Vec::new();
        if let Some(min_available) = &self.min_available {
            part_of_pods(min_available, &field("minAvailable"), errors);
            without_effect.push("spec.deploymentStrategy.minAvailable");
        }
        if let Some(max_surge) = &self.max_surge {
            amount_of_pods(max_surge, &field("maxSurge"), errors);
            without_effect.push("spec.deploymentStrategy.maxSurge");
        }
        let speed = self.deploy_speed;
        ValidLocalStrategy {
            max_unavailable,
            speed: speed.map(|speed| speed.check(&field("deploySpeed"), errors)),
            resource_updates: self.resource_updates,
            without_effect,
        }
    }
}

impl DeploySpeed {
    fn check(self, path: &str, errors: &mut Errors) -> Speed {
        let field = format!("{path}.updatePortion");
        let portion = positive(self.update_portion, &field, errors);
        let seconds = positive(self.min_delay, &format!("{path}.minDelay"), errors);
        Speed {
            portion: portion.into(),
            min_delay: Duration::from_secs(seconds.into()),
        }
    }
}
