//! Preferences: how many replicas which cluster should get (F2).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How replicas are laid out over the member clusters (F2): the typed form of the document's preferences.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Placement {
    /// Whether replicas that run may be moved to bring clusters to their shares. False by default.
    #[serde(default)]
    pub rebalance: bool,
    /// Preferences by the name of a member cluster, or `*` for every cluster without an entry of its own.
    /// A cluster without an entry, where there is no `*`, gets no replicas.
    #[serde(default)]
    #[schemars(extend(
        "maxProperties" = 1000,
        "x-kubernetes-validations" = [{
            "rule": "self.all(name, name.size() > 0 && name.size() <= 63)",
            "message": "names of clusters have 1 to 63 characters",
        }],
    ))]
    pub clusters: BTreeMap<String, ClusterPreference>,
}

/// Preferences for one member cluster (F2).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "!has(self.maxReplicas) || !has(self.minReplicas) || self.maxReplicas >= self.minReplicas",
    "message": "maxReplicas must not be below minReplicas",
    "fieldPath": ".maxReplicas",
}]))]
pub struct ClusterPreference {
    /// Replicas the cluster gets before any are shared out by weight. 0 by default.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub min_replicas: i64,
    /// The most replicas the cluster gets. No limit if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub max_replicas: Option<i64>,
    /// The cluster's part of the replicas shared out, relative to the other weights. 0 by default:
    /// nothing beyond the minimum and what is already there.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub weight: i64,
}

impl Placement {
    /// What holds without preferences: an even spread over every cluster, nothing moved (F2).
    pub fn even() -> Self {
        let any = ClusterPreference {
            weight: 1,
            ..ClusterPreference::default()
        };
        Self {
            rebalance: false,
            clusters: BTreeMap::from([("*".to_owned(), any)]),
        }
    }

    /// The preferences that hold for `cluster`: its own entry, else `*`, else none (F3).
    pub fn for_cluster(&self, cluster: &str) -> Option<&ClusterPreference> {
        self.clusters
            .get(cluster)
            .or_else(|| self.clusters.get("*"))
    }
}
