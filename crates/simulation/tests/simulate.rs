//! The first seeds, and the plans of failures that were found by simulation. `cargo xtask simulate` runs more seeds.

use std::{fs, path::Path};

use federation_controller::config::Config;
use simulation::{Plan, Scenario, generate, generate_discovery, generate_local, run, timeline};

/// The directory of plans that have failed once.
const PLANS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/plans");

#[test]
fn the_first_seeds_pass_and_give_the_same_trace_again() {
    for seed in 1..=2 {
        let plan = generate(seed, &Config::default(), false);
        let outcome = run(&plan);
        assert_eq!(outcome.violation, None, "{}", timeline(&outcome));
        assert_eq!(run(&plan).trace.to_string(), outcome.trace.to_string());
    }
}

#[test]
fn d3_the_first_seeds_of_discovery_pass_and_give_the_same_trace_again() {
    for seed in 1..=3 {
        let plan = generate_discovery(seed, &Config::default());
        let outcome = run(&plan);
        assert_eq!(outcome.violation, None, "{}", timeline(&outcome));
        assert_eq!(run(&plan).trace.to_string(), outcome.trace.to_string());
    }
}

#[test]
fn the_first_seeds_of_local_sets_pass_and_give_the_same_trace_again() {
    for seed in 1..=10 {
        let plan = generate_local(seed);
        let outcome = plan.run();
        assert_eq!(outcome.violation, None, "{}", timeline(&outcome));
        assert_eq!(plan.run().trace.to_string(), outcome.trace.to_string());
    }
}

#[test]
fn plans_that_failed_once_pass() {
    for entry in fs::read_dir(Path::new(PLANS)).expect("the directory exists") {
        let file = entry.expect("an entry can be read").path();
        if file.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let json = fs::read_to_string(&file).expect("a plan can be read");
        let plan = Plan::from_json(&json).expect("a plan is valid");
        let outcome = run(&plan);
        let text = timeline(&outcome);
        assert_eq!(outcome.violation, None, "{}\n{text}", file.display());
    }
}
