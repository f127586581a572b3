//! `fedrs drain`: moves all replicas off a member, and waits until none is left.

use std::{process::ExitCode, time::Duration};

use anyhow::bail;
use clap::Args;
use membership::{Error, drain::Drain};

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
    if let Some(interrupted) = wait(&drain, args.timeout, &hint, "").await? {
        return Ok(interrupted);
    }
    print_line(format_args!(
        "{name} gets no replicas until `fedrs uncordon {name}`"
    ));
    Ok(ExitCode::SUCCESS)
}

/// Waits until a drain is complete. Fails with `hint` and `timeout_hint` after the timeout. Prints `hint` and returns the exit
/// status if the user pressed Ctrl-C.
pub(crate) async fn wait(
    drain: &Drain<'_>,
    timeout: Duration,
    hint: &str,
    timeout_hint: &str,
) -> anyhow::Result<Option<ExitCode>> {
    let mut reporter = TerminalReporter;
    tokio::select! {
        biased;
        drained = drain.wait(timeout, &mut reporter) => match drained {
            Err(error @ Error::NotDrained { .. }) => bail!("{error}\n{hint}{timeout_hint}"),
            drained => Ok(drained.map(|()| None)?),
        },
        interrupt = tokio::signal::ctrl_c() => {
            interrupt?;
            print_line(hint);
            Ok(Some(ExitCode::from(INTERRUPTED)))
        }
    }
}
