//! How fast, in which order and with whose approval a new template reaches the member clusters: `spec.rollout`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::MAX_ENTRIES;

/// The most steps of a rollout. With [`MAX_STEP_CLUSTERS`] it keeps the estimated cost of the rules over all steps at half of
/// what an API server allows.
pub const MAX_STEPS: usize = 16;
/// The most clusters that a step names. `*` stands for any number.
pub const MAX_STEP_CLUSTERS: usize = 128;
/// The most clusters that all steps name together: to look for each of them among all takes half of the cost that an API server
/// allows a rule.
pub(crate) const MAX_NAMED_CLUSTERS: usize = 700;
/// The most characters of the name of a revision: that of an object.
pub(crate) const MAX_REVISION_LENGTH: usize = 253;
/// The name of all clusters that no step names.
pub(crate) const OTHERS: &str = "*";

/// How fast, in which order and with whose approval a new template reaches the member clusters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Rollout {
    /// The most pods that start within a time, over all member clusters together. Only the budget limits them if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speed: Option<RolloutSpeed>,
    /// Groups of member clusters that are updated one after the other. A step begins when all clusters of the one before are
    /// updated and available, and have been so for its `soakSeconds`; clusters that are lost or cordoned are skipped, and
    /// catch up later. Clusters that no step names form a last step. Without steps, all clusters are updated at the same
    /// time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_STEPS), extend("x-kubernetes-validations" = step_rules()))]
    pub steps: Vec<RolloutStep>,
    /// Approvals of steps that need one. Each is for one revision: an old approval never starts a step of a new revision.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = MAX_ENTRIES),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["step", "revision"])
    )]
    pub approvals: Vec<RolloutApproval>,
    /// What happens when a rollout makes no progress for `spec.progressDeadlineSeconds`. Defaults to `Stop`.
    pub on_failure: FailurePolicy,
}

/// The most pods that start within a time, over all member clusters together (L15).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutSpeed {
    /// The most pods that start to be updated within any `minDelaySeconds`, over all member clusters together; at least 1.
    #[schemars(range(min = 1))]
    pub update_portion: i32,
    /// The length of the time, in seconds; at least 1. A new pod counts as available after this time at the earliest. Must be
    /// below `spec.progressDeadlineSeconds`.
    #[schemars(range(min = 1))]
    pub min_delay_seconds: i32,
}

/// Member clusters that are updated together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutStep {
    /// The name of the step, unique among the steps: a DNS label.
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
    )]
    pub name: String,
    /// The names of the member clusters, at least one. `*` stands for all that no step names, in the last step only. A cluster
    /// belongs to one step.
    #[schemars(
        length(min = 1, max = MAX_STEP_CLUSTERS),
        inner(length(max = 63), regex(pattern = r"^(\*|[a-z0-9]([-a-z0-9]*[a-z0-9])?)$")),
        extend("x-kubernetes-list-type" = "set")
    )]
    pub clusters: Vec<String>,
    /// Seconds for which all clusters of the step must be updated and available before the next step begins. Defaults to 0.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub soak_seconds: i32,
    /// Whether the step waits for an approval of its revision in `spec.rollout.approvals`. Defaults to `None`.
    #[serde(default)]
    pub approval: StepApproval,
    /// The most clusters of the step that are updated at the same time; at least 1. No limit if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_concurrent_clusters: Option<i32>,
}

/// Whether a step needs an approval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum StepApproval {
    /// The step needs none.
    #[default]
    None,
    /// The step begins when it is approved.
    Before,
}

/// The approval of a step for one revision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RolloutApproval {
    /// The name of the step.
    #[schemars(length(min = 1, max = 63))]
    pub step: String,
    /// The revision that it may begin with, by name.
    #[schemars(length(min = 1, max = MAX_REVISION_LENGTH))]
    pub revision: String,
}

/// What happens when a rollout fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum FailurePolicy {
    /// Nothing more is updated until the template changes.
    #[default]
    Stop,
    /// The controller rolls back to the previous revision. It does not edit the spec.
    Undo,
}

/// Rules over several steps.
fn step_rules() -> Value {
    let count = "self.map(step, step.clusters.size()).sum()";
    let is_in_one_step = "self.exists_one(other, cluster in other.clusters)";
    json!([
        {
            "rule": format!("{count} <= {MAX_NAMED_CLUSTERS}"),
            "message": format!("all steps together must have at most {MAX_NAMED_CLUSTERS} clusters"),
        },
        {
            "rule": "self.all(step, self.exists_one(other, other.name == step.name))",
            "message": "the names of steps must be unique",
        },
        {
            // More clusters would take too long to compare.
            "rule": format!("{count} > {MAX_NAMED_CLUSTERS} || self.all(step, step.clusters.all(cluster, {is_in_one_step}))"),
            "message": "a cluster must not be in two steps",
            "messageExpression": format!("'cluster ' + self.map(step, step.clusters.filter(cluster, !{is_in_one_step})).filter(clusters, clusters.size() > 0)[0][0] + ' must not be in two steps'"),
        },
        {
            "rule": "!self.exists(step, '*' in step.clusters) || '*' in self[self.size() - 1].clusters",
            "message": "only the last step may have the cluster *",
        },
    ])
}
