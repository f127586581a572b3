//! The MemberCluster: one cluster of the federation, as the host knows it.

#![expect(
    unreachable_pub,
    reason = "the derive of KubeSchema repeats the struct inside a function"
)]

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A member cluster of the federation.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "fedrs.dev",
    version = "v1alpha1",
    kind = "MemberCluster",
    plural = "memberclusters",
    shortname = "mc",
    doc = "A member cluster of the federation.",
    status = "MemberClusterStatus",
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status",
        description = "Whether the cluster answers."
    ),
    printcolumn(
        name = "Synced",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Synced\")].status",
        description = "Whether what is known of the cluster is current."
    ),
    printcolumn(
        name = "Version",
        type_ = "string",
        json_path = ".status.version",
        description = "The version of the cluster's API server."
    ),
    printcolumn(
        name = "Nodes",
        type_ = "integer",
        json_path = ".status.nodes.ready",
        description = "Nodes that are ready."
    ),
    printcolumn(
        name = "ReplicaSets",
        type_ = "integer",
        json_path = ".status.replicaSets",
        description = "FederatedReplicaSets that have replicas there."
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Unschedulable",
        type_ = "boolean",
        json_path = ".spec.unschedulable",
        description = "Whether no replicas are added to the cluster.",
        priority = 1
    ),
    printcolumn(
        name = "Drain",
        type_ = "boolean",
        json_path = ".spec.drain",
        description = "Whether all replicas leave the cluster.",
        priority = 1
    ),
    printcolumn(
        name = "Drained",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Drained\")].status",
        description = "Whether all replicas have left the cluster that is drained.",
        priority = 1
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].reason",
        description = "Why the cluster is ready or isn't.",
        priority = 1
    ),
    validation = Rule::new("self.metadata.name.size() <= 63 && !self.metadata.name.contains('.')")
        .message("the name must be a DNS label: at most 63 characters, without dots"),
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase")]
pub struct MemberClusterSpec {
    /// The Secret that holds the cluster's kubeconfig, of type `fedrs.dev/kubeconfig`, in the namespace of the
    /// controller. Absent: it is a file of the controller's `--members` folder, named after the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<SecretRef>,
    /// The federation whose member the cluster is (F40). Empty by default: the one that has no name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(
        length(max = 63),
        regex(pattern = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$")
    )]
    pub federation: String,
    /// No replicas are added to the cluster; what runs there stays. False by default.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unschedulable: bool,
    /// All replicas leave the cluster, as soon as others are available elsewhere. Also where preferences ask for a
    /// minimum there. False by default.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub drain: bool,
    /// How long the cluster may be unreachable before its replicas go elsewhere (F33), in seconds. The controller's default if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub lost_grace_period_seconds: Option<i64>,
}

/// A Secret with a kubeconfig under the key `kubeconfig`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretRef {
    /// The Secret's name, in the namespace of the controller.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// What is known of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct MemberClusterStatus {
    /// Ready (the probe answers), Synced (what is known of it is current) and, while it is drained, Drained (no replica
    /// is left there), with reasons.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// The API server's version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Since when the cluster has not answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unreachable_since: Option<Time>,
    /// FederatedReplicaSets that have replicas there, or are asked for some.
    pub replica_sets: i32,
    /// The cluster's nodes, as far as they may be listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<NodeCounts>,
    /// What the nodes that are ready and not cordoned can give to pods, in all, as quantities: cpu, memory, pods.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub allocatable: BTreeMap<String, String>,
    /// When the token, or a plugin's certificate, of the cluster's kubeconfig ends, if it tells. A token is renewed before
    /// if its Secret is annotated with `fedrs.dev/renew-token: "true"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_expires: Option<Time>,
}

/// How many nodes a cluster has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeCounts {
    /// All of them.
    pub total: i32,
    /// Those that are ready.
    pub ready: i32,
}
