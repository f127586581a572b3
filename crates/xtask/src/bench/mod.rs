//! Benchmarks of the whole product, always with a release build.
//!
//! `cargo xtask` itself is a development build, so that small tasks start quickly; a benchmark therefore runs itself again
//! as a release build with the same arguments.

mod memory;
mod settle;

use std::process::{Command, ExitCode};

use anyhow::Context;
use clap::Subcommand;

/// The benchmarks.
#[derive(Subcommand)]
pub(crate) enum Bench {
    /// Creates many FederatedReplicaSets at once: measures the time until all pods are ready, memory, and writes after a restart.
    Settle(settle::SettleArgs),
}

impl Bench {
    /// Runs the benchmark. The exit status is 1 if the result breaks a promise of the product.
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        if cfg!(debug_assertions) {
            return run_release_build();
        }
        match self {
            Self::Settle(args) => settle::run(&args),
        }
    }
}

fn run_release_build() -> anyhow::Result<ExitCode> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["run", "--release", "--quiet", "--package", "xtask", "--"])
        .args(std::env::args_os().skip(1))
        .status()
        .context("failed to start the release build")?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}
