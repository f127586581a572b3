//! The kinds whose templates are rolled out, and what the commands about rollouts read of them.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::Resource;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

/// A kind whose templates are rolled out, and kept as ControllerRevisions.
pub trait RolloutKind: Resource<DynamicType = ()> + DeserializeOwned + fmt::Debug {
    /// A part of a rollout that the status shows, such as a cluster.
    type Part: Clone + fmt::Debug + PartialEq;

    /// The command about its rollouts.
    const COMMAND: &'static str;
    /// The label of its ControllerRevisions.
    const REVISION_LABEL: &'static str;

    /// Removes the controller's own record from an object, if it could make it unreadable.
    fn remove_record(object: &mut Value);
    /// Whether `spec.paused` is true.
    fn is_paused(&self) -> bool;
    /// The fields of the spec that a revision keeps, by name: the template, and what else pods depend on.
    fn revision_fields(&self) -> Value;
    /// What the status says of the rollout as a whole.
    fn observed(&self) -> Observed<'_>;
    /// The parts of the rollout that the status shows.
    fn parts(&self) -> Vec<Self::Part>;
    /// Who has the revision of this name.
    fn users(&self, revision: &str) -> Users;
}

/// What a spec and its status say of a rollout as a whole.
#[derive(Clone, Copy, Debug, Default)]
pub struct Observed<'a> {
    /// The generation of the spec that the status is of.
    pub generation: Option<i64>,
    /// The revision that all pods had last, by its name.
    pub current_revision: Option<&'a str>,
    /// The revision of the template of the spec, by its name.
    pub update_revision: Option<&'a str>,
    /// `spec.replicas`.
    pub desired: i32,
    /// Pods.
    pub pods: i32,
    /// Pods with the template of the spec.
    pub updated: i32,
    /// Available pods.
    pub available: i32,
    /// The conditions.
    pub conditions: &'a [Condition],
    /// The step that waits for an approval.
    pub awaited_step: Option<&'a str>,
}

/// Who has a revision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Users {
    /// The clusters whose Deployment has it, by name.
    Clusters(Vec<String>),
    /// The number of pods that have it.
    Pods(i32),
}

/// `asia,us`, `3`, or `<none>`.
impl fmt::Display for Users {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Clusters(clusters) if clusters.is_empty() => f.write_str("<none>"),
            Self::Clusters(clusters) => f.write_str(&clusters.join(",")),
            Self::Pods(pods) => pods.fmt(f),
        }
    }
}
