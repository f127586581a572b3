//! The MigrationPolicy: how pods of LocalReplicaSets leave the nodes that they have to leave (M1).

#![expect(
    unreachable_pub,
    reason = "the derive of KubeSchema repeats the struct inside a function"
)]

use k8s_openapi::apimachinery::pkg::{apis::meta::v1::LabelSelector, util::intstr::IntOrString};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    closed_set::closed_set,
    compact::is_default,
    deployment_strategy::max_unavailable_schema,
    notify::Notify,
    rules::{IS_NO_NAME, NAME_RULE},
};

closed_set! {
    /// How a pod leaves its node (M1).
    #[derive(Default)]
    pub enum MigrationMethod {
        /// It is removed, and made again under its name on another node (M5): one pod less for the time.
        #[default]
        Move,
        /// A pod with another name is made first, and the old one is removed once that is available (M2): one pod more for the time.
        Copy,
        /// As `Move`, but a person shuts the pod down, confirms that it is down, and starts the one in its place (M7).
        Manual,
    }
}

closed_set! {
    /// Which planned work pods bear where they are (M9).
    #[derive(Default)]
    pub enum ToleratedWork {
        /// None: pods move.
        #[default]
        None,
        /// All that is short enough.
        All,
    }
}

closed_set! {
    /// What happens to a pod whose containers are not known to have stopped in time (M11).
    #[derive(Default)]
    pub enum ShutdownTimeout {
        /// It is removed all the same, and made again under its name: the old one may still run.
        #[default]
        Evict,
        /// It stays, and nothing takes its place, until its kubelet or a person says that it has stopped.
        HandsUp,
        /// It is removed, and a pod with another name takes its place: the old one may still run.
        Replace,
    }
}

/// How pods of LocalReplicaSets leave the nodes that they have to leave.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "fedrs.dev",
    version = "v1alpha1",
    kind = "MigrationPolicy",
    plural = "migrationpolicies",
    shortname = "mpol",
    namespaced,
    doc = "How pods of LocalReplicaSets leave the nodes that they have to leave: by which method, within a budget, and not too often.",
    printcolumn(
        name = "Method",
        type_ = "string",
        json_path = ".spec.method",
        description = "How a pod leaves its node."
    ),
    printcolumn(
        name = "Max-Unavailable",
        type_ = "string",
        json_path = ".spec.maxUnavailable",
        description = "Pods of a set that may be unavailable when another one begins to move."
    ),
    printcolumn(
        name = "Shard",
        type_ = "string",
        json_path = ".spec.perShard.label",
        description = "The label that pods of one shard have in common."
    ),
    printcolumn(
        name = "Seconds-Between",
        type_ = "integer",
        json_path = ".spec.minSecondsBetween.hardware",
        description = "Seconds between two migrations of running pods of a set."
    ),
    printcolumn(
        name = "Not-Stopped",
        type_ = "string",
        json_path = ".spec.shutdown.onTimeout",
        description = "What happens to a pod that does not stop in time."
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = Rule::new(NAME_RULE).message(IS_NO_NAME),
    derive = "PartialEq"
)]
#[x_kube(
    validation = Rule::new("!has(self.maxUnavailable) || (self.maxUnavailable != '0%' && (self.maxUnavailable != 0 || (has(self.atLeastPercent) && self.atLeastPercent > 0)))")
        .message(MOVES_NOTHING)
        .field_path(".maxUnavailable"),
    validation = Rule::new("!has(self.method) || self.method != 'Manual' || !has(self.shutdown) || (self.shutdown.onTimeout == 'HandsUp' && self.shutdown.beforeEviction)")
        .message(MANUAL_NEEDS_PROOF)
        .field_path(".shutdown"),
    validation = Rule::new("!has(self.copy) || (has(self.method) && self.method == 'Copy')")
        .message(COPY_NEEDS_METHOD)
        .field_path(".copy")
)]
#[serde(rename_all = "camelCase")]
pub struct MigrationPolicySpec {
    /// Selects LocalReplicaSets and ReplicaSets of the namespace by their own labels; an empty selector selects all. Absent: only
    /// LocalReplicaSets that name the policy (`spec.migrationPolicy`) have it. Of several that select a set, the first by name counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
    /// How a pod leaves its node (M1). Defaults to `Move`.
    #[serde(default)]
    pub method: MigrationMethod,
    /// How pods are copied: of the method `Copy` alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy: Option<CopyMethod>,
    /// The pods of the set that may be unavailable, with the one that begins to move (M10): a number, or a percentage of `spec.replicas` of
    /// at most 100%, rounded up. The budget of the set holds as well, and alone if this is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "max_unavailable_schema")]
    pub max_unavailable: Option<IntOrString>,
    /// If `maxUnavailable` is a number: it is at least this percentage of `spec.replicas`, rounded up (M10), so that one broken pod of a
    /// large set does not hold up all others. Defaults to 0.
    #[serde(default, skip_serializing_if = "is_default")]
    #[schemars(range(min = 0, max = 100))]
    pub at_least_percent: i32,
    /// A budget for each group of pods that have the same value of a label (M6).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_shard: Option<ShardBudget>,
    /// The shortest time between the beginnings of two migrations of running pods of a set (M14).
    #[serde(default)]
    pub min_seconds_between: MinSecondsBetween,
    /// Seconds after the request by which a pod is moved whatever holds it up (M15): only shorter than what the controller's configuration
    /// and the request say. Absent: those hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub deadline_seconds: Option<i32>,
    /// Pods are removed only once their containers are known to have stopped (M11). Absent: once their nodes, or
    /// `removalTimeoutSeconds` of the set, have removed them. With the method `Manual`, `HandsUp` after 3600 s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shutdown: Option<Shutdown>,
    /// Planned work on nodes that pods bear where they are (M9). Absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maintenance: Option<MaintenanceTolerance>,
    /// Who is notified of each migration (M8). Absent: who is named by `migration.notify` of the controller's configuration, or nobody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notify: Option<Notify>,
}

/// Why a budget of nothing is invalid.
pub(crate) const MOVES_NOTHING: &str =
    "must not be 0: no running pod could move before its deadline";
/// Why pods that persons shut down need a proof.
pub(crate) const MANUAL_NEEDS_PROOF: &str = "must be absent or have beforeEviction: true and onTimeout: HandsUp, since the method Manual needs a proof that the pod is down";
/// Why there is nothing to say about copies.
pub(crate) const COPY_NEEDS_METHOD: &str = "must be absent unless method is Copy";

/// How pods are copied (M2, M4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct CopyMethod {
    /// The pods that are copied at the same time: so many more than `spec.replicas` there are at most. Defaults to 1.
    #[schemars(range(min = 1))]
    pub max_at_once: i32,
    /// Whether clients reach a new pod only once a person has confirmed it: its readiness gate stays closed. Defaults to false.
    pub confirm_before_activation: bool,
    /// Whether an old pod is shut down only once a person has confirmed it. Defaults to false.
    pub confirm_before_shutdown: bool,
}

impl Default for CopyMethod {
    fn default() -> Self {
        Self {
            max_at_once: 1,
            confirm_before_activation: false,
            confirm_before_shutdown: false,
        }
    }
}

/// A budget for each group of pods.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShardBudget {
    /// The key of the label that pods of one shard have in common. Pods without it have no shard.
    #[schemars(length(min = 1, max = 317))]
    pub label: String,
    /// The pods of a shard that may be unavailable, with the one that begins to move; at least 1.
    #[schemars(range(min = 1))]
    pub max_unavailable: i32,
}

/// Planned work that pods bear where they are (M9): they do not move while a Maintenance says that their node will be back in time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MaintenanceTolerance {
    /// Which work. Defaults to `None`.
    #[serde(default)]
    pub tolerate: ToleratedWork,
    /// The longest work, in seconds, as `durationSeconds` of the Maintenance says it. At least 1800 are advised: machines take their time.
    #[schemars(range(min = 1))]
    pub max_downtime_seconds: i32,
    /// The pods of the set that may be unavailable, with those that stay: a number, or a percentage of `spec.replicas`, rounded up. The
    /// budget of the set holds as well, and alone if this is absent. Other pods move.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "max_unavailable_schema")]
    pub max_unavailable: Option<IntOrString>,
}

/// How pods are shut down before they are removed (M11).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Shutdown {
    /// Whether pods have the finalizer `fedrs.dev/shutdown`, with which they stay until their kubelet has stopped their containers.
    /// Defaults to true.
    pub before_eviction: bool,
    /// Seconds after the removal of a pod was requested within which its containers have to stop. Defaults to 3600.
    #[schemars(range(min = 1))]
    pub timeout_seconds: i32,
    /// What happens after that. Defaults to `Evict`.
    pub on_timeout: ShutdownTimeout,
}

impl Default for Shutdown {
    fn default() -> Self {
        Self {
            before_eviction: true,
            timeout_seconds: 3600,
            on_timeout: ShutdownTimeout::default(),
        }
    }
}

/// The shortest times between two migrations, in seconds; 0 for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct MinSecondsBetween {
    /// For all causes but compaction. Defaults to 3600.
    #[schemars(range(min = 0))]
    pub hardware: i32,
    /// For compaction, which waits for the other migrations, too. Defaults to 604800.
    #[schemars(range(min = 0))]
    pub compaction: i32,
}

impl Default for MinSecondsBetween {
    fn default() -> Self {
        Self {
            hardware: 3600,
            compaction: 604_800,
        }
    }
}
