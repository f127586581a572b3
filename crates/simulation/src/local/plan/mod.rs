//! What happens in a cluster, as data: nodes, sets, and steps with their times.
//!
//! As with the plan of a federation, everything that is random in a run is in the plan, except what the cluster and the controller
//! draw from its seed. A step that is not possible at its time has no effect, and the trace says so.

mod action;
mod edits;
mod generate;
mod kind;
mod migrations;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use action::{LocalAction, LocalFault};
pub(super) use edits::{HOSTNAME, healthy_template};
pub use generate::generate_local;

use crate::plan::Step;

/// A run: what there is, and what happens to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LocalPlan {
    /// The seed of what the cluster and the controllers draw themselves: uids, jitter.
    pub seed: u64,
    /// How many nodes there are.
    pub nodes: u32,
    /// How many pods each of them can run.
    pub pods_per_node: u32,
    /// How many controllers take part in the election.
    pub candidates: u32,
    /// The spec of the MigrationPolicy of all sets, if they have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<Value>,
    /// The sets, which are created at the start.
    pub sets: Vec<LocalSetPlan>,
    /// What happens, in the order of time.
    pub steps: Vec<LocalStep>,
    /// When the steps have ended, in milliseconds since the start.
    pub end_ms: u64,
    /// Whether all faults end then, and the desired state has to be reached. Otherwise only the safety is checked.
    pub recovers: bool,
}

/// A LocalReplicaSet in the namespace `default`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LocalSetPlan {
    /// Its name.
    pub name: String,
    /// Its spec.
    pub spec: Value,
}

/// What happens at a time.
pub type LocalStep = Step<LocalAction>;
