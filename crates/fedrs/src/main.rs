//! The `fedrs` command: parses its arguments and runs one subcommand.

mod crds;
mod plan;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// `ReplicaSet`s over many Kubernetes clusters.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Plan(plan::Arguments),
    Crds(crds::Arguments),
}

fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Plan(arguments) => plan::run(&arguments),
        Command::Crds(arguments) => crds::run(&arguments),
    }
}
