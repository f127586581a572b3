//! The entry of one member cluster in the status of a FederatedReplicaSet (F6, F19).

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{closed_set::closed_set, wait::ClusterWait};

closed_set! {
    /// Whether the controller places replicas in a member cluster (F33, F39).
    pub enum ClusterState {
        /// The cluster was just added; the controller waits for its first answer.
        Joining,
        /// The cluster is healthy and its view is current.
        Eligible,
        /// The state of the cluster is not known: the controller changes nothing because of it.
        Unknown,
        /// The cluster has been unreachable for longer than its grace period: its replicas are rescheduled.
        Lost,
        /// The cluster is registered under another name as well, which counts its replicas.
        Duplicate,
        /// The cluster does not take the namespace of the set, or it is a system namespace, or LocalReplicaSets are not installed in
        /// it: the controller changes nothing.
        Refused,
    }
}

closed_set! {
    /// The most significant reason for the replicas of a member cluster: of several, the one that is declared first.
    pub enum ClusterReason {
        /// The cluster is registered under another name as well.
        DuplicateMember,
        /// The namespace is a system namespace of the cluster: the controller changes nothing in it.
        SystemNamespace,
        /// The cluster does not have the kind of the local workloads: the CRD of LocalReplicaSets is not installed.
        KindNotInstalled,
        /// The cluster has been unreachable for longer than its grace period.
        Lost,
        /// The kubeconfig was removed.
        Removed,
        /// The kubeconfig can't be used.
        InvalidKubeconfig,
        /// The API server can't be reached.
        Unreachable,
        /// The API server rejects the credentials.
        Unauthorized,
        /// The cluster has not been probed yet.
        NotProbed,
        /// The liveness probe fails.
        ProbeFailing,
        /// None of the cluster's nodes is ready.
        NoReadyNodes,
        /// The local workloads are not listed yet.
        NotSynced,
        /// The watch is down.
        Stale,
        /// A previous write has not been answered yet.
        WritePending,
        /// It is not known whether the cluster takes the namespace.
        NamespaceUnknown,
        /// The cluster was just added; the controller waits for its first answer.
        Joining,
        /// `spec.paused` stops every change.
        Paused,
        /// The cluster reports more replicas than were requested of it.
        ExcessReplicas,
        /// The cluster rejects changes of the local workload.
        WriteRejected,
        /// Another writer keeps changing the local workload.
        ExternalWriter,
        /// The cluster was lost and has returned: replicas elsewhere stay until it has been healthy for long enough.
        Stabilizing,
        /// The cluster rejects the creation of the local workload.
        CreationRejected,
        /// The local workload is being deleted, and waits for finalizers.
        ReplicaSetTerminating,
        /// The cluster's controllers do not act on the local workload.
        ControllersNotActing,
        /// The cluster can't create pods (quota, admission).
        PodsNotCreated,
        /// Pods are unschedulable: the scheduler reports it, or they have had no node for too long.
        PodsUnschedulable,
        /// Replicas wait for capacity that no cluster has.
        InsufficientCapacity,
        /// Existing replicas stay: rebalancing is off, or no other cluster can take them.
        KeptInPlace,
        /// Replicas stay until no write of a controller process that has ended can arrive any more, and for a while after the
        /// host was restored, or nobody has led for a minute.
        WaitingForEarlierWrites,
        /// Replicas stay until the state of another cluster is known: they may replace those that it has lost.
        WaitingForUnknownClusters,
        /// Replicas stay until their replacements in other clusters are ready.
        WaitingForReplacements,
        /// Ready pods stay until their clients have left them (`spec.drainSeconds`).
        WaitingForClients,
        /// Pods have no node yet.
        PodsPending,
        /// The cluster does not take the namespace: all replicas leave it.
        NamespaceNotTaken,
        /// All replicas leave the cluster, because it is drained.
        Draining,
        /// The cluster gets no more replicas, because it is cordoned.
        Cordoned,
        /// The cluster's capacity decides.
        AtCapacity,
        /// `maxReplicas` decides.
        AtMaximum,
        /// `minReplicas` decides.
        AtMinimum,
        /// The replicas follow from the cluster's weight.
        ByWeight,
        /// The placement gives the cluster no replicas: weight 0, or N is used up by others.
        NoShare,
        /// The placement does not select the cluster.
        NotSelected,
        /// Replicas are pending on top of the layout, to detect capacity.
        CapacityProbes,
    }
}

closed_set! {
    /// Why a member rejects a local workload.
    pub enum RejectionKind {
        /// The member's API server rejects the creation (F28): admission, quota, authorization, validation.
        Rejected,
        /// A workload of the same name belongs to another owner (F29, F40).
        NameConflict,
    }
}

/// The replicas of one member cluster, and why it has them (F6, F19).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterStatus {
    /// The name of the member cluster.
    pub name: String,
    /// Replicas that the layout gives the cluster. Capacity probes come on top.
    pub desired_replicas: i32,
    /// Existing pods.
    pub replicas: i32,
    /// Pods that are ready.
    pub ready_replicas: i32,
    /// Pods that have been ready for `minReadySeconds`.
    pub available_replicas: i32,
    /// Pods of the current template.
    pub updated_replicas: i32,
    /// The revision of the local workload's template, if the controller has written it. Only of a FederatedDeployment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Pods that are unschedulable or that the cluster can't create.
    pub unscheduled_replicas: i32,
    /// Replicas that the cluster can run, if it has shown a limit (F10).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity: Option<i32>,
    /// Whether the controller places replicas in the cluster.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "known_or_none"
    )]
    pub state: Option<ClusterState>,
    /// The member that counts this cluster's replicas, if the cluster is registered twice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub same_cluster_as: Option<String>,
    /// The most significant reason for the cluster's replicas.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "known_or_none"
    )]
    #[schemars(with = "Option<String>")]
    pub reason: Option<ClusterReason>,
    /// Why the cluster has these replicas, for people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// What the controller waits for in the cluster, and until when.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "known_items"
    )]
    pub waits: Vec<ClusterWait>,
    /// State that the controller keeps for itself between two reconciliations. Not an API.
    #[serde(
        skip_serializing_if = "ClusterInternalState::is_empty",
        with = "crate::compact"
    )]
    #[schemars(with = "String")]
    pub internal: ClusterInternalState,
}

impl ClusterStatus {
    /// Whether the cluster has or should have replicas, may get some by a write whose response was lost, or was lost with some.
    #[must_use]
    pub fn has_replicas(&self) -> bool {
        let internal = &self.internal;
        self.desired_replicas > 0
            || self.replicas > 0
            || internal.capacity_probes > 0
            || internal.requested_replicas.is_some_and(|most| most > 0)
            || internal.lost_since.is_some()
    }
}

/// What the controller has to know about a cluster after a restart (F34). Not an API.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterInternalState {
    /// The most replicas that the writes so far may have requested; `None` before the first write. The controller does not
    /// count replicas that a cluster reports beyond them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requested_replicas: Option<i32>,
    /// Replicas beyond those that a write requested which no status shows, perhaps one of an earlier leader. They use the surge
    /// until they are removed, but nothing is removed elsewhere because of them.
    #[serde(skip_serializing_if = "crate::compact::is_default")]
    pub unpublished_replicas: i32,
    /// Capacity probes: replicas left pending on top of the layout, to detect capacity (F34).
    #[serde(skip_serializing_if = "crate::compact::is_default")]
    pub capacity_probes: i32,
    /// Replicas that the next growth adds beyond the detected capacity (F34).
    #[serde(skip_serializing_if = "crate::compact::is_default")]
    pub growth_step: i32,
    /// Failed attempts in a row: rejected creations (F28), or growth that found no capacity (F34).
    #[serde(skip_serializing_if = "crate::compact::is_default")]
    pub failures: i32,
    /// The earliest time of the next attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_attempt_time: Option<Time>,
    /// The rejection of the local workload, while it lasts (F28).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rejection: Option<Box<Rejection>>,
    /// When the cluster became unreachable, once its replicas are rescheduled (F33).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost_since: Option<Time>,
    /// Since when scheduled pods wait to become ready without any progress.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unready_since: Option<Time>,
    /// Since when the cluster's controllers have not acted on the local workload, if that is half of `unscheduledTimeout` or longer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behind_since: Option<Time>,
    /// The template that the controller last wrote, to detect drift (F29).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<TemplateRecord>,
    /// Hash of the labels and settings that the controller last wrote into a local Deployment: all but its replicas, strategy and
    /// template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settings: Option<SettingsHash>,
    /// The rejection of the template, while it lasts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template_rejection: Option<Box<TemplateRejection>>,
    /// The writes of the local workload, as far as the next one depends on them.
    #[serde(flatten)]
    pub writes: WriteHistory,
}

impl ClusterInternalState {
    /// Whether it says nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The writes of one local workload, as far as the next one depends on them (F29, F31).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WriteHistory {
    /// `metadata.generation` of the local workload after the last write. Another generation means an external change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub written_generation: Option<i64>,
    /// External changes in a row (F29, F31).
    #[serde(skip_serializing_if = "crate::compact::is_default")]
    pub drift_count: i32,
    /// When the controller last restored the local workload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repaired_time: Option<Time>,
    /// The field manager of the last external change, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drift_manager: Option<String>,
    /// Failed writes of the local workload in a row.
    #[serde(skip_serializing_if = "crate::compact::is_default")]
    pub write_failures: i32,
    /// When the last write failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_failure_time: Option<Time>,
    /// The member's message for the last failed write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_error: Option<String>,
    /// Since when the member rejects changes of `spec.replicas`, or repeatedly fails to confirm them, while it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_rejected_since: Option<Time>,
}

/// A member that rejects the local workload (F28).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rejection {
    /// When the member first rejected it.
    pub since: Time,
    /// Why.
    pub kind: RejectionKind,
    /// The member's message.
    pub message: String,
}

/// A member that rejects the template of the FederatedReplicaSet: its local workload, if it has one, keeps the template that it
/// has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TemplateRejection {
    /// Hash of the rejected spec, without replicas: 16 hexadecimal digits.
    #[serde(with = "digits")]
    pub desired: u64,
    /// When the member first rejected a template.
    pub since: Time,
    /// The member's message.
    pub message: String,
    /// Failed attempts in a row.
    pub failures: i32,
    /// The earliest time of the next attempt.
    pub next_attempt_time: Time,
}

impl TemplateRejection {
    /// The rejection of the spec with this hash.
    #[must_use]
    pub fn new(desired: u64, since: Time, message: String) -> Self {
        Self {
            desired,
            next_attempt_time: since.clone(),
            since,
            message,
            failures: 0,
        }
    }

    /// Whether the member rejected the spec with this hash.
    #[must_use]
    pub fn is_of(&self, hash: u64) -> bool {
        self.desired == hash
    }
}

/// Hashes of the template that the controller wrote and of the template that the member stored, with its defaults. They
/// distinguish a change by the user from a change by another writer in the member (F29).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TemplateRecord {
    /// Hash of the spec that the controller wrote, without replicas: 16 hexadecimal digits.
    #[serde(with = "digits")]
    desired: u64,
    /// Hash of the spec that the member stored, without replicas: 16 hexadecimal digits.
    #[serde(with = "digits")]
    live: u64,
}

impl TemplateRecord {
    /// The record of two hashes.
    #[must_use]
    pub fn new(desired: u64, live: u64) -> Self {
        Self { desired, live }
    }

    /// Hash of the spec that the controller wrote.
    #[must_use]
    pub fn desired(&self) -> u64 {
        self.desired
    }

    /// Whether the controller wrote the spec with this hash.
    #[must_use]
    pub fn has_desired(&self, hash: u64) -> bool {
        self.desired == hash
    }

    /// Whether the member stored the spec with this hash.
    #[must_use]
    pub fn has_live(&self, hash: u64) -> bool {
        self.live == hash
    }
}

/// Hash of the labels and settings of a local Deployment as the controller writes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SettingsHash(#[serde(with = "digits")] pub u64);

/// Hashes as 16 hexadecimal digits: many readers of JSON know no integers of 64 bits.
mod digits {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde passes a reference"
    )]
    pub(super) fn serialize<S: Serializer>(hash: &u64, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&format_args!("{hash:016x}"))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
        u64::from_str_radix(&String::deserialize(from)?, 16).map_err(D::Error::custom)
    }
}

/// Reads a word that a newer controller may have written: an unknown one counts as absent.
fn known_or_none<'de, D: serde::Deserializer<'de>, T: DeserializeOwned>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    Ok(T::deserialize(Value::deserialize(deserializer)?).ok())
}

/// Reads the items of a list that this version knows.
fn known_items<'de, D: serde::Deserializer<'de>, T: DeserializeOwned>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let items = Vec::<Value>::deserialize(deserializer)?.into_iter();
    Ok(items.filter_map(|item| T::deserialize(item).ok()).collect())
}
