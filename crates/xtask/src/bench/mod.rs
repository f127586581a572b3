//! Measurements of the product as a whole, always of a release build.
//!
//! `cargo xtask` itself is built for development, so that small tasks start quickly; a benchmark therefore runs
//! itself again as a release build with the same arguments.

mod memory;
mod settle;

use std::process::{Command, ExitCode};

use anyhow::Context;
use clap::Subcommand;

/// The benchmarks.
#[derive(Subcommand)]
pub(crate) enum Bench {
    /// Many FederatedReplicaSets at once: how soon all runs, in how much memory, and whether a restart writes anything.
    Settle(settle::SettleArgs),
}

impl Bench {
    /// Runs it; fails when what it measures does not hold what the product promises.
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        if cfg!(debug_assertions) {
            return again_as_release_build();
        }
        match self {
            Self::Settle(args) => settle::run(&args),
        }
    }
}

fn again_as_release_build() -> anyhow::Result<ExitCode> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["run", "--release", "--quiet", "--package", "xtask", "--"])
        .args(std::env::args_os().skip(1))
        .status()
        .context("failed to start the release build")?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}
