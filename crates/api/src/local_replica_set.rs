//! The LocalReplicaSet: a replica set with its own controller in one cluster (L1), and its status.

#![expect(
    unreachable_pub,
    reason = "the derive of KubeSchema repeats the struct inside a function"
)]

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    PodTemplate,
    drain::MAX_DRAIN_SECONDS,
    local_status::LocalReplicaSetStatus,
    local_strategy::LocalDeploymentStrategy,
    rules::{IS_NO_NAME, NAME_RULE, immutable},
};

/// The most anti-affinity constraints of a set.
pub(crate) const MAX_ANTIAFFINITY: usize = 16;

/// A replica set whose pods are updated within a budget and at a speed, in place where possible.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "fedrs.dev",
    version = "v1alpha1",
    kind = "LocalReplicaSet",
    plural = "localreplicasets",
    shortname = "lrs",
    category = "all",
    namespaced,
    doc = "A replica set whose pods are updated within a budget and at a speed, in place where possible.",
    status = "LocalReplicaSetStatus",
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".status.selector"
    ),
    printcolumn(
        name = "Desired",
        type_ = "integer",
        json_path = ".spec.replicas",
        description = "Pods that the spec asks for."
    ),
    printcolumn(
        name = "Current",
        type_ = "integer",
        json_path = ".status.replicas",
        description = "Pods that exist, without those that are being removed."
    ),
    printcolumn(
        name = "Ready",
        type_ = "integer",
        json_path = ".status.readyReplicas",
        description = "Ready pods."
    ),
    printcolumn(
        name = "Up-to-date",
        type_ = "integer",
        json_path = ".status.updatedReplicas",
        description = "Pods of the current template."
    ),
    printcolumn(
        name = "Available",
        type_ = "integer",
        json_path = ".status.availableReplicas",
        description = "Pods that have been ready for minReadySeconds."
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Unavailable",
        type_ = "integer",
        json_path = ".status.unavailable",
        description = "Pods that use the budget.",
        priority = 1
    ),
    printcolumn(
        name = "Budget",
        type_ = "integer",
        json_path = ".status.maxUnavailable",
        description = "Pods that may be unavailable.",
        priority = 1
    ),
    printcolumn(
        name = "Revision",
        type_ = "integer",
        json_path = ".status.revisionId",
        description = "The number of the spec.",
        priority = 1
    ),
    printcolumn(
        name = "Paused",
        type_ = "boolean",
        json_path = ".spec.paused",
        description = "Whether spec.paused stops updates.",
        priority = 1
    ),
    printcolumn(
        name = "Stopped",
        type_ = "boolean",
        json_path = ".spec.stopped",
        description = "Whether spec.stopped stops every change.",
        priority = 1
    ),
    printcolumn(
        name = "Selector",
        type_ = "string",
        json_path = ".status.selector",
        description = "The selector of the pods.",
        priority = 1
    ),
    validation = Rule::new(NAME_RULE).message(IS_NO_NAME),
    derive = "PartialEq"
)]
#[x_kube(
    validation = Rule::new("self.progressDeadlineSeconds > self.minReadySeconds")
        .message("must be above minReadySeconds")
        .field_path(".progressDeadlineSeconds")
)]
#[serde(rename_all = "camelCase")]
pub struct LocalReplicaSetSpec {
    /// The number of pods (L7). Pods are created and removed at once, without a budget (L13). Defaults to 1.
    #[serde(default = "defaults::replicas")]
    #[schemars(range(min = 0))]
    pub replicas: i32,
    /// Seconds for which a pod must be ready, without any of its containers crashing, to count as available. Defaults to 0.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub min_ready_seconds: i32,
    /// The label selector of the pods. Must match the labels of the template (C5); immutable, as in apps/v1.
    #[schemars(extend("x-kubernetes-validations" = immutable("selector")))]
    pub selector: LabelSelector,
    /// The template of the pods, as in a ReplicaSet. Its labels go to every pod (L4). Scheduling gates and a node name in it have no
    /// effect: every pod may be scheduled at once (L3).
    pub template: PodTemplate,
    /// The account whose quota the pods use (L1): a label value. Empty for none, which is the default.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(
        length(max = 63),
        regex(pattern = r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$")
    )]
    pub account_id: String,
    /// The segment of nodes that the pods run in (L1). Immutable. Defaults to `default`: all nodes.
    #[serde(default = "defaults::node_segment_id")]
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = r"^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"),
        extend("x-kubernetes-validations" = immutable("nodeSegmentId"))
    )]
    pub node_segment_id: String,
    /// Where pods must not run together (L1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub constraints: Option<LocalConstraints>,
    /// How many pods may be unavailable, and how fast pods are updated.
    #[serde(default)]
    pub deployment_strategy: LocalDeploymentStrategy,
    /// Whether a change of the template updates the pods that exist (C4, L7). Defaults to `Rolling`.
    #[serde(default)]
    pub update_mode: UpdateMode,
    /// Seconds after which a pod that is not available counts as failed, and after which a rollout without progress is reported:
    /// must be above `minReadySeconds`. 2147483647 means never. Defaults to 600.
    #[serde(default = "defaults::progress_deadline_seconds")]
    #[schemars(range(min = 1))]
    pub progress_deadline_seconds: i32,
    /// The number of old revisions to keep for a rollback. Defaults to 10.
    #[serde(default = "defaults::revision_history_limit")]
    #[schemars(range(min = 0))]
    pub revision_history_limit: i32,
    /// Seconds after which a pod that does not shut down is deleted by force (L17). Defaults to 1800.
    #[serde(default = "defaults::removal_timeout_seconds")]
    #[schemars(range(min = 1))]
    pub removal_timeout_seconds: i32,
    /// Seconds after which an eviction that is not finished no longer delays updates (L19). Defaults to 600.
    #[serde(default = "defaults::eviction_timeout_seconds")]
    #[schemars(range(min = 1))]
    pub eviction_timeout_seconds: i32,
    /// Seconds for which a node must not be ready before its pods are evicted (L18), as `tolerationSeconds` in Kubernetes; 0 for at once. A
    /// node that was deleted, or has the taint `node.kubernetes.io/out-of-service`, evicts its pods at once. Defaults to 300.
    #[serde(default = "defaults::node_timeout_seconds")]
    #[schemars(range(min = 0))]
    pub node_timeout_seconds: i32,
    /// Seconds for which a ready pod is out of endpoints before the controller removes it or restarts its containers, so that clients
    /// leave it: from 0 to 3600. Evictions through the API server, as those of `kubectl drain`, remove pods at once. Defaults to 0.
    #[serde(default)]
    #[schemars(range(min = 0, max = MAX_DRAIN_SECONDS))]
    pub drain_seconds: i32,
    /// The name of the MigrationPolicy for pods that have to leave their nodes (M1). By default, the one whose selector selects the set, or
    /// else none: then pods are evicted within the budget, and those in their place get other names (L18).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
    )]
    pub migration_policy: Option<String>,
    /// Stops updates. Scaling, repair and evictions go on (L8). An update that has begun is completed. Defaults to false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
    /// Stops every change of pods (L8). The controller still updates the status. Defaults to false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stopped: bool,
}

/// Where pods of the set must not run together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LocalConstraints {
    /// At most 16 constraints, one for each label of nodes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = MAX_ANTIAFFINITY),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key"])
    )]
    pub antiaffinity: Vec<AntiaffinityConstraint>,
}

/// The most pods of the set on nodes that have the same value of a label.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AntiaffinityConstraint {
    /// The key of the label of nodes, such as `kubernetes.io/hostname` or `topology.kubernetes.io/zone`.
    #[schemars(length(min = 1, max = 317))]
    pub key: String,
    /// The most pods; at least 1.
    #[schemars(range(min = 1))]
    pub max_pods: i32,
}

/// Whether a change of the template updates the pods that exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum UpdateMode {
    /// All pods are brought to the current template, within the budget.
    #[default]
    Rolling,
    /// Pods stay as they are, as with a ReplicaSet: only new pods have the current template.
    Never,
}

/// The defaults of the API server.
pub mod defaults {
    /// `spec.replicas`.
    pub fn replicas() -> i32 {
        1
    }

    /// `spec.nodeSegmentId`.
    pub fn node_segment_id() -> String {
        "default".to_owned()
    }

    /// `spec.progressDeadlineSeconds`.
    pub fn progress_deadline_seconds() -> i32 {
        600
    }

    /// `spec.revisionHistoryLimit`.
    pub fn revision_history_limit() -> i32 {
        10
    }

    /// `spec.removalTimeoutSeconds`.
    pub fn removal_timeout_seconds() -> i32 {
        1800
    }

    /// `spec.nodeTimeoutSeconds`.
    pub fn node_timeout_seconds() -> i32 {
        300
    }

    /// `spec.evictionTimeoutSeconds`.
    pub fn eviction_timeout_seconds() -> i32 {
        600
    }
}
