//! `fedrs uninstall`: removes everything that would block deletions or grant access after the controller is gone.

use std::process::ExitCode;

use clap::Args;
use fedrs_api::names;
use membership::uninstall::{Uninstall, UninstallRequest};

use crate::{
    host::HostOfMembers,
    output::{TerminalReporter, print_line},
    terminal, values,
};

/// Remove the members and finalizers of fedrs from the host; ReplicaSets and Deployments in the members keep running
///
/// Stop the controller first. FederatedReplicaSets, FederatedDeployments and CRDs stay, and can be deleted afterwards without a controller.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  # Stop the controller and remove the members and finalizers
  kubectl -n fedrs-system scale deployment/fedrs-controller --replicas=0
  fedrs uninstall

  # Afterwards, delete the CRDs, and all FederatedReplicaSets and FederatedDeployments
  fedrs crds | kubectl delete -f -")]
pub(crate) struct UninstallArgs {
    /// Do not ask for confirmation
    #[arg(long, short)]
    yes: bool,
    /// Name of the federation. By default the federation without a name
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true, value_parser = values::federation)]
    federation: String,
    /// Namespace of the controller
    #[arg(long, value_name = "NAME", default_value = names::SYSTEM_NAMESPACE, value_parser = values::dns_label)]
    namespace: String,
    #[command(flatten)]
    host: HostOfMembers,
}

/// Uninstalls. Fails if a controller runs.
pub(crate) async fn run(args: UninstallArgs) -> anyhow::Result<ExitCode> {
    let host = args.host.client().await?;
    let request = UninstallRequest {
        federation: args.federation,
        namespace: args.namespace,
    };
    let uninstall = Uninstall::prepare(&host, request, &mut TerminalReporter).await?;
    let url = host.url();
    let Some(plan) = uninstall.plan() else {
        print_line(format_args!(
            "The host {url} has nothing to remove. {}",
            uninstall.remaining()
        ));
        return Ok(ExitCode::SUCCESS);
    };
    print_line(format_args!("This changes the host {url}:\n{plan}"));
    if !args.yes && !terminal::confirm()? {
        return Ok(ExitCode::FAILURE);
    }
    uninstall.run(&mut TerminalReporter).await?;
    print_line(uninstall.remaining());
    Ok(ExitCode::SUCCESS)
}
