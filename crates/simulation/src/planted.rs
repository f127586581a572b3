//! Does the simulation find bugs? Looks for each planted bug, and for an invariant that it violates.

use std::process::ExitCode;

use federation_controller::config::Config;
use planted_bugs::{PlantedBug, plant};

use crate::{
    batch::run_batch,
    checks::{Invariant, Violation},
    plan::{Plan, generate},
    print::Print,
    run::{Outcome, run},
    shrink::shrink,
};

/// The most seeds that a bug may take.
pub(crate) const SEEDS: u64 = 1_000;

/// A planted bug, and how it is found.
struct Planted {
    bug: PlantedBug,
    /// A seed whose plan finds it.
    seed: u64,
    /// Whether the plans have rollouts.
    rollouts: bool,
    /// The invariants that it may violate.
    violates: &'static [Invariant],
}

const BUGS: [Planted; 12] = {
    const fn of(bug: PlantedBug, seed: u64, violates: &'static [Invariant]) -> Planted {
        Planted {
            bug,
            seed,
            rollouts: false,
            violates,
        }
    }
    const fn of_rollouts(bug: PlantedBug, seed: u64, violates: &'static [Invariant]) -> Planted {
        Planted {
            rollouts: true,
            ..of(bug, seed, violates)
        }
    }
    use Invariant as I;
    use PlantedBug as B;
    const DIP: &[Invariant] = &[I::NoDip, I::NoRelianceOnUnknown];
    const GIVEN_UP: &[Invariant] = &[I::NoDip, I::NoRelianceOnUnknown, I::Settled];
    [
        of(B::UnknownMembersBySpec, 27, DIP),
        of(B::ReturnedPodsBelieved, 37, GIVEN_UP),
        of(B::CapacityFromLeavingPods, 10, &[I::KnownCapacity]),
        of(B::TemplateBlocksScaling, 263, &[I::Reached]),
        of(B::OwnerIgnoredByDeletion, 9, &[I::OnlyOurs, I::NoDeletion]),
        of(B::LostScaleDownForgotten, 144, DIP),
        of(B::RequestedIsAvailable, 6, DIP),
        of(B::SurgeOfEachCluster, 40, &[I::NoSurplus]),
        of(B::DeletionLostInRelist, 73, &[I::Reached, I::Settled]),
        of(B::StatusNotCompared, 51, &[I::Settled]),
        of_rollouts(B::BudgetLentTwice, 6, &[I::Budget]),
        of_rollouts(B::SpeedForgottenByRestart, 760, &[I::Speed]),
    ]
};

/// The bug of this name.
pub(crate) fn parse(name: &str) -> Result<PlantedBug, String> {
    let mut bugs = PlantedBug::ALL.into_iter();
    let found = bugs.find(|bug| format!("{bug:?}").eq_ignore_ascii_case(name));
    found.ok_or_else(|| format!("one of {:?}", PlantedBug::ALL))
}

/// Looks for each bug: by its known seed, then by the first `seeds`. Prints how each is found; fails if one is not.
pub(crate) fn find_all(config: &Config, seeds: u64, jobs: usize, print: Print<'_>) -> ExitCode {
    let mut missed = 0;
    for planted in &BUGS {
        let bug = planted.bug;
        let plan = generate(planted.seed, config, planted.rollouts);
        let known = planted.find(plan, print);
        let found = known.or_else(|| {
            let seed = planted.seed;
            print(&format!("{bug:?}: not found by seed {seed}"));
            planted.search(config, seeds, jobs, print)
        });
        let text = found.and_then(|(plan, outcome)| describe(&plan, outcome));
        missed += u32::from(text.is_none());
        let text = text.unwrap_or_else(|| format!("not found by {seeds} seeds"));
        print(&format!("{bug:?}: {text}"));
    }
    plant(None);
    ExitCode::from(u8::from(missed > 0))
}

/// How a bug was found, with the size of the shortest plan that shows it.
fn describe(plan: &Plan, outcome: Outcome) -> Option<String> {
    let (short, outcome, _) = shrink(plan, outcome);
    let Violation { invariant, text } = outcome.violation?;
    let (seed, steps, all) = (plan.seed, short.steps.len(), plan.steps.len());
    Some(format!(
        "seed {seed}, {invariant}, {steps} of {all} steps: {text}"
    ))
}

impl Planted {
    /// Looks for the bug in the plans of the first `seeds`, on `jobs` threads.
    fn search(
        &self,
        config: &Config,
        seeds: u64,
        jobs: usize,
        print: Print<'_>,
    ) -> Option<(Plan, Outcome)> {
        let seeds = usize::try_from(seeds).unwrap_or(usize::MAX);
        let mut first = 0;
        while first < seeds {
            plant(Some(self.bug));
            let plan = |number: usize| generate((1 + first + number) as u64, config, self.rollouts);
            let batch = run_batch(seeds - first, jobs, false, plan, |_| {});
            let failed = batch.failures.into_iter();
            let mut found =
                failed.filter_map(|failure| self.confirm(failure.plan, failure.outcome, print));
            if let Some(found) = found.next() {
                return Some(found);
            }
            first += usize::try_from(batch.runs).unwrap_or(usize::MAX).max(1);
        }
        None
    }

    /// Runs `plan` with the bug.
    fn find(&self, plan: Plan, print: Print<'_>) -> Option<(Plan, Outcome)> {
        plant(Some(self.bug));
        let outcome = run(&plan);
        self.confirm(plan, outcome, print)
    }

    /// Whether `outcome` of `plan` shows the bug: what is violated without it as well, or by other invariants, does not.
    fn confirm(&self, plan: Plan, outcome: Outcome, print: Print<'_>) -> Option<(Plan, Outcome)> {
        let Violation { invariant, text } = outcome.violation.as_ref()?;
        plant(None);
        let is_found = self.violates.contains(invariant) && run(&plan).violation.is_none();
        plant(Some(self.bug));
        if !is_found {
            let (bug, seed) = (self.bug, plan.seed);
            print(&format!("{bug:?}: seed {seed}: {invariant}: {text}"));
        }
        is_found.then_some((plan, outcome))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_planted_bug_is_looked_for() {
        let bugs = BUGS.iter().map(|planted| planted.bug);
        let bugs: Vec<_> = bugs.collect();
        assert_eq!(bugs, PlantedBug::ALL);
        for bug in bugs {
            assert_eq!(parse(&format!("{bug:?}")), Ok(bug));
        }
    }
}
