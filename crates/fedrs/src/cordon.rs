//! `fedrs cordon` and `fedrs uncordon`: whether a member gets new replicas.

use std::process::ExitCode;

use clap::Args;
use membership::cordon;

use crate::{host::HostOfMembers, output::TerminalReporter, values};

/// Mark a member as unschedulable: it gets no new replicas, and running ones stay
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  # Add no more replicas to the member eu-west
  fedrs cordon eu-west

  # Add replicas again
  fedrs uncordon eu-west")]
pub(crate) struct CordonArgs {
    /// Name of the member
    #[arg(value_parser = values::dns_label)]
    name: String,
    #[command(flatten)]
    host: HostOfMembers,
}

/// Mark a member as schedulable again, and cancel its drain
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  # Add replicas to the member eu-west again, after a cordon or a drain
  fedrs uncordon eu-west

  # Find members that are cordoned or drained
  kubectl get mc -o wide")]
pub(crate) struct UncordonArgs {
    /// Name of the member
    #[arg(value_parser = values::dns_label)]
    name: String,
    #[command(flatten)]
    host: HostOfMembers,
}

/// Cordons the member.
pub(crate) async fn cordon(args: CordonArgs) -> anyhow::Result<ExitCode> {
    let host = args.host.client().await?;
    cordon::cordon(&host, &args.name, &mut TerminalReporter).await?;
    Ok(ExitCode::SUCCESS)
}

/// Uncordons the member.
pub(crate) async fn uncordon(args: UncordonArgs) -> anyhow::Result<ExitCode> {
    let host = args.host.client().await?;
    cordon::uncordon(&host, &args.name, &mut TerminalReporter).await?;
    Ok(ExitCode::SUCCESS)
}
