//! Development tasks: `cargo xtask --help`.

mod bench;
mod control_plane;
mod crds;
mod generated;
mod modules;
mod print;
mod rbac;
mod record_demo;
mod requirements;

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
    /// Writes the CRDs, generated from the types of fedrs-api, to config/crd and the Helm chart.
    Crds {
        /// Writes nothing, and fails if the files are not current.
        #[arg(long)]
        check: bool,
    },
    /// Writes what the controller may do, from the rules of federation-controller, to config/rbac and the Helm chart.
    Rbac {
        /// Writes nothing, and fails if the files are not current.
        #[arg(long)]
        check: bool,
    },
    /// Fails if a module of a crate uses one that uses it, directly or around corners, and prints what ties them.
    Modules,
    /// Fails if a built rule of docs/requirements.md is in the name of no test, or a test names no rule.
    Requirements,
    /// Measures the product as a whole; what is measured part by part is under `cargo bench`.
    #[command(subcommand)]
    Bench(bench::Bench),
    /// Real Kubernetes control planes on loopback: a host and members, each with etcd, API server, controllers, scheduler.
    #[command(subcommand)]
    ControlPlane(control_plane::ControlPlane),
    RecordDemo(record_demo::RecordDemo),
}

fn main() -> anyhow::Result<ExitCode> {
    match Arguments::parse().task {
        Task::Crds { check } => generate(&crds::generated(), check)?,
        Task::Rbac { check } => generate(&rbac::generated(), check)?,
        Task::Modules => return modules::run(),
        Task::Requirements => return requirements::run(),
        Task::Bench(bench) => return bench.run(),
        Task::ControlPlane(task) => return task.run(),
        Task::RecordDemo(task) => task.run()?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes the files, or only checks them.
fn generate(files: &generated::Generated, check: bool) -> anyhow::Result<()> {
    if check { files.check() } else { files.write() }
}
