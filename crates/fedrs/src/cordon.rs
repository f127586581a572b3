//! `fedrs cordon` and `fedrs uncordon`: whether replicas are added to a member.

use std::process::ExitCode;

use clap::Args;
use membership::{cordon, say::Say};

use crate::{host::HostOfMembers, values};

/// Add no more replicas to a member; those that run there stay
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  fedrs cordon eu-west
  fedrs uncordon eu-west      # takes it back")]
pub(crate) struct CordonArgs {
    #[command(flatten)]
    which: Which,
}

/// Add replicas to a member again; ends a drain, too
#[derive(Args, Debug)]
pub(crate) struct UncordonArgs {
    #[command(flatten)]
    which: Which,
}

#[derive(Args, Debug)]
struct Which {
    /// The member
    #[arg(value_parser = values::dns_label)]
    name: String,
    #[command(flatten)]
    host: HostOfMembers,
}

/// Cordons.
pub(crate) async fn cordon(args: CordonArgs) -> anyhow::Result<ExitCode> {
    let host = args.which.host.cluster().await?;
    cordon::cordon(&host, &args.which.name, &mut Say::to_terminal()).await?;
    Ok(ExitCode::SUCCESS)
}

/// Uncordons.
pub(crate) async fn uncordon(args: UncordonArgs) -> anyhow::Result<ExitCode> {
    let host = args.which.host.cluster().await?;
    cordon::uncordon(&host, &args.which.name, &mut Say::to_terminal()).await?;
    Ok(ExitCode::SUCCESS)
}
