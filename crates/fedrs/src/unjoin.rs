//! `fedrs unjoin`: removes a member from the federation.

use std::{path::PathBuf, process::ExitCode, time::Duration};

use clap::Args;
use fedrs_api::names;
use membership::{
    kubeconfig::KubeconfigSource,
    unjoin::{Unjoin, UnjoinMode, UnjoinRequest},
};

use crate::{
    drain::wait,
    host::HostOfMembers,
    output::{TerminalReporter, print_line},
    terminal, values,
};

/// Remove a member from the federation after its replicas have moved to other clusters
///
/// After the drain, the command deletes the objects that `fedrs join` created on the host and in the member. With
/// --member-kubeconfig it deletes all of them. Without it, the controller's ServiceAccount deletes itself and its
/// permissions, and the namespace stays. Run the command again to complete an interrupted unjoin.
///
/// With --force, the command neither drains the member nor changes anything there.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  # Remove the member eu-west, and all objects that join created there
  fedrs unjoin eu-west --member-kubeconfig eu-west.yaml

  # Remove the member eu-west, whose cluster no longer exists
  fedrs unjoin eu-west --force")]
pub(crate) struct UnjoinArgs {
    /// Name of the member
    #[arg(value_parser = values::dns_label)]
    name: String,
    /// How long to wait until no replica is left in the member
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = values::duration)]
    timeout: Duration,
    /// Remove a member whose cluster no longer exists: do not drain it, and change nothing there
    #[arg(long)]
    force: bool,
    /// Do not ask for confirmation of --force
    #[arg(long, short, requires = "force")]
    yes: bool,
    /// Namespace of the controller
    #[arg(long, value_name = "NAME", default_value = names::SYSTEM_NAMESPACE, value_parser = values::dns_label)]
    namespace: String,
    #[command(flatten)]
    host: HostOfMembers,
    /// Kubeconfig of the member, for a user who may delete roles
    #[arg(long, value_name = "FILE", conflicts_with = "force")]
    member_kubeconfig: Option<PathBuf>,
    /// Context in the member's kubeconfig. By default the current context
    #[arg(long, value_name = "NAME", conflicts_with = "force")]
    member_context: Option<String>,
}

/// Removes the member. Fails if replicas are left there after the timeout.
pub(crate) async fn run(args: UnjoinArgs) -> anyhow::Result<ExitCode> {
    let name = args.name;
    let host = args.host.client().await?;
    let member = KubeconfigSource {
        file: args.member_kubeconfig,
        context: args.member_context,
    };
    let mode = match (args.force, member.is_default()) {
        (true, _) => UnjoinMode::Force,
        (false, true) => UnjoinMode::Drain,
        (false, false) => UnjoinMode::DrainAsUser(member),
    };
    let request = UnjoinRequest {
        name: name.clone(),
        mode,
        namespace: args.namespace,
    };
    let unjoin = Unjoin::prepare(&host, request).await?;
    if args.force && !args.yes {
        print_line(format_args!(
            "This removes the member {name} from the host {} without a drain. Its replicas are rescheduled to other \
             clusters; if its cluster still exists, its pods keep running as well.",
            host.url()
        ));
        if !terminal::confirm()? {
            return Ok(ExitCode::FAILURE);
        }
    }
    if let Some(drain) = unjoin.drain(&mut TerminalReporter).await? {
        let hint = format!(
            "{name} is still a member, and the drain continues. Run the command again to continue, or \
             `fedrs uncordon {name}` to cancel the drain."
        );
        let timeout_hint =
            format!("\nIf the cluster no longer exists, run `fedrs unjoin {name} --force`.");
        let waited = wait(&drain, args.timeout, &hint, &timeout_hint).await?;
        if let Some(interrupted) = waited {
            return Ok(interrupted);
        }
    }
    unjoin.remove(&mut TerminalReporter).await?;
    Ok(ExitCode::SUCCESS)
}
