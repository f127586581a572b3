//! The MemberCluster: a cluster of the federation, registered on the host.

#![expect(
    unreachable_pub,
    reason = "the derive of KubeSchema repeats the struct inside a function"
)]

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::{
    apis::meta::v1::{Condition, LabelSelector, Time},
    util::intstr::IntOrString,
};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    closed_set::closed_set,
    rules::{IS_NO_NAME, NAME_RULE},
};

closed_set! {
    /// Where the controller found the kubeconfig of a member.
    pub enum MemberSource {
        /// A file in the controller's `--members` directory.
        File,
        /// The Secret that `spec.secretRef` names.
        Secret,
    }
}

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
        name = "Status",
        type_ = "string",
        json_path = ".status.summary",
        description = "Whether the API server of the cluster answers, and whether the cluster is cordoned or drained."
    ),
    printcolumn(
        name = "Synced",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Synced\")].status",
        description = "Whether the controller's view of the cluster is current."
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
        description = "Ready nodes."
    ),
    printcolumn(
        name = "Workloads",
        type_ = "integer",
        json_path = ".status.workloads",
        description = "Federated workloads with replicas in the cluster."
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].reason",
        description = "The reason of the Ready condition.",
        priority = 1
    ),
    validation = Rule::new(NAME_RULE).message(IS_NO_NAME),
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase")]
pub struct MemberClusterSpec {
    /// The Secret of type `fedrs.dev/kubeconfig` that holds the cluster's kubeconfig, in the namespace of the controller. If
    /// absent, the kubeconfig is the file in the controller's `--members` directory that is named after the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<SecretRef>,
    /// The Secret of type `fedrs.dev/kubeconfig` with which `fedrs discovery` reads the cluster's pods, nodes and Services, in
    /// the namespace of the controller, which renews its token. If absent, discovery does not know the cluster's endpoints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discovery_secret_ref: Option<SecretRef>,
    /// The federation that the cluster belongs to (F40). Defaults to the federation without a name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(
        length(max = 63),
        regex(pattern = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$")
    )]
    pub federation: String,
    /// Whether the cluster is cordoned: it gets no new replicas, and running ones stay. Defaults to false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unschedulable: bool,
    /// Whether the cluster is drained: the controller moves each replica to another cluster as soon as its replacement is
    /// available there, whatever minimum the preferences ask for. Defaults to false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub drain: bool,
    /// Seconds for which the cluster may be unreachable before the controller reschedules its replicas (F33); `Never` keeps
    /// them there. Defaults to `lostGracePeriod` of the controller's configuration (60). A FederatedReplicaSet may override
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::rescheduling::seconds_schema")]
    pub lost_grace_period_seconds: Option<IntOrString>,
    /// The namespaces that the cluster takes: replicas of sets in other namespaces move to other clusters. All, if absent. No
    /// cluster takes system namespaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespaces: Option<NamespaceScope>,
}

/// Which namespaces a cluster takes: either names, or a selector.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[x_kube(
    validation = Rule::new("has(self.names) != has(self.selector)")
        .message("exactly one of names and selector must be set")
)]
#[serde(rename_all = "camelCase")]
pub struct NamespaceScope {
    /// The names of the namespaces. The controller lists and watches each of them by itself, and needs no permissions in
    /// others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = NAMESPACES_MAX),
        inner(length(max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))
    )]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub names: Option<Vec<String>>,
    /// Selects namespaces by the labels that they have on the host. An empty selector selects all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
}

/// The most namespaces that `spec.namespaces.names` lists: the controller watches each by itself.
pub const NAMESPACES_MAX: usize = 50;

/// A reference to a Secret with a kubeconfig under the key `kubeconfig`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretRef {
    /// The name of the Secret, in the namespace of the controller.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// The observed state of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct MemberClusterStatus {
    /// The generation of the spec that this status was decided for; -1 before the first one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// `Ready`, `NotReady` or `Unknown`; with `,SchedulingDisabled`, `,Draining` or `,Drained` if the cluster is cordoned or
    /// drained.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub summary: String,
    /// Where the controller found the kubeconfig.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<MemberSource>,
    /// Ready (the API server answers), Synced (the controller's view is current) and, while the cluster is drained, Drained
    /// (no replica is left).
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// The version of the API server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Since when the cluster has been unreachable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unreachable_since: Option<Time>,
    /// Federated workloads with replicas in the cluster.
    pub workloads: i32,
    /// The nodes of the cluster, if the controller may list them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<NodeCounts>,
    /// The sum of the allocatable resources of all ready, schedulable nodes, as quantities: cpu, memory, pods.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub allocatable: BTreeMap<String, String>,
    /// When the credentials of the kubeconfig expire, if known. The controller renews a token before it expires if its
    /// Secret has the annotation `fedrs.dev/renew-token: "true"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_expires: Option<Time>,
    /// State that the controller keeps for its next leader. Not an API.
    #[serde(
        skip_serializing_if = "MemberInternalState::is_empty",
        with = "crate::compact"
    )]
    #[schemars(with = "String")]
    pub internal: MemberInternalState,
}

/// What a leader has to know of earlier outages of a cluster (F33). Durations, so that no two clocks are compared. Not an
/// API.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MemberInternalState {
    /// The reason of the outage, while there is one or its nodes have not reported since: a reason of the condition Ready.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub outage_reason: String,
    /// How long controllers have observed the outage.
    #[serde(skip_serializing_if = "crate::compact::is_default")]
    pub outage_seconds: i64,
    /// Whether the replicas of the cluster are rescheduled.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub lost: bool,
    /// Losses without an hour of health between them.
    #[serde(skip_serializing_if = "crate::compact::is_default")]
    pub losses: i64,
    /// How long controllers have observed the cluster to be healthy since its last outage, if that matters.
    #[serde(skip_serializing_if = "crate::compact::is_default")]
    pub healthy_seconds: i64,
    /// How many seconds the longest outages lasted that have ended, until the cluster was healthy for an hour.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ended_outages: Vec<i64>,
}

impl MemberInternalState {
    /// Whether there is nothing to know.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Numbers of nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeCounts {
    /// All nodes.
    pub total: i32,
    /// Ready nodes.
    pub ready: i32,
}
