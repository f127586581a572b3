//! Runs many plans, on several threads.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    time::Duration,
};

use parking_lot::Mutex;

use crate::{run::Outcome, scenario::Scenario};

/// Each plan of this many is run twice, to compare the traces.
const COMPARED: usize = 50;

/// A plan that failed.
#[derive(Debug)]
pub struct Failure<P> {
    /// The plan.
    pub plan: P,
    /// Its outcome.
    pub outcome: Outcome,
    /// Of a plan that did not give the same trace twice: the first lines that differ.
    pub difference: Option<(String, String)>,
}

/// The outcome of a batch.
#[derive(Debug)]
pub struct Batch<P> {
    /// The number of plans that were run.
    pub runs: u64,
    /// The simulated time of all of them.
    pub simulated: Duration,
    /// How often each kind of fault and of write has happened.
    pub counts: BTreeMap<String, u64>,
    /// The failures, in the order of their seeds.
    pub failures: Vec<Failure<P>>,
}

impl<P> Default for Batch<P> {
    fn default() -> Self {
        Self {
            runs: 0,
            simulated: Duration::ZERO,
            counts: BTreeMap::new(),
            failures: Vec::new(),
        }
    }
}

/// Runs `count` plans on `jobs` threads; `plan` gives each of them. Ends after the first failure, unless it `keeps_going`.
/// Calls `progress` after each run.
pub fn run_batch<P: Scenario>(
    count: usize,
    jobs: usize,
    keeps_going: bool,
    plan: impl Fn(usize) -> P + Sync,
    progress: impl Fn(&Batch<P>) + Sync,
) -> Batch<P> {
    let next = AtomicUsize::new(0);
    let ended = AtomicBool::new(false);
    let batch = Mutex::new(Batch::default());
    let work = || {
        while !ended.load(Ordering::Relaxed) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return;
            }
            let plan = plan(number);
            let outcome = plan.run();
            let is_compared = number.is_multiple_of(COMPARED);
            let difference = is_compared
                .then(|| difference(&outcome, &plan.run()))
                .flatten();
            let mut batch = batch.lock();
            batch.runs += 1;
            batch.simulated += outcome.simulated;
            for (what, times) in &outcome.counts {
                *batch.counts.entry(what.clone()).or_default() += times;
            }
            if outcome.violation.is_some() || difference.is_some() {
                let failure = Failure {
                    plan,
                    outcome,
                    difference,
                };
                batch.failures.push(failure);
                ended.fetch_or(!keeps_going, Ordering::Relaxed);
            }
            progress(&batch);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(work);
        }
    });
    let mut batch = batch.into_inner();
    batch.failures.sort_by_key(|failure| failure.plan.seed());
    batch
}

/// The first lines in which two traces differ.
fn difference(one: &Outcome, other: &Outcome) -> Option<(String, String)> {
    let (one, other) = (one.trace.to_string(), other.trace.to_string());
    if one == other {
        return None;
    }
    let mut others = other.lines();
    let differing = one.lines().find_map(|line| {
        let other = others.next().unwrap_or_default();
        (line != other).then(|| (line.to_owned(), other.to_owned()))
    });
    Some(differing.unwrap_or_default())
}
