//! Does the simulation find bugs? Searches up to 1,000 seeds for each planted bug, and the invariant that it violates.
//!
//! `cargo test --profile simulation -p simulation --test planted -- --ignored` runs the tests.

use federation_controller::config::Config;
use planted_bugs::{PlantedBug, plant};
use simulation::{Invariant, Violation, generate, run};

/// The most seeds that a bug may take.
const SEEDS: u64 = 1_000;

/// The violation in the run of a seed while `bug` is planted.
fn violation(seed: u64, bug: Option<PlantedBug>) -> Option<Violation> {
    let plan = generate(seed, &Config::default());
    plant(bug);
    let outcome = run(&plan);
    plant(None);
    outcome.violation
}

/// Checks that `bug` is found, by one of `invariants`.
fn is_found(bug: PlantedBug, invariants: &[Invariant]) {
    for seed in 1..=SEEDS {
        let Some(found) = violation(seed, Some(bug)) else {
            continue;
        };
        // What is violated without the bug as well shows nothing.
        if let Some(without) = violation(seed, None) {
            println!("{bug:?}: seed {seed} without it: {}", without.text);
            continue;
        }
        let Violation { invariant, text } = found;
        println!("{bug:?}: seed {seed}: {invariant}: {text}");
        assert!(
            invariants.contains(&invariant),
            "found by another invariant"
        );
        return;
    }
    panic!("{bug:?} is not found in {SEEDS} seeds");
}

macro_rules! planted {
    ($($name:ident: $bug:ident, [$($invariant:ident),*];)*) => {$(
        #[test]
        #[ignore = "many simulations: run with the profile `simulation`"]
        fn $name() {
            is_found(PlantedBug::$bug, &[$(Invariant::$invariant),*]);
        }
    )*};
}

planted! {
    members_that_cannot_be_changed_count_by_their_spec: UnknownMembersBySpec, [NoDip, NoRelianceOnUnknown, NoSurplus, Reached];
    pods_of_a_returned_member_are_believed: ReturnedPodsBelieved, [NoDip, NoRelianceOnUnknown];
    a_capacity_is_learned_from_pods_that_are_deleted: CapacityFromLeavingPods, [KnownCapacity];
    a_rejected_template_blocks_scaling: TemplateBlocksScaling, [Reached];
    a_deletion_ignores_the_owner: OwnerIgnoredByDeletion, [OnlyOurs, NoDeletion];
    a_lost_scale_down_is_forgotten: LostScaleDownForgotten, [NoDip, NoRelianceOnUnknown];
    requested_replicas_are_available: RequestedIsAvailable, [NoDip];
    each_cluster_gets_a_surge: SurgeOfEachCluster, [NoSurplus];
    a_deletion_is_lost_in_a_relist: DeletionLostInRelist, [Reached, Settled, NoDip, NoRelianceOnUnknown];
    the_status_is_always_written: StatusNotCompared, [Settled];
}

#[test]
fn every_planted_bug_has_a_test() {
    let source = include_str!("planted.rs");
    for bug in PlantedBug::ALL {
        assert!(source.contains(&format!(": {bug:?}, ")), "{bug:?}");
    }
}

#[test]
#[ignore = "many simulations: run with the profile `simulation`"]
fn without_a_planted_bug_nothing_is_violated() {
    let seeds = std::env::var("FEDRS_SEEDS").map_or(10, |count| count.parse().expect("a number"));
    let violated: Vec<_> = (1..=seeds)
        .filter_map(|seed| Some((seed, violation(seed, None)?)))
        .collect();
    assert!(violated.is_empty(), "{violated:#?}");
}
