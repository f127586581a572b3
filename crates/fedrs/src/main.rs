//! `fedrs`: ReplicaSets over many Kubernetes clusters. Parses and runs; one file per subcommand.

mod controller;
mod cordon;
mod crds;
mod demo;
mod drain;
mod explain;
mod help;
mod host;
mod join;
mod logging;
mod plan;
mod print;
mod rbac;
mod server;
mod signals;
mod sim;
mod uninstall;
mod unjoin;
mod values;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

/// ReplicaSets over many Kubernetes clusters
#[derive(Parser)]
#[command(name = "fedrs", version, about, propagate_version = true)]
struct Cli {
    #[command(flatten)]
    log: logging::LogArgs,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Demo(demo::DemoArgs),
    Sim(sim::SimArgs),
    Controller(controller::ControllerArgs),
    Plan(plan::Arguments),
    Explain(explain::ExplainArgs),
    Join(join::JoinArgs),
    Unjoin(unjoin::UnjoinArgs),
    Cordon(cordon::CordonArgs),
    Uncordon(cordon::UncordonArgs),
    Drain(drain::DrainArgs),
    Uninstall(uninstall::UninstallArgs),
    Crds(crds::Arguments),
    Rbac(rbac::RbacArgs),
    /// Print the completions of a shell
    ///
    /// For bash: source <(fedrs completions bash)
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

fn main() -> ExitCode {
    let matches = help::grouped(Cli::command()).get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    rustls::crypto::aws_lc_rs::default_provider()
        .install_default()
        .expect("no other TLS provider is installed before this one");
    match run(cli) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("fedrs: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    match cli.command {
        Command::Demo(args) => return runtime()?.block_on(demo::run(args, &cli.log)),
        Command::Sim(args) => {
            cli.log.start()?;
            runtime()?.block_on(sim::run(args))?;
        }
        Command::Controller(args) => {
            cli.log.start()?;
            runtime()?.block_on(controller::run(args))?;
        }
        Command::Plan(args) => return Ok(plan::run(&args)),
        Command::Crds(args) => return Ok(crds::run(&args)),
        Command::Rbac(args) => return Ok(rbac::run(args)),
        Command::Join(args) => return runtime()?.block_on(join::run(args)),
        Command::Unjoin(args) => return runtime()?.block_on(unjoin::run(args)),
        Command::Cordon(args) => return runtime()?.block_on(cordon::cordon(args)),
        Command::Uncordon(args) => return runtime()?.block_on(cordon::uncordon(args)),
        Command::Drain(args) => return runtime()?.block_on(drain::run(args)),
        Command::Uninstall(args) => return runtime()?.block_on(uninstall::run(args)),
        Command::Explain(args) => return runtime()?.block_on(explain::run(args)),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "fedrs", &mut script);
            return Ok(print::text(&String::from_utf8(script)?));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
}
