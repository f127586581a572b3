//! What happens in a cluster, as data: nodes, sets, and steps with their times.
//!
//! As with the plan of a federation, everything that is random in a run is in the plan, except what the cluster and the controller
//! draw from its seed. A step that is not possible at its time has no effect, and the trace says so.

mod action;
mod edits;
mod generate;
mod kind;

use std::{fmt::Write as _, ops::Range};

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use action::{LocalAction, LocalFault};
pub(super) use edits::healthy_template;
pub use generate::generate_local;

use super::run::run;
use crate::{run::Outcome, scenario::Scenario};

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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LocalStep {
    /// Milliseconds since the start.
    pub at_ms: u64,
    /// What happens.
    #[serde(flatten)]
    pub action: LocalAction,
}

/// The parts of a plan are its sets.
impl Scenario for LocalPlan {
    fn seed(&self) -> u64 {
        self.seed
    }

    fn run(&self) -> Outcome {
        run(self)
    }

    fn describe(&self) -> String {
        let Self {
            nodes,
            pods_per_node,
            ..
        } = self;
        let mut text = format!("  {nodes} nodes for {pods_per_node} pods each\n");
        for set in &self.sets {
            let replicas = &set.spec["replicas"];
            let strategy = &set.spec["deploymentStrategy"];
            let name = &set.name;
            let _ = writeln!(text, "  set {name}: {replicas} replicas, {strategy}");
        }
        text
    }

    fn steps(&self) -> usize {
        self.steps.len()
    }

    fn without_steps(&self, steps: Range<usize>) -> Self {
        let mut plan = self.clone();
        plan.steps.drain(steps);
        plan
    }

    fn parts(&self) -> usize {
        self.sets.len()
    }

    fn without_part(&self, part: usize) -> Option<Self> {
        if self.sets.len() == 1 {
            return None;
        }
        let mut plan = self.clone();
        let set = plan.sets.remove(part);
        plan.steps
            .retain(|step| step.action.set() != Some(&set.name));
        Some(plan)
    }

    fn end_ms(&self) -> u64 {
        self.end_ms
    }

    fn ending_at(&self, end_ms: u64) -> Self {
        let mut plan = self.clone();
        plan.end_ms = end_ms;
        plan.steps.retain(|step| step.at_ms <= end_ms);
        plan
    }

    fn from_json(json: &str) -> serde_json::Result<Self> {
        serde_json::from_str(json)
    }

    fn to_json(&self) -> String {
        let json = serde_json::to_string_pretty(self).expect("a plan has string keys only");
        json + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_are_the_same_after_they_were_written_and_read() {
        for seed in 0..200 {
            let plan = generate_local(seed);
            let json = plan.to_json();
            let read = LocalPlan::from_json(&json).unwrap();
            assert_eq!(read, plan);
            assert_eq!(read.to_json(), json);
        }
    }
}
