//! What a batch runs, shortens and describes: the plan of a federation, or that of one cluster.

use std::ops::Range;

use serde::{Serialize, de::DeserializeOwned};

use crate::{plan::Step, run::Outcome};

/// A plan that can be run, and made smaller.
pub trait Scenario: Clone + Send + Sync + Serialize + DeserializeOwned {
    /// What a step does.
    type Action;

    /// The seed that it was generated from.
    fn seed(&self) -> u64;
    /// Runs it.
    fn run(&self) -> Outcome;
    /// What there is, in a few lines.
    fn describe(&self) -> String;
    /// Its steps.
    fn steps(&self) -> &[Step<Self::Action>];
    /// Its steps, to remove some.
    fn steps_mut(&mut self) -> &mut Vec<Step<Self::Action>>;
    /// When its steps have ended, in milliseconds since the start.
    fn end_ms(&self) -> u64;
    /// Ends it at this time.
    fn set_end_ms(&mut self, end_ms: u64);
    /// How many parts it has beside its steps: sets, members and the like.
    fn parts(&self) -> usize;
    /// The plan without a part, by its number from 0, and without the steps about it; `None` if it needs that part.
    fn without_part(&self, part: usize) -> Option<Self>;

    /// The plan without these steps, by their numbers from 0.
    #[must_use]
    fn without_steps(&self, steps: Range<usize>) -> Self {
        let mut plan = self.clone();
        plan.steps_mut().drain(steps);
        plan
    }

    /// The plan without what happens later than `end_ms`.
    #[must_use]
    fn ending_at(&self, end_ms: u64) -> Self {
        let mut plan = self.clone();
        plan.set_end_ms(end_ms);
        plan.steps_mut().retain(|step| step.at_ms <= end_ms);
        plan
    }

    /// Reads the JSON of a plan.
    ///
    /// # Errors
    /// If it is not the JSON of such a plan.
    fn from_json(json: &str) -> serde_json::Result<Self> {
        serde_json::from_str(json)
    }

    /// The plan as JSON, the same bytes for the same plan.
    fn to_json(&self) -> String {
        let json = serde_json::to_string_pretty(self).expect("a plan has string keys only");
        json + "\n"
    }
}
