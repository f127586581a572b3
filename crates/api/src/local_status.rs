//! The status of a LocalReplicaSet.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    availability_set::ObservedLimit, compact::is_default, local_record::LocalRecord, record_text,
};

/// Which pods exist, and what their update waits for. Also has the state that a new leader continues from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LocalReplicaSetStatus {
    /// The generation of the spec that this status was decided for; -1 before the first reconciliation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The number of the spec (L2): grows with each change of it. Which pods are outdated follows from `updateRevision`, so that
    /// scaling updates none.
    pub revision_id: i64,
    /// Pods that exist, without those that are being removed or have terminated.
    pub replicas: i32,
    /// Ready pods.
    pub ready_replicas: i32,
    /// Pods that have been ready for `minReadySeconds`.
    pub available_replicas: i32,
    /// Pods of the current template.
    pub updated_replicas: i32,
    /// Pods of the current template that have been ready for `minReadySeconds`.
    pub updated_available_replicas: i32,
    /// Pods that are being removed.
    pub terminating_replicas: i32,
    /// The selector as a string, for the scale subresource and autoscalers.
    pub selector: String,
    /// The revision that all pods had last, by the name of its ControllerRevision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_revision: Option<String>,
    /// The revision of the current template, by the name of its ControllerRevision. Equal to `currentRevision` once all pods have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub update_revision: Option<String>,
    /// The pods that may be unavailable: `spec.deploymentStrategy.maxUnavailable` as a number (L14), or less, if AvailabilitySets say so
    /// (A1).
    pub max_unavailable: i32,
    /// Of `maxUnavailable`: in use (L16). More than it if pods are broken.
    pub unavailable: i32,
    /// Of `maxUnavailable`: what the set's PodDisruptionBudget lends to evictions through the API server, as those of
    /// `kubectl drain`. It is more than it while a smaller `maxUnavailable` has not reached the PodDisruptionBudget.
    pub evictable: i32,
    /// Evictions of available pods that wait for a part of the budget (L20), and available pods of cordoned nodes whose drain is
    /// expected to evict them.
    #[serde(skip_serializing_if = "is_default")]
    pub waiting_evictions: i32,
    /// The limits of AvailabilitySets that this status was decided by (A1).
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["availabilitySet"]))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<ObservedLimit>,
    /// When the pods last made progress towards the current template: `progressDeadlineSeconds` counts from then, also for another leader.
    /// Absent once all are updated and available.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_progress_time: Option<Time>,
    /// The pods of each revision, by group.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["revision"]))]
    pub revisions: Vec<RevisionPods>,
    /// Accepted, Available, Progressing and Ready; Reconciling, Stalled and others while they are true.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// Which updates and evictions have begun, as JSON. The controller continues from it. Do not edit it: the controller stops
    /// rather than starting more than the budget and the speed allow.
    #[serde(with = "record_text")]
    #[schemars(with = "String")]
    pub record: LocalRecord,
}

/// The pods of one revision, by group (L16).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RevisionPods {
    /// The revision, by the name of its ControllerRevision; empty for pods of an unknown one.
    pub revision: String,
    /// Pods that are available and may be updated.
    pub ready: i32,
    /// Pods that are being created or updated.
    pub in_progress: i32,
    /// Pods that do not become available.
    pub failed: i32,
    /// Pods that are being removed.
    pub marked_remove: i32,
}
