//! `fedrs drain`: moves all replicas off a member, and waits until none is left.

use std::{process::ExitCode, time::Duration};

use anyhow::anyhow;
use clap::Args;
use membership::drain::{Drain, DrainError};

use crate::{
    host::HostOfMembers,
    output::{TerminalReporter, print_line},
    values,
};

/// The exit status of a command that Ctrl-C interrupted.
const INTERRUPTED: u8 = 130;

/// Move all replicas off a member, each after its replacement is ready in another cluster
///
/// The drain overrides minimum replicas in placement preferences. Replicas that no other cluster can run stay, and the
/// command shows them. The member gets no replicas until `fedrs uncordon`.
///
/// Ctrl-C and the timeout stop the command, not the drain: the controller continues it.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  # Drain the member eu-west and wait up to ten minutes
  fedrs drain eu-west

  # Cancel the drain, or end the maintenance
  fedrs uncordon eu-west")]
pub(crate) struct DrainArgs {
    /// Name of the member
    #[arg(value_parser = values::dns_label)]
    name: String,
    /// How long to wait until no replica is left
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = values::duration)]
    timeout: Duration,
    #[command(flatten)]
    host: HostOfMembers,
}

/// Drains the member. Fails if replicas are left after the timeout.
pub(crate) async fn run(args: DrainArgs) -> anyhow::Result<ExitCode> {
    let name = &args.name;
    let host = args.host.client().await?;
    let drain = Drain::start(&host, name, &mut TerminalReporter).await?;
    let hint = format!(
        "The drain continues. Run `fedrs drain {name}` to wait again, or `fedrs uncordon {name}` to cancel it."
    );
    match wait(&drain, args.timeout).await? {
        Waited::Drained => {
            print_line(format_args!(
                "{name} gets no replicas until `fedrs uncordon {name}`"
            ));
            Ok(ExitCode::SUCCESS)
        }
        Waited::TimedOut(error) => Err(anyhow!("{error}\n{hint}")),
        Waited::Interrupted => Ok(interrupted(&hint)),
    }
}

/// How waiting for a drain ended.
pub(crate) enum Waited {
    /// No replica is left.
    Drained,
    /// Replicas are left after the timeout.
    TimedOut(DrainError),
    /// The user pressed Ctrl-C.
    Interrupted,
}

/// Waits until a drain is complete.
pub(crate) async fn wait(drain: &Drain<'_>, timeout: Duration) -> anyhow::Result<Waited> {
    let mut reporter = TerminalReporter;
    let drained = tokio::select! {
        biased;
        drained = drain.wait(timeout, &mut reporter) => drained,
        interrupt = tokio::signal::ctrl_c() => {
            interrupt?;
            return Ok(Waited::Interrupted);
        }
    };
    match drained {
        Ok(()) => Ok(Waited::Drained),
        Err(error @ DrainError::TimedOut { .. }) => Ok(Waited::TimedOut(error)),
        Err(error) => Err(error.into()),
    }
}

/// Ends a command that Ctrl-C interrupted.
pub(crate) fn interrupted(hint: &str) -> ExitCode {
    print_line(hint);
    ExitCode::from(INTERRUPTED)
}
