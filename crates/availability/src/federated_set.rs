//! A FederatedDeployment of the host, as far as an AvailabilitySet needs it.

use std::collections::BTreeMap;

use fedrs_api::{
    RolloutStatus, ValidAvailabilitySet,
    selector::{self, LabelSelector},
};
use reflector::partial::null_as_default;
use serde::Deserialize;
use serde_json::Value;

use crate::observed::{Meta, Template};

/// The kind of local workloads that keep to limits of their own.
const LOCAL_SETS: &str = "LocalReplicaSet";

/// A FederatedDeployment, as decoded from its JSON.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct FederatedSet {
    pub(crate) metadata: Meta,
    #[serde(deserialize_with = "null_as_default")]
    pub(crate) spec: Spec,
    #[serde(deserialize_with = "null_as_default")]
    status: Status,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Spec {
    #[serde(deserialize_with = "null_as_default")]
    pub(crate) replicas: u64,
    #[serde(deserialize_with = "null_as_default")]
    local_kind: String,
    #[serde(deserialize_with = "null_as_default")]
    pub(crate) federation: String,
    #[serde(deserialize_with = "null_as_default")]
    pub(crate) selector: LabelSelector,
    #[serde(deserialize_with = "null_as_default")]
    template: Template,
    #[serde(deserialize_with = "null_as_default")]
    paused: bool,
    #[serde(deserialize_with = "null_as_default")]
    stopped: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    #[serde(deserialize_with = "null_as_default")]
    updated_replicas: u64,
    update_revision: Option<String>,
    rollout: Value,
    #[serde(deserialize_with = "null_as_default")]
    clusters: Vec<Cluster>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Cluster {
    #[serde(deserialize_with = "null_as_default")]
    name: String,
    #[serde(deserialize_with = "null_as_default")]
    desired_replicas: u64,
    #[serde(deserialize_with = "null_as_default")]
    available_replicas: u64,
}

impl FederatedSet {
    /// Whether the set lends to its rollouts.
    pub(crate) fn is_limited_by(&self, valid: &ValidAvailabilitySet) -> bool {
        let labels = &self.spec.template.metadata.labels;
        self.spec.local_kind != LOCAL_SETS && selector::matches(&valid.selector, labels)
    }

    /// The pods that its rollout may make unavailable by what is recorded, by cluster; `None` if that can't be read.
    pub(crate) fn lent(&self) -> Option<BTreeMap<String, u64>> {
        if self.status.rollout.is_null() {
            return Some(BTreeMap::new());
        }
        let rollout = RolloutStatus::deserialize(&self.status.rollout).ok()?;
        let loans = rollout.record.loans.into_iter();
        let loans = loans.filter(|(_, loan)| !loan.lost);
        Some(
            loans
                .map(|(cluster, loan)| (cluster, loan.strategy.unavailable))
                .collect(),
        )
    }

    /// The pods that its controller counts as unavailable, by cluster: they use its budget, and what is lent for them replaces no others.
    pub(crate) fn unavailable(&self) -> impl Iterator<Item = (&str, u64)> {
        let clusters = self.status.clusters.iter();
        clusters.map(|of| {
            let unavailable = of.desired_replicas.saturating_sub(of.available_replicas);
            (&*of.name, unavailable)
        })
    }

    /// The pods that wait to be updated.
    pub(crate) fn wanted(&self) -> u64 {
        let is_known = self.status.update_revision.is_some();
        if !is_known || self.spec.paused || self.spec.stopped {
            return 0;
        }
        let replicas = self.spec.replicas;
        replicas.saturating_sub(self.status.updated_replicas)
    }
}
