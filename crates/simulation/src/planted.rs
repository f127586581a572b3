//! Does the simulation find bugs? Looks for each planted bug, and for an invariant that it violates.

use std::process::ExitCode;

use federation_controller::config::Config;
use planted_bugs::{PlantedBug, plant};

use crate::{
    batch::run_batch,
    checks::{Invariant, Violation},
    local::generate_local,
    plan::{generate, generate_discovery},
    print::Print,
    run::Outcome,
    scenario::Scenario,
    shrink::shrink,
};

/// The most seeds that a bug may take.
pub(crate) const SEEDS: u64 = 1_000;

/// A planted bug, and how it is found.
struct Planted {
    bug: PlantedBug,
    /// A seed whose plan finds it.
    seed: u64,
    /// The plans that it is looked for in.
    mode: Mode,
    /// The invariants that it may violate.
    violates: &'static [Invariant],
}

/// Which plans a seed gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Of federations.
    Federation,
    /// Of federations with FederatedDeployments.
    Rollouts,
    /// Of single clusters with LocalReplicaSets.
    Local,
    /// Of federations with discovery.
    Discovery,
}

const BUGS: [Planted; 21] = {
    const fn of(bug: PlantedBug, seed: u64, violates: &'static [Invariant]) -> Planted {
        Planted {
            bug,
            seed,
            mode: Mode::Federation,
            violates,
        }
    }
    const fn of_rollouts(bug: PlantedBug, seed: u64, violates: &'static [Invariant]) -> Planted {
        Planted {
            mode: Mode::Rollouts,
            ..of(bug, seed, violates)
        }
    }
    const fn of_local(bug: PlantedBug, seed: u64, violates: &'static [Invariant]) -> Planted {
        Planted {
            mode: Mode::Local,
            ..of(bug, seed, violates)
        }
    }
    const fn of_discovery(bug: PlantedBug, seed: u64, violates: &'static [Invariant]) -> Planted {
        Planted {
            mode: Mode::Discovery,
            ..of(bug, seed, violates)
        }
    }
    use Invariant as I;
    use PlantedBug as B;
    const DIP: &[Invariant] = &[I::NoDip, I::NoRelianceOnUnknown];
    const LOST: &[Invariant] = &[I::NoLostEndpoint, I::NoEmptyAnswer];
    const GIVEN_UP: &[Invariant] = &[I::NoDip, I::NoRelianceOnUnknown, I::Settled];
    [
        of(B::UnknownMembersBySpec, 27, DIP),
        of(B::ReturnedPodsBelieved, 37, GIVEN_UP),
        of(B::CapacityFromLeavingPods, 10, &[I::KnownCapacity]),
        of(B::TemplateBlocksScaling, 263, &[I::Reached]),
        of(B::OwnerIgnoredByDeletion, 9, &[I::OnlyOurs, I::NoDeletion]),
        of(B::LostScaleDownForgotten, 144, DIP),
        of(B::RequestedIsAvailable, 1, DIP),
        of(B::SurgeOfEachCluster, 40, &[I::NoSurplus]),
        of(B::DeletionLostInRelist, 73, &[I::Reached, I::Settled]),
        of(B::StatusNotCompared, 51, &[I::Settled]),
        of_rollouts(B::BudgetLentTwice, 6, &[I::Budget]),
        of_rollouts(B::UnavailableLentBesideTheBudget, 2, &[I::Budget]),
        of_rollouts(B::SpeedForgottenByRestart, 760, &[I::Speed]),
        of_local(B::StartedUpdatesForgottenByRestart, 50, &[I::Speed]),
        of_local(B::EvictionsBesideTheBudget, 7, &[I::Budget]),
        of_local(B::ForcedDeletionProves, 122, &[I::Proof]),
        of_local(B::PlaceOfRunningPodTaken, 156, &[I::Proof]),
        of_local(B::CopyNotAwaited, 14, &[I::Budget]),
        of_local(B::PersonNotAwaited, 9, &[I::Proof]),
        of_discovery(B::EndpointsForgottenByRelist, 3, LOST),
        of_discovery(B::EndpointsKeptByRelist, 10, &[I::TrueEndpoints]),
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
        let look = Look {
            planted,
            seeds,
            jobs,
            print,
        };
        let text = match planted.mode {
            Mode::Federation => look.describe(&|seed| generate(seed, config, false)),
            Mode::Rollouts => look.describe(&|seed| generate(seed, config, true)),
            Mode::Local => look.describe(&generate_local),
            Mode::Discovery => look.describe(&|seed| generate_discovery(seed, config)),
        };
        missed += u32::from(text.is_none());
        let text = text.unwrap_or_else(|| format!("not found by {seeds} seeds"));
        print(&format!("{bug:?}: {text}"));
    }
    plant(None);
    ExitCode::from(u8::from(missed > 0))
}

/// How a bug was found, with the size of the shortest plan that shows it.
fn describe<P: Scenario>(plan: &P, outcome: Outcome) -> Option<String> {
    let (short, outcome, _) = shrink(plan, outcome);
    let Violation { invariant, text } = outcome.violation?;
    let (seed, steps, all) = (plan.seed(), short.steps().len(), plan.steps().len());
    Some(format!(
        "seed {seed}, {invariant}, {steps} of {all} steps: {text}"
    ))
}

/// How a bug is looked for.
struct Look<'a> {
    planted: &'a Planted,
    seeds: u64,
    jobs: usize,
    print: Print<'a>,
}

impl Look<'_> {
    /// Looks for the bug by its known seed, then by the first ones. Returns how it was found.
    fn describe<P: Scenario>(&self, generate: &(impl Fn(u64) -> P + Sync)) -> Option<String> {
        let Planted { bug, seed, .. } = *self.planted;
        let known = self.find(generate(seed));
        let (plan, outcome) = known.or_else(|| {
            (self.print)(&format!("{bug:?}: not found by seed {seed}"));
            self.search(generate)
        })?;
        describe(&plan, outcome)
    }

    /// Looks for the bug in the plans of the first seeds.
    fn search<P: Scenario>(&self, generate: &(impl Fn(u64) -> P + Sync)) -> Option<(P, Outcome)> {
        let seeds = usize::try_from(self.seeds).unwrap_or(usize::MAX);
        let mut first = 0;
        while first < seeds {
            plant(Some(self.planted.bug));
            let plan = |number: usize| generate((1 + first + number) as u64);
            let batch = run_batch(seeds - first, self.jobs, false, plan, |_| {});
            let failed = batch.failures.into_iter();
            let mut found =
                failed.filter_map(|failure| self.confirm(failure.plan, failure.outcome));
            if let Some(found) = found.next() {
                return Some(found);
            }
            first += usize::try_from(batch.runs).unwrap_or(usize::MAX).max(1);
        }
        None
    }

    /// Runs `plan` with the bug.
    fn find<P: Scenario>(&self, plan: P) -> Option<(P, Outcome)> {
        plant(Some(self.planted.bug));
        let outcome = plan.run();
        self.confirm(plan, outcome)
    }

    /// Whether `outcome` of `plan` shows the bug: what is violated without it as well, or by other invariants, does not.
    fn confirm<P: Scenario>(&self, plan: P, outcome: Outcome) -> Option<(P, Outcome)> {
        let Planted { bug, violates, .. } = *self.planted;
        let Violation { invariant, text } = outcome.violation.as_ref()?;
        plant(None);
        let is_found = violates.contains(invariant) && plan.run().violation.is_none();
        plant(Some(bug));
        if !is_found {
            let seed = plan.seed();
            (self.print)(&format!("{bug:?}: seed {seed}: {invariant}: {text}"));
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
