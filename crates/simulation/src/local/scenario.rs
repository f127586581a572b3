//! A plan can be run, shortened and stored.

use std::fmt::Write as _;

use super::{
    plan::{LocalAction, LocalPlan},
    run::run,
};
use crate::{plan::Step, run::Outcome, scenario::Scenario};

/// The parts of a plan are its sets.
impl Scenario for LocalPlan {
    type Action = LocalAction;

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

    fn steps(&self) -> &[Step<LocalAction>] {
        &self.steps
    }

    fn steps_mut(&mut self) -> &mut Vec<Step<LocalAction>> {
        &mut self.steps
    }

    fn end_ms(&self) -> u64 {
        self.end_ms
    }

    fn set_end_ms(&mut self, end_ms: u64) {
        self.end_ms = end_ms;
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::local::plan::generate_local;

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
