//! The command line: the subcommands, and the function that runs each of them.

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::{
    controller, cordon, crds, discovery_service, drain, explain, help, join, logging, lrs,
    maintenance, mcs_controller, migrate, migrations, output, plan,
    program::{self, Program},
    rbac, replica_set_controller, resolve, rollout, uninstall, unjoin,
};
#[cfg(feature = "demo")]
use crate::{demo, sim, simulate};

/// Run one application across many Kubernetes clusters
#[derive(Parser)]
#[command(name = "fedrs", version, propagate_version = true)]
struct Cli {
    #[command(flatten)]
    log: logging::LogArgs,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    #[cfg(feature = "demo")]
    Demo(demo::DemoArgs),
    #[cfg(feature = "demo")]
    Sim(sim::SimArgs),
    #[cfg(feature = "demo")]
    Simulate(simulation::SimulateArgs),
    Controller(controller::ControllerArgs),
    ReplicaSetController(replica_set_controller::ReplicaSetControllerArgs),
    Discovery(Box<discovery_service::DiscoveryArgs>),
    McsController(mcs_controller::McsControllerArgs),
    Resolve(resolve::ResolveArgs),
    Plan(plan::PlanArgs),
    Explain(explain::ExplainArgs),
    Rollout(rollout::RolloutArgs),
    Lrs(lrs::LrsArgs),
    Migrate(migrate::MigrateArgs),
    Migrations(migrations::MigrationsArgs),
    Join(join::JoinArgs),
    Unjoin(unjoin::UnjoinArgs),
    Cordon(cordon::CordonArgs),
    Uncordon(cordon::UncordonArgs),
    Drain(drain::DrainArgs),
    Maintenance(maintenance::MaintenanceArgs),
    Uninstall(uninstall::UninstallArgs),
    Crds(crds::CrdsArgs),
    Rbac(rbac::RbacArgs),
    Completions(CompletionsArgs),
}

/// Print the shell completion script
#[derive(clap::Args)]
#[command(after_help = "Examples:
  # Enable completion in the current bash
  source <(fedrs completions bash)

  # Install completion for zsh
  fedrs completions zsh > ~/.zfunc/_fedrs")]
struct CompletionsArgs {
    /// The shell
    shell: clap_complete::Shell,
}

/// The command with its subcommands, under the name `fedrs`.
pub(crate) fn command() -> clap::Command {
    Cli::command()
}

/// Parses the command line and runs the subcommand. Exits on invalid arguments.
pub(crate) fn run(program: Program) -> anyhow::Result<ExitCode> {
    let arguments = program::with_options_behind(std::env::args_os());
    let matches = help::grouped(program.command(command())).get_matches_from(arguments);
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    match cli.command {
        #[cfg(feature = "demo")]
        Command::Demo(args) => block_on(demo::run(args, &cli.log)),
        #[cfg(feature = "demo")]
        Command::Sim(args) => {
            cli.log.start()?;
            block_on(sim::run(args))
        }
        #[cfg(feature = "demo")]
        Command::Simulate(args) => simulate::run(&args, &cli.log),
        Command::Controller(args) => {
            cli.log.start()?;
            block_on(controller::run(args))
        }
        Command::ReplicaSetController(args) => {
            cli.log.start()?;
            block_on(replica_set_controller::run(args))
        }
        Command::Discovery(args) => {
            cli.log.start()?;
            block_on(discovery_service::run(*args))
        }
        Command::McsController(args) => {
            cli.log.start()?;
            block_on(mcs_controller::run(args))
        }
        Command::Resolve(args) => block_on(resolve::run(args)),
        Command::Plan(args) => block_on(plan::run(args)),
        Command::Explain(args) => block_on(explain::run(args)),
        Command::Rollout(args) => block_on(rollout::run(args)),
        Command::Lrs(args) => block_on(lrs::run(args)),
        Command::Migrate(args) => block_on(migrate::run(args)),
        Command::Migrations(args) => block_on(migrations::run(args)),
        Command::Join(args) => block_on(join::run(args)),
        Command::Unjoin(args) => block_on(unjoin::run(args)),
        Command::Cordon(args) => block_on(cordon::cordon(args)),
        Command::Uncordon(args) => block_on(cordon::uncordon(args)),
        Command::Drain(args) => block_on(drain::run(args)),
        Command::Maintenance(args) => block_on(maintenance::run(args)),
        Command::Uninstall(args) => block_on(uninstall::run(args)),
        Command::Crds(args) => Ok(crds::run(&args)),
        Command::Rbac(args) => rbac::run(args),
        Command::Completions(args) => {
            let mut script = Vec::new();
            clap_complete::generate(args.shell, &mut Cli::command(), "fedrs", &mut script);
            Ok(output::print(&String::from_utf8(script)?))
        }
    }
}

/// Runs a subcommand to its end.
fn block_on(command: impl Future<Output = anyhow::Result<ExitCode>>) -> anyhow::Result<ExitCode> {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.enable_all().build()?.block_on(command)
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    fn built() -> clap::Command {
        let mut command = Cli::command();
        command.build();
        command
    }

    #[test]
    fn every_command_is_in_one_group() {
        let command = built();
        let mut all: Vec<&str> = command
            .get_subcommands()
            .map(clap::Command::get_name)
            .collect();
        let mut grouped: Vec<&str> = help::GROUPS
            .iter()
            .flat_map(|(_, names)| *names)
            .copied()
            .filter(|name| command.find_subcommand(name).is_some())
            .collect();
        all.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(all, grouped);
    }

    /// One snapshot with the help of all commands, to be read in one sitting.
    #[test]
    #[cfg(feature = "demo")]
    fn all_help_texts() {
        let mut command = help::grouped(command()).term_width(100);
        command.build();
        let mut text = command.render_long_help().to_string();
        push_help(&mut command, "fedrs", &mut text);
        insta::assert_snapshot!(text);
    }

    /// Adds the help of all subcommands.
    #[cfg(feature = "demo")]
    fn push_help(command: &mut clap::Command, path: &str, text: &mut String) {
        // The first page, or that of the command above, has them.
        const SHOWN: [&str; 5] = ["log", "log_format", "namespace", "kubeconfig", "context"];
        let is_nested = path.contains(' ');
        for subcommand in command.get_subcommands_mut() {
            let path = format!("{path} {}", subcommand.get_name());
            if path.ends_with(" help") {
                continue;
            }
            *subcommand = std::mem::take(subcommand).mut_args(|arg| {
                let of_above = if is_nested { &SHOWN[..] } else { &SHOWN[..2] };
                let is_shown = of_above.contains(&arg.get_id().as_str());
                if is_shown { arg.hide(true) } else { arg }
            });
            let help = subcommand.render_long_help();
            let _ = write!(text, "\n==== {path} ====\n\n{help}");
            push_help(subcommand, &path, text);
        }
    }

    /// A text that calls a command as `fedrs` would send the user to another file.
    #[test]
    fn the_texts_of_a_plugin_name_its_commands() {
        let mut command = help::grouped(Program::Plugin.command(command())).term_width(100);
        command.build();
        let mut text = command.render_long_help().to_string();
        for name in ["drain", "rollout", "lrs"] {
            let subcommand = command.find_subcommand_mut(name);
            let help = subcommand.expect("it exists").render_long_help();
            let _ = write!(text, "\n{help}");
        }
        for expected in [
            "Usage: kubectl fedrs [OPTIONS] <COMMAND>",
            "Usage: kubectl fedrs drain [OPTIONS] <NAME>",
            "Usage: kubectl fedrs rollout [OPTIONS] <COMMAND>",
            "  kubectl fedrs uncordon eu-west",
            "`kubectl fedrs uncordon`",
        ] {
            assert!(text.contains(expected), "{expected} is not in:\n{text}");
        }
        let all = help::GROUPS.iter().flat_map(|(_, names)| *names);
        for name in all {
            let bare = format!("fedrs {name} ");
            let renamed = format!("kubectl {bare}");
            let count = |part: &str| text.matches(part).count();
            assert_eq!(count(&bare), count(&renamed), "{name} in:\n{text}");
        }
    }
}
