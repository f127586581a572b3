//! What a batch runs, shortens and describes: the plan of a federation, or that of one cluster.

use std::ops::Range;

use crate::run::Outcome;

/// A plan that can be run, and made smaller.
pub trait Scenario: Clone + Send + Sync {
    /// The seed that it was generated from.
    fn seed(&self) -> u64;
    /// Runs it.
    fn run(&self) -> Outcome;
    /// What there is, in a few lines.
    fn describe(&self) -> String;
    /// How many steps it has.
    fn steps(&self) -> usize;
    /// The plan without these steps, by their numbers from 0.
    #[must_use]
    fn without_steps(&self, steps: Range<usize>) -> Self;
    /// How many parts it has beside its steps: sets, members and the like.
    fn parts(&self) -> usize;
    /// The plan without a part, by its number from 0, and without the steps about it; `None` if it needs that part.
    fn without_part(&self, part: usize) -> Option<Self>;
    /// When its steps have ended, in milliseconds since the start.
    fn end_ms(&self) -> u64;
    /// The plan without what happens later than `end_ms`.
    #[must_use]
    fn ending_at(&self, end_ms: u64) -> Self;
    /// Reads the JSON of a plan.
    ///
    /// # Errors
    /// If it is not the JSON of such a plan.
    fn from_json(json: &str) -> serde_json::Result<Self>;
    /// The plan as JSON, the same bytes for the same plan.
    fn to_json(&self) -> String;
}
