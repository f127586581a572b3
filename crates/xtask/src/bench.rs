//! `cargo xtask bench`: benchmarks that need several programs.

use std::{path::Path, process::Command};

use anyhow::ensure;
use clap::{Args, Subcommand};

/// The benchmarks.
#[derive(Subcommand)]
pub(crate) enum Bench {
    /// Measures a controller process with 100 generated members, up to 8,000 FederatedReplicaSets and 4,000,000 pods.
    #[command(disable_help_flag = true)]
    Scale(Options),
    /// Measures fedrs on real control planes, beside a client that writes the same objects.
    #[command(disable_help_flag = true)]
    Beside(Options),
    /// Measures rollouts of fedrs on real control planes, beside a client that rolls out the same Deployments.
    #[command(disable_help_flag = true)]
    Rollouts(Options),
    /// Measures the controller of LocalReplicaSets on a real control plane, beside Kubernetes' own of ReplicaSets.
    #[command(disable_help_flag = true)]
    ReplicaSets(Options),
    /// Measures discovery with generated members: memory, start, answers by gRPC and beside CoreDNS by DNS, changes, and clients
    /// that follow sets.
    #[command(disable_help_flag = true)]
    Discovery(Options),
}

/// What is passed on to a benchmark.
#[derive(Args)]
pub(crate) struct Options {
    /// Options of the benchmark: `--help` shows them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    options: Vec<String>,
}

impl Bench {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let (bench, Options { options }) = match self {
            Self::Scale(options) => ("scale", options),
            Self::Beside(options) => ("beside", options),
            Self::Rollouts(options) => ("rollouts", options),
            Self::ReplicaSets(options) => ("replica-sets", options),
            Self::Discovery(options) => ("discovery", options),
        };
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let run = |arguments: &[&str]| -> anyhow::Result<()> {
            let status = Command::new(&cargo).args(arguments).status()?;
            ensure!(status.success(), "cargo {} failed", arguments.join(" "));
            Ok(())
        };
        // The program of the image, without demo and embedded clusters.
        let select = ["--package", "fedrs", "--no-default-features"];
        run(&[&["build", "--release"][..], &select].concat())?;
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(
            || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target"),
            Into::into,
        );
        let program = target.join("release/fedrs");
        let program = program.to_string_lossy();
        let select = ["--package", "fedrs-tests", "--bin", bench, "--"];
        let own = ["--program", &program];
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        run(&[&["run", "--release"][..], &select, &own, &options].concat())
    }
}
