//! Development tasks: `cargo xtask --help`.

mod bench;
mod control_plane;
mod crds;
mod generated;
mod print;
mod rbac;
mod record_demo;

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
    Crds,
    /// Generates the RBAC manifests from the rules of federation-controller into config/rbac and the Helm chart.
    Rbac,
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
        Task::Crds => crds::generated().write()?,
        Task::Rbac => rbac::generated().write()?,
        Task::Bench(bench) => return bench.run(),
        Task::ControlPlane(task) => return task.run(),
        Task::RecordDemo(task) => task.run()?,
    }
    Ok(ExitCode::SUCCESS)
}
