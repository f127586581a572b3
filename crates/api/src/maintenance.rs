//! The Maintenance: planned work on nodes of members, from when and for how long (M9, M15).
//!
//! The controller of the host marks the nodes in the members with a [`MaintenanceMark`]. The members' own controllers do everything else,
//! also while the host is away.

#![expect(
    unreachable_pub,
    reason = "the derive of KubeSchema repeats the struct inside a function"
)]
#![expect(
    clippy::duplicated_attributes,
    reason = "each column has attributes of its own"
)]

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    closed_set::closed_set, compact::is_default, migration_request::MigrationPhase,
    rules::immutable,
};

closed_set! {
    /// How far a Maintenance is.
    pub enum MaintenancePhase {
        /// Its time has not come: nothing is marked.
        Scheduled,
        /// Nodes are marked, and pods leave them.
        Draining,
        /// All of its nodes are cordoned, and no pod of a LocalReplicaSet or ReplicaSet is left on them.
        Ready,
        /// The work is over: no node is marked any more, or the marks are being removed.
        Ended,
    }
}

/// Planned work on nodes of member clusters.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "fedrs.dev",
    version = "v1alpha1",
    kind = "Maintenance",
    plural = "maintenances",
    shortname = "maint",
    doc = "Planned work on nodes of member clusters: which nodes, from when, and for how long.",
    status = "MaintenanceStatus",
    printcolumn(
        name = "Phase",
        type_ = "string",
        json_path = ".status.phase",
        description = "How far it is."
    ),
    printcolumn(
        name = "Nodes",
        type_ = "integer",
        json_path = ".status.nodes.matched",
        description = "The nodes that it is about."
    ),
    printcolumn(
        name = "Cordoned",
        type_ = "integer",
        json_path = ".status.nodes.cordoned",
        description = "Those of them that are marked and cordoned."
    ),
    printcolumn(
        name = "Emptied",
        type_ = "integer",
        json_path = ".status.nodes.emptied",
        description = "Those of them without pods of LocalReplicaSets and ReplicaSets."
    ),
    printcolumn(
        name = "Blocking",
        type_ = "integer",
        json_path = ".status.blockingTotal",
        description = "The pods that wait before they leave."
    ),
    printcolumn(
        name = "Start",
        type_ = "string",
        json_path = ".spec.startTime",
        description = "When it begins."
    ),
    printcolumn(
        name = "Deadline",
        type_ = "string",
        json_path = ".spec.deadline",
        description = "When pods leave whatever holds them up."
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".spec.reason",
        description = "Why it is done.",
        priority = 1
    ),
    derive = "PartialEq"
)]
#[x_kube(
    validation = Rule::new(SELECTS_SOME)
        .message("must not be empty without clusters: it would select all nodes of all clusters")
        .field_path(".nodeSelector")
)]
#[x_kube(
    validation = Rule::new("!has(self.deadline) || !has(self.startTime) || self.deadline > self.startTime")
        .message(DEADLINE_TOO_EARLY)
        .field_path(".deadline")
)]
#[x_kube(
    validation = Rule::new("!has(oldSelf.ended) || !oldSelf.ended || (has(self.ended) && self.ended)")
        .message("a Maintenance that has ended stays ended: make another one")
        .field_path(".ended")
)]
#[serde(rename_all = "camelCase")]
pub struct MaintenanceSpec {
    /// The member clusters, by name. All, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = CLUSTERS_MAX),
        inner(length(min = 1, max = 63))
    )]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub clusters: Option<Vec<String>>,
    /// Selects nodes of these clusters by their labels. An empty selector selects all nodes; `clusters` is required with it.
    pub node_selector: LabelSelector,
    /// When the nodes are marked, and their pods begin to leave. At once, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// For how many seconds the machines are away (M9). Unknown, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = DURATION_SECONDS_MAX))]
    pub duration_seconds: Option<i64>,
    /// When pods leave the nodes whatever holds them up (M15). If absent, after the time in the configuration of the cluster's
    /// controller, by default a week.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Time>,
    /// Why it is done, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 1024))]
    pub reason: String,
    /// Whether the work is over: the marks of all nodes are removed. Defaults to false.
    #[serde(default, skip_serializing_if = "is_default")]
    pub ended: bool,
    /// The federation whose members it is about (F40). Defaults to the federation without a name; immutable, for another federation does
    /// not know the marks.
    // Without a default, the rule would not run when the field appears or disappears.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(
        length(max = 63),
        regex(pattern = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$"),
        extend("default" = "", "x-kubernetes-validations" = immutable("federation"))
    )]
    pub federation: String,
}

/// The most clusters that a Maintenance lists.
pub const CLUSTERS_MAX: usize = 1000;
/// The longest duration, in seconds: ten years.
pub const DURATION_SECONDS_MAX: i64 = 315_360_000;
/// The most pods that `status.blocking` shows.
pub const BLOCKING_MAX: usize = 20;

/// Why a deadline is invalid.
pub(crate) const DEADLINE_TOO_EARLY: &str = "must be after startTime";
/// An empty selector would select every machine of the federation.
const SELECTS_SOME: &str = "has(self.clusters) \
    || (has(self.nodeSelector.matchLabels) && size(self.nodeSelector.matchLabels) > 0) \
    || (has(self.nodeSelector.matchExpressions) && size(self.nodeSelector.matchExpressions) > 0)";

/// How far a Maintenance is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct MaintenanceStatus {
    /// The generation of the spec that this status was decided for; -1 before the first one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// How far it is. Absent while the spec is not accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<MaintenancePhase>,
    /// When its nodes were first marked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started: Option<Time>,
    /// The nodes of all clusters.
    pub nodes: MaintenanceNodes,
    /// The clusters with nodes that match, or that have its marks, by name. Of one that does not answer, what was last known.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub clusters: Vec<MaintenanceCluster>,
    /// The pods that have to leave and wait, at most 20: those with the first deadlines.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blocking: Vec<BlockingPod>,
    /// All pods that have to leave and wait.
    pub blocking_total: i32,
    /// `Accepted`, `NodesFound`, `MembersReachable`; while another Maintenance has nodes of this one, `NodesHeld`; while pods are left that
    /// nobody moves, `PodsNotAsked`.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// Numbers of nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct MaintenanceNodes {
    /// Nodes that match.
    pub matched: i32,
    /// Nodes that are cordoned and have the mark of this Maintenance.
    pub cordoned: i32,
    /// Cordoned nodes without pods of LocalReplicaSets and ReplicaSets.
    pub emptied: i32,
}

/// The nodes of one cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct MaintenanceCluster {
    /// The cluster.
    pub name: String,
    /// Nodes that match.
    pub nodes: i32,
    /// Nodes that are cordoned and have the mark of this Maintenance.
    pub cordoned: i32,
    /// Cordoned nodes without pods of LocalReplicaSets and ReplicaSets.
    pub emptied: i32,
    /// Pods of LocalReplicaSets and ReplicaSets on nodes that match.
    pub pods_left: i32,
}

/// A pod that has to leave its node, and waits: from its MigrationRequest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct BlockingPod {
    /// The cluster.
    pub cluster: String,
    /// The namespace of the pod.
    pub namespace: String,
    /// The pod.
    pub pod: String,
    /// The node that it has to leave.
    pub node: String,
    /// How far its migration is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<MigrationPhase>,
    /// What it waits for.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// When what it waits for ends, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
    /// When it is moved whatever holds it up (M15).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Time>,
}

/// The value of the annotation [`MAINTENANCE`](crate::annotations::MAINTENANCE) of a node, as JSON: which Maintenance has marked it, and
/// what the controller of the cluster has to know of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MaintenanceMark {
    /// The name of the Maintenance.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// When pods leave the node whatever holds them up (M15).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Time>,
    /// When the machine is expected back (M9).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
    /// For how many seconds it is away (M9).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_seconds: Option<i64>,
    /// Why it is done, for people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Whether the node was cordoned before: it stays so afterwards.
    pub was_cordoned: bool,
}

impl MaintenanceMark {
    /// The longest annotation that is read, in bytes: a reason of 1024 characters, escaped, and the rest.
    pub const BYTES_MAX: usize = 16 << 10;

    /// The mark that an annotation holds; `None` if it holds none. Fields of later versions are ignored.
    #[must_use]
    pub fn parse(annotation: &str) -> Option<Self> {
        if annotation.len() > Self::BYTES_MAX {
            return None;
        }
        let mark: Self = serde_json::from_str(annotation).ok()?;
        (!mark.uid.is_empty()).then_some(mark)
    }

    /// The mark as the value of an annotation.
    #[must_use]
    pub fn to_annotation(&self) -> String {
        serde_json::to_string(self).expect("a mark is made of strings, times and booleans")
    }
}
