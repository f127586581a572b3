//! The FederatedReplicaSet (F1): what a user writes, and what fedrs answers.

#![expect(
    unreachable_pub,
    reason = "the derive of KubeSchema repeats the struct inside a function"
)]

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::placement::Placement;

/// A ReplicaSet spread over the member clusters of a federation.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "fedrs.dev",
    version = "v1alpha1",
    kind = "FederatedReplicaSet",
    plural = "federatedreplicasets",
    shortname = "frs",
    category = "all",
    namespaced,
    doc = "A ReplicaSet spread over the member clusters of a federation.",
    status = "FederatedReplicaSetStatus",
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".status.selector"
    ),
    printcolumn(
        name = "Desired",
        type_ = "integer",
        json_path = ".spec.replicas",
        description = "Replicas wanted over all member clusters together."
    ),
    printcolumn(
        name = "Ready",
        type_ = "integer",
        json_path = ".status.readyReplicas",
        description = "Pods that are ready over all member clusters."
    ),
    printcolumn(
        name = "Placed",
        type_ = "integer",
        json_path = ".status.placed",
        description = "Replicas that have a cluster that can run them."
    ),
    printcolumn(
        name = "Clusters",
        type_ = "string",
        json_path = ".status.summary",
        description = "Clusters that have all their replicas ready, of those that have any."
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Available",
        type_ = "integer",
        json_path = ".status.availableReplicas",
        description = "Pods that have been ready for minReadySeconds.",
        priority = 1
    ),
    printcolumn(
        name = "Unplaced",
        type_ = "integer",
        json_path = ".status.unplaced",
        description = "Replicas that no cluster can run.",
        priority = 1
    ),
    printcolumn(
        name = "Rebalance",
        type_ = "boolean",
        json_path = ".spec.placement.rebalance",
        description = "Whether running replicas may be moved to bring clusters to their shares.",
        priority = 1
    ),
    printcolumn(
        name = "Paused",
        type_ = "boolean",
        json_path = ".spec.paused",
        description = "Whether changes in the members are stopped.",
        priority = 1
    ),
    printcolumn(
        name = "Selector",
        type_ = "string",
        json_path = ".status.selector",
        description = "Which pods belong to the set.",
        priority = 1
    ),
    validation = Rule::new("self.metadata.name.size() <= 63 && !self.metadata.name.contains('.')")
        .message("the name must be a DNS label: at most 63 characters, without dots"),
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase")]
pub struct FederatedReplicaSetSpec {
    /// Replicas wanted over all member clusters together. 1 by default.
    #[serde(default = "one")]
    #[schemars(range(min = 0))]
    pub replicas: i32,
    /// Seconds a pod must be ready, without a container crashing, before it counts as available. 0 by default.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub min_ready_seconds: i32,
    /// Which pods belong to the set. Must match the template's labels; immutable, as in apps/v1.
    #[schemars(extend("x-kubernetes-validations" = [{"rule": "self == oldSelf", "message": "the selector is immutable"}]))]
    pub selector: LabelSelector,
    /// The pods to run, as in a ReplicaSet.
    pub template: PodTemplate,
    /// How the replicas are laid out over the member clusters. Evenly if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<Placement>,
    /// The federation that handles this set (F40). Empty by default: the one that has no name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(
        length(max = 63),
        regex(pattern = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$")
    )]
    pub federation: String,
    /// What becomes of the local sets when this one is deleted (F5). `Orphan` by default.
    #[serde(default)]
    pub deletion_policy: DeletionPolicy,
    /// Stops every change in the members; watching and status go on. False by default.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
}

fn one() -> i32 {
    1
}

/// What becomes of the local sets when the FederatedReplicaSet is deleted (F5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DeletionPolicy {
    /// They go on running, with fedrs's marks taken off.
    #[default]
    Orphan,
    /// They are deleted, pods and all.
    Delete,
}

/// The template of a pod. What is below `spec` is kept as it was written: the members' answers validate it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PodTemplate {
    /// Labels and annotations of the pods.
    #[serde(default)]
    pub metadata: TemplateMetadata,
    /// The pod's spec, as in a ReplicaSet.
    #[schemars(schema_with = "crate::crd::pod_spec")]
    pub spec: Value,
}

/// Labels and annotations of the pods.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TemplateMetadata {
    /// Labels of the pods. Must match the selector.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations of the pods.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

/// What runs where, and why (F6, F38). Also holds what the controller has learnt, so that a new leader decides the same.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct FederatedReplicaSetStatus {
    /// The generation of the spec that this status answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// A hash of the preferences annotation that this status answers (annotations don't change the generation).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_preferences_hash: Option<String>,
    /// Pods that exist over all members.
    pub replicas: i32,
    /// Pods that are ready over all members.
    pub ready_replicas: i32,
    /// Pods that have been ready for `minReadySeconds` over all members.
    pub available_replicas: i32,
    /// The selector as a string, for the scale subresource and autoscalers.
    pub selector: String,
    /// Replicas that the layout gives to the clusters, less those no cluster can run.
    pub placed: i32,
    /// Replicas that no cluster can run (F18).
    pub unplaced: i32,
    /// Clusters that have all their replicas ready, of those that have any: `3/3`.
    pub summary: String,
    /// Accepted, Placed, Ready, Progressing, and others while they hold.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// One entry for each member that has, had or will have replicas, by name.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub clusters: Vec<ClusterStatus>,
}

/// What runs in one member cluster, and why (F6, F19).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterStatus {
    /// The member cluster's name.
    pub name: String,
    /// Replicas the layout gives this cluster (probes come on top, see `probes`).
    pub desired: i32,
    /// Pods that exist there.
    pub replicas: i32,
    /// Pods that are available there.
    pub ready: i32,
    /// Pods that wait for a node, or could not be created.
    pub unscheduled: i32,
    /// Replicas the cluster has shown it can run, where it has shown that it can't run more (F10).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity: Option<i32>,
    /// Replicas left waiting on top of the layout, to notice when there is room again (F34).
    #[serde(skip_serializing_if = "is_zero")]
    pub probes: i32,
    /// How many replicas beyond what was found are tried next (F34).
    #[serde(skip_serializing_if = "is_zero")]
    pub step: i32,
    /// Failed tries in a row: creations refused (F28), or growth that found no room (F34).
    #[serde(skip_serializing_if = "is_zero")]
    pub failures: i32,
    /// Not before this time is another try made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_try: Option<Time>,
    /// Since when creating the local set has been refused (F28).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused_since: Option<Time>,
    /// The member's words when it last refused the local set (F28).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
    /// Since when the cluster has not answered, once its replicas are placed elsewhere (F33).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost_since: Option<Time>,
    /// Since when pods that have a node wait to become ready, and none has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unready_since: Option<Time>,
    /// Hash of the template last written there, and of what the member made of it: tells drift (F29).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    /// `metadata.generation` of the local set as the controller left it: another one means that somebody changed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub written_generation: Option<i64>,
    /// How often in a row somebody else has undone what the controller wrote there (F29, F31).
    #[serde(skip_serializing_if = "is_zero")]
    pub disturbances: i32,
    /// When that was last put right.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repaired_at: Option<Time>,
    /// The field manager that did it, where the member says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disturbed_by: Option<String>,
    /// How many writes of the local set have failed in a row.
    #[serde(skip_serializing_if = "is_zero")]
    pub write_failures: i32,
    /// When the last of them did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_failed_at: Option<Time>,
    /// What the member said to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_error: Option<String>,
    /// Why this number, in a sentence or two (F19).
    pub reason: String,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde asks for a reference"
)]
fn is_zero(n: &i32) -> bool {
    *n == 0
}
