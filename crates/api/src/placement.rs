//! The placement: how many replicas each cluster should get (F2).

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::field::Errors;

/// How replicas spread over the member clusters (F2): the typed form of the preferences annotation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Placement {
    /// Whether running replicas move to bring clusters to their shares. Defaults to false.
    #[serde(default)]
    pub rebalance: bool,
    /// Preferences by the name of a member cluster; `*` applies to all clusters without an entry. Without `*`, clusters
    /// without an entry get no replicas. Defaults to `{"*": {"weight": 1}}`, also if empty. The fields of an entry, all
    /// optional: `minReplicas` (replicas that the cluster gets first; 0), `maxReplicas` (the most replicas that the cluster
    /// gets; no limit), `weight` (the cluster's share of the other replicas, relative to the other weights; 0).
    #[serde(default)]
    #[schemars(schema_with = "clusters_schema")]
    pub clusters: BTreeMap<String, ClusterPreference>,
}

/// Preferences for one member cluster (F2).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ClusterPreference {
    /// Replicas that the cluster gets before any are shared out by weight. Defaults to 0.
    #[serde(default)]
    pub min_replicas: i64,
    /// The most replicas that the cluster gets. No limit if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_replicas: Option<i64>,
    /// The cluster's share of the other replicas, relative to the other weights. Defaults to 0: nothing beyond the minimum
    /// and the replicas that are already there.
    #[serde(default)]
    pub weight: i64,
}

/// The most clusters that a placement may name.
pub(crate) const MAX_CLUSTERS: usize = 1000;

/// The fields of a cluster's preferences.
pub(crate) const PREFERENCE_FIELDS: [&str; 3] = ["minReplicas", "maxReplicas", "weight"];

/// Entries are maps of integers with a rule on their keys: an API server prunes unknown fields of an object before it
/// evaluates rules, so that a misspelt `weight` would silently become 0.
fn clusters_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": MAX_CLUSTERS,
        "x-kubernetes-validations": [{
            "rule": "self.all(name, name.size() > 0 && name.size() <= 63)",
            "message": "names of clusters have 1 to 63 characters",
        }],
        "additionalProperties": {
            "type": "object",
            "maxProperties": 8,
            "additionalProperties": { "type": "integer", "format": "int64", "minimum": 0 },
            "x-kubernetes-validations": [
                {
                    "rule": "self.all(field, field in ['minReplicas', 'maxReplicas', 'weight'])",
                    "message": "unknown field: the fields are minReplicas, maxReplicas and weight",
                    // The cost of `min` or `join` would exceed the budget: with several unknown fields, any one is named.
                    "messageExpression": "'unknown field ' + self.filter(field, !(field in ['minReplicas', 'maxReplicas', 'weight']))[0] + ': the fields are minReplicas, maxReplicas and weight'",
                },
                {
                    "rule": "!('maxReplicas' in self) || !('minReplicas' in self) || self['maxReplicas'] >= self['minReplicas']",
                    "message": "maxReplicas must not be below minReplicas",
                },
            ],
        },
    })
}

/// Adds an error for each field of a cluster's preferences that does not exist: the schema allows any key.
pub(crate) fn check_fields(placement: &Value, path: &str, errors: &mut Errors) {
    let clusters = placement["clusters"].as_object().into_iter().flatten();
    for (cluster, preference) in clusters {
        let fields = preference.as_object().into_iter().flatten();
        for (name, _) in fields.filter(|(name, _)| !PREFERENCE_FIELDS.contains(&name.as_str())) {
            errors.add(
                format!("{path}.clusters[{cluster}].{name}"),
                "is not a known field",
            );
        }
    }
}

impl Placement {
    /// An even spread over all clusters, without rebalancing: the default (F2).
    pub fn even() -> Self {
        Self::default().or_even()
    }

    /// The placement, with an even spread over every cluster if it names none (F2).
    #[must_use]
    pub fn or_even(mut self) -> Self {
        if self.clusters.is_empty() {
            let any = ClusterPreference {
                weight: 1,
                ..ClusterPreference::default()
            };
            self.clusters.insert("*".to_owned(), any);
        }
        self
    }

    /// The preferences for `cluster`: its own entry, else `*`, else none (F3).
    pub fn for_cluster(&self, cluster: &str) -> Option<&ClusterPreference> {
        self.clusters
            .get(cluster)
            .or_else(|| self.clusters.get("*"))
    }
}
