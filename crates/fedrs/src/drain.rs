//! `fedrs drain`: moves all replicas off a member, and waits until none is left.

use std::{process::ExitCode, time::Duration};

use anyhow::bail;
use clap::Args;
use membership::{
    drain::{Drain, Ended},
    say::Say,
};

use crate::{host::HostOfMembers, values};

/// The shell's code for a command that Ctrl-C ended.
const INTERRUPTED: u8 = 130;

/// Move all replicas off a member: each only once its replacement is ready elsewhere
///
/// Also where preferences ask for a minimum there. Replicas that no other cluster may or can take stay; it says which.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  fedrs drain eu-west
  fedrs uncordon eu-west      # ends it: replicas are added again

Ctrl-C ends the waiting, not the drain.")]
pub(crate) struct DrainArgs {
    /// The member
    #[arg(value_parser = values::dns_label)]
    name: String,
    /// How long to wait
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = values::duration)]
    timeout: Duration,
    #[command(flatten)]
    host: HostOfMembers,
}

/// Drains. Fails if something is left in the end.
pub(crate) async fn run(args: DrainArgs) -> anyhow::Result<ExitCode> {
    let mut say = Say::to_terminal();
    let name = &args.name;
    let host = args.host.cluster().await?;
    let drain = Drain::start(&host, name, &mut say).await?;
    match wait(&drain, args.timeout, &mut say).await? {
        Some(Ended::Drained) => {
            say.line(format_args!(
                "{name} is drained, and gets no replicas until `fedrs uncordon {name}`"
            ));
            Ok(ExitCode::SUCCESS)
        }
        Some(Ended::TimedOut(left)) => bail!(
            "{name} is not drained after {:?}: {left}\n\
             It goes on. `fedrs drain {name}` waits again, `fedrs uncordon {name}` ends it.",
            args.timeout
        ),
        None => Ok(interrupted(
            format_args!(
                "{name} goes on being drained. `fedrs drain {name}` waits again, `fedrs uncordon {name}` ends it."
            ),
            &mut say,
        )),
    }
}

/// Waits until a drain has ended; `None` if Ctrl-C ended the waiting.
pub(crate) async fn wait(
    drain: &Drain<'_>,
    timeout: Duration,
    say: &mut Say,
) -> anyhow::Result<Option<Ended>> {
    tokio::select! {
        biased;
        ended = drain.wait(timeout, say) => ended.map(Some),
        interrupt = tokio::signal::ctrl_c() => {
            interrupt?;
            Ok(None)
        }
    }
}

/// Ends a command by Ctrl-C.
pub(crate) fn interrupted(next: impl std::fmt::Display, say: &mut Say) -> ExitCode {
    say.line(next);
    ExitCode::from(INTERRUPTED)
}
