//! Shortens the plan of a failure: drops steps and parts while the run still violates the same invariant.

use std::time::{Duration, Instant};

use crate::{checks::Invariant, run::Outcome, scenario::Scenario};

/// Shrinking ends after this time, with the smallest plan so far.
const TIME_MAX: Duration = Duration::from_secs(120);

/// The smallest plan found that violates the same invariant as `plan`, its outcome, and the number of runs.
#[must_use]
pub fn shrink<P: Scenario>(plan: &P, outcome: Outcome) -> (P, Outcome, u32) {
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
        search.drop_parts();
        search.cut_end();
        if search.size() == before || search.is_late() {
            return (search.plan, search.outcome, search.runs);
        }
    }
}

struct Search<P> {
    invariant: Invariant,
    plan: P,
    outcome: Outcome,
    runs: u32,
    until: Instant,
}

impl<P: Scenario> Search<P> {
    fn size(&self) -> (usize, usize, u64) {
        let plan = &self.plan;
        (plan.steps().len(), plan.parts(), plan.end_ms())
    }

    fn is_late(&self) -> bool {
        Instant::now() >= self.until
    }

    /// Keeps `plan` if it fails in the same way.
    fn takes(&mut self, plan: P) -> bool {
        if self.is_late() {
            return false;
        }
        self.runs += 1;
        let outcome = plan.run();
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
        if end_ms < self.plan.end_ms() {
            self.takes(self.plan.ending_at(end_ms));
        }
    }

    /// Drops steps, first many at once.
    fn drop_steps(&mut self) {
        let mut chunk = self.plan.steps().len().div_ceil(2);
        while chunk > 0 {
            let mut from = 0;
            while from < self.plan.steps().len() {
                let to = (from + chunk).min(self.plan.steps().len());
                if !self.takes(self.plan.without_steps(from..to)) {
                    from += chunk;
                }
            }
            chunk /= 2;
        }
    }

    fn drop_parts(&mut self) {
        for part in (0..self.plan.parts()).rev() {
            if let Some(plan) = self.plan.without_part(part) {
                self.takes(plan);
            }
        }
    }
}
