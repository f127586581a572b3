//! Development tasks: `cargo xtask --help`.

mod bench;
mod control_plane;
mod crds;
mod generated;
mod print;
mod proto;
mod rbac;
mod record_demo;
mod simulate;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use generated::Generated;

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
    /// Generates the code of gRPC messages and services from proto into crates/discovery-proto and crates/xds-proto.
    Proto,
    /// Runs real Kubernetes control planes on loopback: a host and members, each with etcd, API server, controllers and scheduler.
    #[command(subcommand)]
    ControlPlane(control_plane::ControlPlane),
    /// Runs the benchmarks that need several programs.
    #[command(subcommand)]
    Bench(bench::Bench),
    /// Records `fedrs demo` as the animated SVG of the README.
    RecordDemo,
    /// Simulates federations with random edits and faults, by `fedrs simulate`; without arguments, prints its help.
    Simulate {
        /// Arguments of `fedrs simulate`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
}

fn main() -> anyhow::Result<ExitCode> {
    match Arguments::parse().task {
        Task::Crds => crds::generated().write(),
        Task::Rbac => rbac::all().iter().try_for_each(Generated::write),
        Task::Proto => proto::write(),
        Task::ControlPlane(task) => task.run(),
        Task::Bench(bench) => bench.run(),
        Task::RecordDemo => record_demo::run(),
        Task::Simulate { arguments } => return simulate::run(&arguments),
    }?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    /// The help of `command` and of all its subcommands.
    fn help(command: &mut clap::Command) -> String {
        let own = command.render_long_help().to_string();
        let parts = command.get_subcommands_mut().map(help);
        std::iter::once(own)
            .chain(parts)
            .collect::<Vec<_>>()
            .join("\n")
    }

    #[test]
    fn each_task_has_help() {
        let mut command = super::Arguments::command()
            .disable_help_subcommand(true)
            .term_width(100);
        command.build();
        insta::assert_snapshot!(help(&mut command));
    }
}
