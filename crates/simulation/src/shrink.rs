//! Shortens the plan of a failure: drops steps, members and sets while the run still violates the same invariant.

use std::time::{Duration, Instant};

use crate::{
    checks::Invariant,
    plan::Plan,
    run::{Outcome, run},
};

/// Shrinking ends after this time, with the smallest plan so far.
const TIME_MAX: Duration = Duration::from_secs(120);

/// The smallest plan found that violates the same invariant as `plan`, its outcome, and the number of runs.
#[must_use]
pub fn shrink(plan: &Plan, outcome: Outcome) -> (Plan, Outcome, u32) {
    let Some(violation) = &outcome.violation else {
        return (plan.clone(), outcome, 0);
    };
    let mut search = Search {
        invariant: violation.invariant,
        plan: plan.clone(),
        outcome,
        runs: 0,
        until: Instant::now() + TIME_MAX,
    };
    search.cut_end();
    loop {
        let before = search.size();
        search.drop_steps();
        search.drop_sets();
        search.drop_members();
        search.drop_trial();
        search.cut_end();
        if search.size() == before || search.is_late() {
            return (search.plan, search.outcome, search.runs);
        }
    }
}

struct Search {
    invariant: Invariant,
    plan: Plan,
    outcome: Outcome,
    runs: u32,
    until: Instant,
}

impl Search {
    fn size(&self) -> (usize, usize, usize, u64) {
        let plan = &self.plan;
        (
            plan.steps.len(),
            plan.sets.len(),
            plan.members.len(),
            plan.end_ms,
        )
    }

    fn is_late(&self) -> bool {
        Instant::now() >= self.until
    }

    /// Keeps `plan` if it fails in the same way.
    fn takes(&mut self, plan: Plan) -> bool {
        if self.is_late() {
            return false;
        }
        self.runs += 1;
        let outcome = run(&plan);
        let violation = outcome.violation.as_ref();
        let is_same = violation.is_some_and(|violation| violation.invariant == self.invariant);
        if is_same {
            (self.plan, self.outcome) = (plan, outcome);
        }
        is_same
    }

    /// Ends the plan when the invariant is violated: later steps have no effect.
    fn cut_end(&mut self) {
        let lines = self.outcome.trace.lines();
        let Some(at) = lines.last().map(|line| line.at) else {
            return;
        };
        let end_ms = u64::try_from(at.as_millis()).unwrap_or(u64::MAX) + 1;
        let mut plan = self.plan.clone();
        if end_ms < plan.end_ms {
            plan.end_ms = end_ms;
            plan.steps.retain(|step| step.at_ms <= end_ms);
            self.takes(plan);
        }
    }

    /// Drops steps, first many at once.
    fn drop_steps(&mut self) {
        let mut chunk = self.plan.steps.len().div_ceil(2);
        while chunk > 0 {
            let mut from = 0;
            while from < self.plan.steps.len() {
                let mut plan = self.plan.clone();
                let to = (from + chunk).min(plan.steps.len());
                plan.steps.drain(from..to);
                if !self.takes(plan) {
                    from += chunk;
                }
            }
            chunk /= 2;
        }
    }

    fn drop_trial(&mut self) {
        let mut plan = self.plan.clone();
        if plan.trial.take().is_some() {
            self.takes(plan);
        }
    }

    fn drop_sets(&mut self) {
        for place in (0..self.plan.sets.len()).rev() {
            let mut plan = self.plan.clone();
            let set = plan.sets.remove(place);
            self.takes(without(plan, &set.name));
        }
    }

    fn drop_members(&mut self) {
        for place in (0..self.plan.members.len()).rev() {
            if self.plan.members.len() == 1 {
                return;
            }
            let mut plan = self.plan.clone();
            let member = plan.members.remove(place);
            if let Some(core) = &mut plan.core {
                core.retain(|name| *name != member.name);
            }
            self.takes(without(plan, &member.name));
        }
    }
}

/// The plan without what concerns a set or a member.
fn without(mut plan: Plan, name: &str) -> Plan {
    plan.steps
        .retain(|step| !step.action.names().contains(&name));
    plan.trial = plan.trial.filter(|trial| !trial.names().contains(&name));
    plan
}
