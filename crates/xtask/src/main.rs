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
    /// Generates the CRDs from the types of fedrs-api into config/crd and the Helm chart.
    Crds {
        /// Write nothing, and fail if a file is out of date.
        #[arg(long)]
        check: bool,
    },
    /// Generates the RBAC manifests from the rules of federation-controller into config/rbac and the Helm chart.
    Rbac {
        /// Write nothing, and fail if a file is out of date.
        #[arg(long)]
        check: bool,
    },
    /// Finds cycles between the modules of each crate; fails if there is one.
    Modules,
    /// Checks that each built rule of docs/requirements.md is in the name of a test.
    Requirements,
    /// Measures the whole product; `cargo bench` measures its parts.
    #[command(subcommand)]
    Bench(bench::Bench),
    /// Runs real Kubernetes control planes on loopback: a host and members, each with etcd, API server, controllers and scheduler.
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

/// Writes the files, or checks that they are current.
fn generate(files: &generated::Generated, check: bool) -> anyhow::Result<()> {
    if check { files.check() } else { files.write() }
}
