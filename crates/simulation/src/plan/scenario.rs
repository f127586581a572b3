//! How the plan of a federation is run and made smaller.

use super::{Action, Plan, Step};
use crate::{
    report::describe_plan,
    run::{Outcome, run},
    scenario::Scenario,
};

/// The parts of a plan are its sets, its members, and the trial.
impl Scenario for Plan {
    type Action = Action;

    fn seed(&self) -> u64 {
        self.seed
    }

    fn run(&self) -> Outcome {
        run(self)
    }

    fn describe(&self) -> String {
        describe_plan(self)
    }

    fn steps(&self) -> &[Step<Action>] {
        &self.steps
    }

    fn steps_mut(&mut self) -> &mut Vec<Step<Action>> {
        &mut self.steps
    }

    fn end_ms(&self) -> u64 {
        self.end_ms
    }

    fn set_end_ms(&mut self, end_ms: u64) {
        self.end_ms = end_ms;
    }

    fn parts(&self) -> usize {
        self.sets.len() + self.members.len() + usize::from(self.trial.is_some())
    }

    fn without_part(&self, part: usize) -> Option<Self> {
        let mut plan = self.clone();
        let (sets, members) = (plan.sets.len(), plan.members.len());
        if part < sets {
            let set = plan.sets.remove(part);
            return Some(without(plan, &set.name));
        }
        if part == sets + members {
            plan.trial = None;
            return Some(plan);
        }
        if members == 1 {
            return None;
        }
        let member = plan.members.remove(part - sets);
        if let Some(core) = &mut plan.core {
            core.retain(|name| *name != member.name);
        }
        Some(without(plan, &member.name))
    }
}

/// The plan without what concerns a set or a member.
fn without(mut plan: Plan, name: &str) -> Plan {
    plan.steps
        .retain(|step| !step.action.names().contains(&name));
    plan.trial = plan.trial.filter(|trial| !trial.names().contains(&name));
    plan
}
