//! Does the simulation find bugs? Looks for each planted bug, and for an invariant that it violates.

use std::process::ExitCode;

use federation_controller::config::Config;
use planted_bugs::{PlantedBug, plant};

use crate::{
    batch::run_batch,
    checks::Invariant,
    plan::{Plan, generate},
    run::{Outcome, run},
    shrink::shrink,
};

/// The most seeds that a bug may take.
pub(crate) const SEEDS: u64 = 1_000;

/// The planted bugs, each with a seed whose plan finds it, and the invariants that it may violate.
const BUGS: [(PlantedBug, u64, &[Invariant]); PlantedBug::ALL.len()] = {
    use Invariant::*;
    use PlantedBug::*;
    [
        (
            UnknownMembersBySpec,
            1,
            &[NoDip, NoRelianceOnUnknown, NoSurplus, Reached],
        ),
        (ReturnedPodsBelieved, 1, &[NoDip, NoRelianceOnUnknown]),
        (CapacityFromLeavingPods, 1, &[KnownCapacity]),
        (TemplateBlocksScaling, 1, &[Reached]),
        (OwnerIgnoredByDeletion, 1, &[OnlyOurs, NoDeletion]),
        (LostScaleDownForgotten, 1, &[NoDip, NoRelianceOnUnknown]),
        (RequestedIsAvailable, 1, &[NoDip]),
        (SurgeOfEachCluster, 1, &[NoSurplus]),
        (
            DeletionLostInRelist,
            1,
            &[NoDip, NoRelianceOnUnknown, Reached, Settled],
        ),
        (StatusNotCompared, 1, &[Settled]),
    ]
};

/// The bug of this name.
pub(crate) fn parse(name: &str) -> Result<PlantedBug, String> {
    let mut bugs = PlantedBug::ALL.into_iter();
    let found = bugs.find(|bug| format!("{bug:?}").eq_ignore_ascii_case(name));
    found.ok_or_else(|| format!("one of {:?}", PlantedBug::ALL))
}

/// Looks for each bug: by its known seed, then by the first `seeds`. Prints how each is found; fails if one is not.
pub(crate) fn find_all(config: &Config, seeds: u64, jobs: usize) -> ExitCode {
    let mut missed = 0;
    for (bug, known, invariants) in BUGS {
        let known = generate(known, config);
        let found = find(&known, bug, invariants).or_else(|| {
            println!("{bug:?}: not found by seed {}", known.seed);
            let plan = |number: usize| generate(1 + number as u64, config);
            search(bug, invariants, seeds, jobs, plan)
        });
        match found {
            Some((plan, outcome)) => print(bug, &plan, outcome),
            None => {
                missed += 1;
                println!("{bug:?}: not found by {seeds} seeds");
            }
        }
    }
    plant(None);
    ExitCode::from(u8::from(missed > 0))
}

/// Prints how `bug` was found, with the size of the shortest plan that shows it.
fn print(bug: PlantedBug, plan: &Plan, outcome: Outcome) {
    let (short, outcome, _) = shrink(plan, outcome);
    let Some(violation) = &outcome.violation else {
        return;
    };
    println!(
        "{bug:?}: seed {}, {}, {} of {} steps: {}",
        plan.seed,
        violation.invariant,
        short.steps.len(),
        plan.steps.len(),
        violation.text
    );
}

/// Looks for `bug` in the plans of many seeds, on `jobs` threads.
fn search(
    bug: PlantedBug,
    invariants: &[Invariant],
    seeds: u64,
    jobs: usize,
    plan: impl Fn(usize) -> Plan + Sync,
) -> Option<(Plan, Outcome)> {
    let mut first = 0;
    while first < seeds {
        plant(Some(bug));
        let count = usize::try_from(seeds - first).unwrap_or(usize::MAX);
        let failed = run_batch(
            count,
            jobs,
            false,
            |number| plan(first as usize + number),
            |_| {},
        );
        for failure in &failed.failures {
            let found = find(&failure.plan, bug, invariants);
            if found.is_some() {
                return found;
            }
        }
        first += failed.runs.max(1);
    }
    None
}

/// Runs `plan` with `bug`. What is violated without it as well, or by other invariants, shows nothing.
fn find(plan: &Plan, bug: PlantedBug, invariants: &[Invariant]) -> Option<(Plan, Outcome)> {
    plant(None);
    let without = run(plan);
    plant(Some(bug));
    let with = run(plan);
    let violation = with.violation.as_ref()?;
    let is_found = without.violation.is_none() && invariants.contains(&violation.invariant);
    if !is_found {
        println!(
            "{bug:?}: seed {}: {}: {}",
            plan.seed, violation.invariant, violation.text
        );
    }
    is_found.then(|| (plan.clone(), with))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_planted_bug_is_looked_for() {
        let bugs = BUGS.map(|(bug, ..)| bug);
        assert_eq!(bugs, PlantedBug::ALL);
        for bug in bugs {
            assert_eq!(parse(&format!("{bug:?}")), Ok(bug));
        }
    }
}
