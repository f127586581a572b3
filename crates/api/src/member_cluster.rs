//! The MemberCluster: one cluster of the federation, as the host knows it.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A member cluster of the federation.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "fedrs.dev",
    version = "v1alpha1",
    kind = "MemberCluster",
    plural = "memberclusters",
    shortname = "mc",
    status = "MemberClusterStatus",
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase")]
pub struct MemberClusterSpec {
    /// Where the cluster's kubeconfig comes from. `File` for a file of the `--members` folder.
    #[serde(default)]
    pub source: MemberSource,
    /// No replicas are added to the cluster; what runs there stays. False by default.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unschedulable: bool,
    /// How long the cluster may be unreachable before its replicas go elsewhere (F33), in seconds. The controller's default if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub lost_grace_period_seconds: Option<i64>,
    /// Labels of the cluster, for people.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// Where a member's kubeconfig comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum MemberSource {
    /// A file of the controller's `--members` folder, named after the member.
    #[default]
    File,
}

/// What is known of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct MemberClusterStatus {
    /// Ready (the probe answers) and Synced (what is known of it is current), with reasons.
    pub conditions: Vec<Condition>,
    /// The API server's version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Since when the cluster has not answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unreachable_since: Option<Time>,
    /// FederatedReplicaSets that have replicas there.
    pub replica_sets: i32,
}
