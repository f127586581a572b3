//! Development tasks: `cargo xtask --help`.

mod bench;
mod control_plane;
mod crds;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Development tasks of fedrs.
#[derive(Parser)]
#[command(bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Writes the CRDs, generated from the types of fedrs-api, to config/crd.
    Crds {
        /// Writes nothing, and fails if the files are not current.
        #[arg(long)]
        check: bool,
    },
    /// Measures the product as a whole; what is measured part by part is under `cargo bench`.
    #[command(subcommand)]
    Bench(bench::Bench),
    /// Real Kubernetes control planes on loopback: a host and members, each with etcd, API server, controllers, scheduler.
    #[command(subcommand)]
    ControlPlane(control_plane::ControlPlane),
}

fn main() -> anyhow::Result<ExitCode> {
    match Arguments::parse().task {
        Task::Crds { check: false } => crds::write()?,
        Task::Crds { check: true } => crds::check()?,
        Task::Bench(bench) => return bench.run(),
        Task::ControlPlane(task) => return task.run(),
    }
    Ok(ExitCode::SUCCESS)
}
