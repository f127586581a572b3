//! The command line of the simulation, for `fedrs simulate`.

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Duration, Instant},
};

use clap::Args;
use federation_controller::config::Config;
use parking_lot::Mutex;
use planted_bugs::{PlantedBug, plant};

use crate::{
    batch::{Batch, Failure, run_batch},
    local::generate_local,
    plan::{generate, generate_discovery},
    planted,
    print::Print,
    report::{FailureKind, timeline},
    scenario::Scenario,
    shrink::shrink,
};

/// How often the progress is printed.
const PROGRESS: Duration = Duration::from_secs(10);

/// Simulate federations with random edits and faults, and check that the controller keeps its promises
///
/// Each seed is a federation of its own: the controller runs on simulated time against embedded clusters, while users
/// edit sets, and clusters, networks and the controller itself fail. Every write of the controller is checked when it takes
/// effect. Then the faults end, and the desired state must be reached and stay. The same seed gives the same run.
///
/// With --local, each seed is one cluster with LocalReplicaSets, for the controller of `fedrs replica-set-controller`.
///
/// With --discovery, `fedrs discovery` runs beside the controllers, with an EndpointSet for each set, and each of its answers is
/// compared with what was true of the pods.
///
/// A failure is printed with its seed, the shortest list of steps that still causes it, and a timeline. The exit code is 10 if
/// the controller panicked, 11 if a write was wrong, 12 if the desired state was not reached, 13 if a seed gave two
/// different runs.
#[derive(Args, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line")]
#[command(after_help = "Examples:
  # Simulate 1000 federations
  fedrs simulate --seeds 1000

  # Simulate with your settings
  fedrs simulate --seeds 200 --config controller.yaml

  # Simulate 1000 clusters with LocalReplicaSets
  fedrs simulate --local --seeds 1000

  # Simulate 1000 federations with discovery
  fedrs simulate --discovery --seeds 1000

  # Print everything that happens in one of them
  fedrs simulate --seed 17 --trace

  # Write the shortest plan of a failure to a file, and run it again
  fedrs simulate --seed 17 --out plan.json
  fedrs simulate --plan plan.json")]
pub struct SimulateArgs {
    /// Number of seeds; by default 100, or 1 with --seed
    #[arg(long, value_name = "N", conflicts_with = "plan")]
    seeds: Option<u64>,
    /// The first seed; by default 1
    #[arg(long, value_name = "S", conflicts_with = "plan")]
    seed: Option<u64>,
    /// Number of federations simulated at the same time; by default, the number of processors
    #[arg(long, value_name = "J")]
    jobs: Option<usize>,
    /// Configuration file of the controller
    #[arg(long, value_name = "FILE", conflicts_with = "plan")]
    config: Option<PathBuf>,
    /// Run the plan in this file, or all plans in this directory
    #[arg(long, value_name = "PATH")]
    plan: Option<PathBuf>,
    /// Write the shortest plan of a failure to this file
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Also simulate FederatedDeployments and their rollouts, Maintenances and AvailabilitySets
    #[arg(long, conflicts_with = "plan")]
    rollouts: bool,
    /// Simulate single clusters with LocalReplicaSets instead of federations; also for --plan
    #[arg(long, conflicts_with_all = ["config", "rollouts"])]
    local: bool,
    /// Also simulate discovery, in federations with rollouts
    #[arg(long, conflicts_with_all = ["plan", "rollouts", "local"])]
    discovery: bool,
    /// Print the trace of each run
    #[arg(long)]
    trace: bool,
    /// Continue after a failure, and list all of them
    #[arg(long)]
    keep_going: bool,
    /// Do not shorten the plan of a failure
    #[arg(long)]
    no_shrink: bool,
    /// Switch a bug on, in a build that has them
    #[arg(long, value_name = "NAME", hide = true, value_parser = planted::parse)]
    planted_bug: Option<PlantedBug>,
    /// Look for each bug that can be switched on, in a build that has them
    #[arg(long, hide = true, conflicts_with = "plan")]
    planted_bugs: bool,
}

impl SimulateArgs {
    /// The configuration file.
    #[must_use]
    pub fn config(&self) -> Option<&Path> {
        self.config.as_deref()
    }

    /// Runs the simulation for controllers with this configuration; calls `print` with what is to be read, line by line.
    ///
    /// # Errors
    /// If a file cannot be read or written, or a bug not be switched on.
    pub fn run(&self, config: &Config, print: Print<'_>) -> std::io::Result<ExitCode> {
        let jobs = std::thread::available_parallelism().map_or(1, usize::from);
        let jobs = self.jobs.unwrap_or(jobs);
        if (self.planted_bugs || self.planted_bug.is_some()) && !plant(self.planted_bug) {
            return Err(std::io::Error::other("this build has no planted bugs"));
        }
        if self.planted_bugs {
            let seeds = self.seeds.unwrap_or(planted::SEEDS);
            return Ok(planted::find_all(config, seeds, jobs, print));
        }
        if self.local {
            return self.run_all(jobs, generate_local, print);
        }
        if self.discovery {
            return self.run_all(jobs, |seed| generate_discovery(seed, config), print);
        }
        self.run_all(jobs, |seed| generate(seed, config, self.rollouts), print)
    }

    /// Runs the plans of the files, or those of the seeds.
    fn run_all<P: Scenario>(
        &self,
        jobs: usize,
        generate: impl Fn(u64) -> P + Sync,
        print: Print<'_>,
    ) -> std::io::Result<ExitCode> {
        let plans = self.plan.as_deref().map(read_plans::<P>).transpose()?;
        let first = self.seed.unwrap_or(1);
        let seeds = self
            .seeds
            .unwrap_or(if self.seed.is_some() { 1 } else { 100 });
        let count = match &plans {
            Some(plans) => plans.len(),
            None => usize::try_from(seeds).unwrap_or(usize::MAX),
        };
        let plan = |number: usize| match &plans {
            Some(plans) => plans[number].clone(),
            None => generate(first + number as u64),
        };
        if self.trace {
            for number in 0..count {
                print(plan(number).run().trace.to_string().trim_end());
            }
        }
        let started = Instant::now();
        let printed = Mutex::new((Instant::now(), 0));
        let progress = |batch: &Batch<P>| {
            let (at, failures) = &mut *printed.lock();
            // A single one is described at the end.
            if self.keep_going {
                for failure in &batch.failures[*failures..] {
                    print(&headline(failure));
                }
                *failures = batch.failures.len();
            }
            if at.elapsed() >= PROGRESS {
                *at = Instant::now();
                print(&summary(batch, count, started));
            }
        };
        let batch = run_batch(count, jobs, self.keep_going, plan, progress);
        print(&summary(&batch, count, started));
        for (what, times) in &batch.counts {
            print(&format!("{times:>10} {what}"));
        }
        let mut code = 0;
        for failure in &batch.failures {
            code = code.max(self.report(failure, print)?);
        }
        Ok(ExitCode::from(code))
    }

    /// Prints a failure. Returns the exit code.
    fn report<P: Scenario>(&self, failure: &Failure<P>, print: Print<'_>) -> std::io::Result<u8> {
        let Failure { plan, outcome, .. } = failure;
        print("");
        print(&headline(failure));
        let Some(violation) = &outcome.violation else {
            return Ok(FailureKind::Determinism.exit_code());
        };
        let code = FailureKind::from(violation.invariant).exit_code();
        if self.keep_going && self.out.is_none() {
            return Ok(code);
        }
        let (short, outcome) = if self.no_shrink {
            (plan.clone(), outcome.clone())
        } else {
            let (short, outcome, runs) = shrink(plan, outcome.clone());
            let (all, steps) = (plan.steps().len(), short.steps().len());
            print(&format!(
                "Shortened from {all} steps to {steps} in {runs} runs:"
            ));
            (short, outcome)
        };
        let text = short.describe() + &timeline(&outcome);
        print(text.trim_end());
        if let Some(file) = &self.out {
            fs::write(file, short.to_json())?;
            let file = file.display();
            let mode = if self.local { " --local" } else { "" };
            print(&format!("Run it again: fedrs simulate{mode} --plan {file}"));
        }
        Ok(code)
    }
}

/// The seed of a failure, and what happened.
fn headline<P: Scenario>(failure: &Failure<P>) -> String {
    let seed = failure.plan.seed();
    if let Some(violation) = &failure.outcome.violation {
        return format!("Seed {seed}: {}: {}", violation.invariant, violation.text);
    }
    let (one, other) = failure.difference.clone().unwrap_or_default();
    format!("Seed {seed}: two runs differ:\n  {one}\n  {other}")
}

/// The plans in a file, or in the files of a directory in the order of their names.
fn read_plans<P: Scenario>(path: &Path) -> std::io::Result<Vec<P>> {
    let mut files = vec![path.to_owned()];
    if path.is_dir() {
        let entries: Result<Vec<_>, _> = fs::read_dir(path)?.collect();
        files = entries?.into_iter().map(|entry| entry.path()).collect();
        files.retain(|file| {
            file.extension()
                .is_some_and(|extension| extension == "json")
        });
        files.sort();
    }
    let read = |file: PathBuf| {
        let invalid = |error| std::io::Error::other(format!("{}: {error}", file.display()));
        P::from_json(&fs::read_to_string(&file)?).map_err(invalid)
    };
    files.into_iter().map(read).collect()
}

fn summary<P>(batch: &Batch<P>, count: usize, started: Instant) -> String {
    let seconds = started.elapsed().as_secs_f64();
    #[expect(clippy::cast_precision_loss, reason = "it is printed with one decimal")]
    let rate = batch.runs as f64 / seconds.max(0.001);
    let hours = batch.simulated.as_secs() / 3600;
    format!(
        "{} of {count} runs, {} failed, {hours} h simulated in {seconds:.0} s, {rate:.1} runs a second",
        batch.runs,
        batch.failures.len(),
    )
}
