//! The FederatedDeployment: a Deployment over the member clusters, with one rollout over all of them (L6).

#![expect(
    unreachable_pub,
    reason = "the derive of KubeSchema repeats the struct inside a function"
)]

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    DeletionPolicy, FederatedReplicaSetStatus, LocalKind, Placement, PodTemplate, Rescheduling,
    deployment_strategy::DeploymentStrategy,
    drain::MAX_DRAIN_SECONDS,
    rollout::Rollout,
    rules::{IS_NO_NAME, NAME_RULE, immutable},
};

/// A Deployment spread over the member clusters of a federation, with one rollout over all of them.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "fedrs.dev",
    version = "v1alpha1",
    kind = "FederatedDeployment",
    plural = "federateddeployments",
    shortname = "fdeploy",
    category = "all",
    namespaced,
    doc = "A Deployment spread over the member clusters of a federation, with one rollout over all of them.",
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
        name = "Up-to-date",
        type_ = "integer",
        json_path = ".status.updatedReplicas",
        description = "Pods of the current template, over all member clusters."
    ),
    printcolumn(
        name = "Available",
        type_ = "integer",
        json_path = ".status.availableReplicas",
        description = "Pods that have been ready for minReadySeconds, over all member clusters."
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
        description = "Whether spec.paused stops rollouts.",
        priority = 1
    ),
    printcolumn(
        name = "Stopped",
        type_ = "boolean",
        json_path = ".spec.stopped",
        description = "Whether spec.stopped stops every change in the members.",
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
        .field_path(".progressDeadlineSeconds"),
    validation = Rule::new("!has(self.rollout) || !has(self.rollout.speed) || self.progressDeadlineSeconds > self.rollout.speed.minDelaySeconds")
        .message("must be above rollout.speed.minDelaySeconds")
        .field_path(".progressDeadlineSeconds"),
    validation = Rule::new("self.strategy.type != 'Recreate' || !has(self.rollout) || !has(self.rollout.speed)")
        .message("must not be set if strategy.type is Recreate, which replaces all pods of a cluster at once")
        .reason(Reason::FieldValueForbidden)
        .field_path(".rollout.speed"),
    validation = Rule::new("self.strategy.type != 'Recreate' || !has(self.localKind) || self.localKind != 'LocalReplicaSet'")
        .message("must not be Recreate if localKind is LocalReplicaSet")
        .field_path(".strategy.type"),
    validation = Rule::new("!has(self.localKind) || self.localKind != 'LocalReplicaSet' || self.progressDeadlineSeconds > self.drainSeconds")
        .message("must be above drainSeconds if localKind is LocalReplicaSet")
        .field_path(".progressDeadlineSeconds"),
    validation = Rule::new("!has(self.migrationPolicy) || (has(self.localKind) && self.localKind == 'LocalReplicaSet')")
        .message("must not be set unless localKind is LocalReplicaSet: pods of Deployments are evicted, and not migrated")
        .reason(Reason::FieldValueForbidden)
        .field_path(".migrationPolicy"),
    validation = Rule::new(LOCAL_KIND_IS_KEPT)
        .message("the localKind is immutable")
        .field_path(".localKind")
)]
#[serde(rename_all = "camelCase")]
pub struct FederatedDeploymentSpec {
    /// The number of replicas over all member clusters. Defaults to 1.
    #[serde(default = "defaults::replicas")]
    #[schemars(range(min = 0))]
    pub replicas: i32,
    /// Seconds for which a pod must be ready, without any of its containers crashing, to count as available. Defaults to 0.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub min_ready_seconds: i32,
    /// The label selector of the pods. Must match the labels of the template; immutable, as in apps/v1.
    #[schemars(extend("x-kubernetes-validations" = immutable("selector")))]
    pub selector: LabelSelector,
    /// What each member cluster gets: a `Deployment`, or a `LocalReplicaSet`, whose controller (`fedrs replica-set-controller`) runs
    /// in the member, updates pods in place where possible, and keeps evictions within the budget (L6). Then `maxSurge` counts as 0,
    /// a percentage of `maxUnavailable` is at least one pod, and with a `maxUnavailable` of 0 one replica more runs during a
    /// rollout. Immutable. Defaults to `Deployment`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local_kind: Option<DeploymentKind>,
    /// The template of the pods, as in a Deployment. A change of it is rolled out over all member clusters.
    pub template: PodTemplate,
    /// How the pods of a new template replace those of the old one, as in a Deployment, but over all member clusters together.
    #[serde(default)]
    pub strategy: DeploymentStrategy,
    /// How fast, in which order and with whose approval a new template reaches the member clusters: within the budget of
    /// `strategy`, and all clusters at the same time, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<Rollout>,
    /// The number of old revisions to keep for a rollback. Defaults to 10.
    #[serde(default = "defaults::revision_history_limit")]
    #[schemars(range(min = 0))]
    pub revision_history_limit: i32,
    /// Seconds without progress after which a rollout counts as failed, and `rollout.onFailure` says what happens: must be above
    /// `minReadySeconds` and `rollout.speed.minDelaySeconds`. 2147483647 means never. Defaults to 600.
    #[serde(default = "defaults::progress_deadline_seconds")]
    #[schemars(range(min = 1))]
    pub progress_deadline_seconds: i32,
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
    /// The name of the MigrationPolicy, in this namespace of the pods' own cluster, for pods that have to leave their nodes (M1). Only
    /// with the local kind `LocalReplicaSet`. By default, the one whose selector selects the LocalReplicaSet, which has the labels of this
    /// object, or else none. A change of it is no rollout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
    )]
    pub migration_policy: Option<String>,
    /// The federation that handles this object (F40). Defaults to the federation without a name; immutable, for another
    /// federation does not own its local Deployments.
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
    /// Stops rollouts. Scaling, repair and moves between clusters go on (L8). Defaults to false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
    /// Stops every change in the members (L8): those that roll are paused, and nothing else is written. The controller still watches
    /// them and updates the status. Defaults to false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stopped: bool,
}

/// A field that is absent counts as its default.
const LOCAL_KIND_IS_KEPT: &str = "(has(self.localKind) ? self.localKind : 'Deployment') == (has(oldSelf.localKind) ? oldSelf.localKind : 'Deployment')";

/// The kind of the local workloads of a FederatedDeployment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DeploymentKind {
    /// An apps/v1 Deployment.
    #[default]
    Deployment,
    /// A LocalReplicaSet of fedrs.
    LocalReplicaSet,
}

impl From<DeploymentKind> for LocalKind {
    fn from(kind: DeploymentKind) -> Self {
        match kind {
            DeploymentKind::Deployment => Self::Deployment,
            DeploymentKind::LocalReplicaSet => Self::LocalReplicaSet,
        }
    }
}

/// The defaults of an apps/v1 Deployment.
mod defaults {
    pub(super) fn replicas() -> i32 {
        1
    }

    pub(super) fn revision_history_limit() -> i32 {
        10
    }

    pub(super) fn progress_deadline_seconds() -> i32 {
        600
    }
}
