//! The FederatedReplicaSet (F1): the object that a user writes, and its status.

#![expect(
    unreachable_pub,
    reason = "the derive of KubeSchema repeats the struct inside a function"
)]

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::{
    RolloutStatus,
    cluster_status::ClusterStatus,
    drain::MAX_DRAIN_SECONDS,
    placement::Placement,
    rescheduling::Rescheduling,
    rules::{IS_NO_NAME, NAME_RULE, immutable},
};

/// The most entries of a map or a list whose size nothing else limits: each takes many times its bytes, in the controller
/// and in its indexes.
pub const MAX_ENTRIES: usize = 256;

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
        description = "Replicas that the spec asks for, over all member clusters."
    ),
    printcolumn(
        name = "Ready",
        type_ = "integer",
        json_path = ".status.readyReplicas",
        description = "Ready pods, over all member clusters."
    ),
    printcolumn(
        name = "Placed",
        type_ = "integer",
        json_path = ".status.placedReplicas",
        description = "Replicas that have a cluster which can run them."
    ),
    printcolumn(
        name = "Clusters",
        type_ = "string",
        json_path = ".status.summary",
        description = "Clusters with all their replicas available, of the clusters with replicas."
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Available",
        type_ = "integer",
        json_path = ".status.availableReplicas",
        description = "Pods that have been ready for minReadySeconds, over all member clusters.",
        priority = 1
    ),
    printcolumn(
        name = "Unplaced",
        type_ = "integer",
        json_path = ".status.unplacedReplicas",
        description = "Replicas that no cluster can run.",
        priority = 1
    ),
    printcolumn(
        name = "Rebalance",
        type_ = "boolean",
        json_path = ".spec.placement.rebalance",
        description = "Whether running replicas move to bring clusters to their shares.",
        priority = 1
    ),
    printcolumn(
        name = "Paused",
        type_ = "boolean",
        json_path = ".spec.paused",
        description = "Whether spec.paused stops changes in the members.",
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
#[serde(rename_all = "camelCase")]
pub struct FederatedReplicaSetSpec {
    /// The number of replicas over all member clusters. Defaults to 1.
    #[serde(default = "one")]
    #[schemars(range(min = 0))]
    pub replicas: i32,
    /// Seconds for which a pod must be ready, without any of its containers crashing, to count as available. Defaults to 0.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub min_ready_seconds: i32,
    /// The label selector of the pods. Must match the labels of the template; immutable, as in apps/v1.
    #[schemars(extend("x-kubernetes-validations" = immutable("selector")))]
    pub selector: LabelSelector,
    /// The template of the pods, as in a ReplicaSet.
    pub template: PodTemplate,
    /// How the replicas spread over the member clusters. Evenly if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<Placement>,
    /// When replicas are rescheduled to other clusters, and how many at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rescheduling: Option<Rescheduling>,
    /// Seconds that a ready pod stays after clients have been told to leave it, before it is removed because its replica moves to
    /// another cluster or is no longer asked for: EndpointSets leave it out, and then it is removed. A rollout of Deployments does not
    /// wait: use a `preStop` hook there. Defaults to 0.
    #[serde(default)]
    #[schemars(range(min = 0, max = MAX_DRAIN_SECONDS))]
    pub drain_seconds: i32,
    /// The federation that handles this object (F40). Defaults to the federation without a name; immutable, for another
    /// federation does not own its local ReplicaSets.
    // Without a default, the rule would not run when the field appears or disappears.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(
        length(max = 63),
        regex(pattern = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$"),
        extend("default" = "", "x-kubernetes-validations" = immutable("federation"))
    )]
    pub federation: String,
    /// Whether deleting this object deletes its replicas in the members, too (F5). Defaults to `Orphan`. Set it before you
    /// delete the object; the cascade of the deletion makes no difference.
    #[serde(default)]
    pub deletion_policy: DeletionPolicy,
    /// Stops every change in the members. The controller still watches them and updates the status. Defaults to false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
}

fn one() -> i32 {
    1
}

/// What a deletion of the FederatedReplicaSet does to its local ReplicaSets (F5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DeletionPolicy {
    /// The local ReplicaSets keep running. The controller removes its labels from them.
    #[default]
    Orphan,
    /// The controller deletes the local ReplicaSets and their pods.
    Delete,
}

/// The template of a pod. The members validate its spec; the host keeps it as written.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PodTemplate {
    /// Labels and annotations of the pods.
    #[serde(default)]
    pub metadata: TemplateMetadata,
    /// The spec of the pods, as in a ReplicaSet.
    #[schemars(schema_with = "crate::crd::pod_spec")]
    pub spec: Value,
}

/// Labels and annotations of the pods.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TemplateMetadata {
    /// Labels of the pods. Must match the selector.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = MAX_ENTRIES))]
    pub labels: BTreeMap<String, String>,
    /// Annotations of the pods.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = MAX_ENTRIES))]
    pub annotations: BTreeMap<String, String>,
}

/// Where the replicas run, and why (F6, F38). Also has the state that a new leader continues from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct FederatedReplicaSetStatus {
    /// The generation of the spec that this status was decided for; -1 before the first reconciliation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Hash of the preferences annotation that this status was decided for. Annotations don't change the generation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_preferences_hash: Option<String>,
    /// Existing pods, over all member clusters.
    pub replicas: i32,
    /// Ready pods, over all member clusters.
    pub ready_replicas: i32,
    /// Pods that have been ready for `minReadySeconds`, over all member clusters.
    pub available_replicas: i32,
    /// Pods of the current template, over all member clusters.
    pub updated_replicas: i32,
    /// The revision that all member clusters had last, by the name of its ControllerRevision. Only of a FederatedDeployment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_revision: Option<String>,
    /// The revision that is rolled out. Equal to `currentRevision` once all member clusters have it. Only of a
    /// FederatedDeployment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub update_revision: Option<String>,
    /// How far the rollout is. Only of a FederatedDeployment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollout: Option<Box<RolloutStatus>>,
    /// The selector as a string, for the scale subresource and autoscalers.
    pub selector: String,
    /// Replicas that have a cluster which can run them.
    pub placed_replicas: i32,
    /// Replicas that no cluster can run (F18).
    pub unplaced_replicas: i32,
    /// Clusters with all their replicas available, of the clusters with replicas: `3/3`.
    pub summary: String,
    /// Accepted, Placed and Ready; Reconciling, Stalled and others while they are true.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// One entry for each member cluster that has replicas, or that the placement selects, by name.
    #[serde(deserialize_with = "without_spare_capacity")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub clusters: Vec<ClusterStatus>,
}

impl FederatedReplicaSetStatus {
    /// The status as it is read after it was written: times have no fractions of seconds.
    #[must_use]
    pub fn as_stored(&self) -> Self {
        let json = serde_json::to_vec(self);
        let stored = json.and_then(|json| serde_json::from_slice(&json));
        stored.unwrap_or_else(|_| self.clone())
    }
}

/// A list that grew while it was read may have room for twice as many: a status is kept as long as its object.
fn without_spare_capacity<'de, T, D>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    let mut list = Vec::deserialize(deserializer)?;
    list.shrink_to_fit();
    Ok(list)
}
