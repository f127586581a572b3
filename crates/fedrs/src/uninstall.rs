//! `fedrs uninstall`: takes off the host and the members whatever would be in the way once there is no controller.

use std::process::ExitCode;

use clap::Args;
use fedrs_api::names;
use membership::{
    say::Say,
    uninstall::{Uninstall, UninstallRequest},
};

use crate::{controller::lease_name, host::HostOfMembers, terminal, values};

/// Take fedrs off: finalizers, members and what join made. What runs in the members goes on running
///
/// Stop the controller first. FederatedReplicaSets and CRDs stay, and can be deleted without a controller afterwards.
#[derive(Args, Debug)]
#[command(after_help = "In this order:
  kubectl -n fedrs-system scale deployment/fedrs-controller --replicas=0
  fedrs uninstall
  fedrs crds | kubectl delete -f -                    # deletes all FederatedReplicaSets
and then the deployment, the way it was installed.")]
pub(crate) struct UninstallArgs {
    /// Don't ask
    #[arg(long)]
    yes: bool,
    /// The federation to take off; without it, the one that has no name
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true, value_parser = values::federation)]
    federation: String,
    /// The controller's namespace
    #[arg(long, value_name = "NAME", default_value = names::SYSTEM_NAMESPACE, value_parser = values::dns_label)]
    namespace: String,
    #[command(flatten)]
    host: HostOfMembers,
}

/// Takes everything off. Fails if a controller runs, or if it puts things back.
pub(crate) async fn run(args: UninstallArgs) -> anyhow::Result<ExitCode> {
    let mut say = Say::to_terminal();
    let host = args.host.cluster().await?;
    let request = UninstallRequest {
        deployment: lease_name(&args.federation),
        federation: args.federation,
        namespace: args.namespace,
    };
    let uninstall = Uninstall::prepare(&host, request).await?;
    if uninstall.is_nothing() {
        say.line(format_args!(
            "There is nothing to be taken off the host {}.",
            host.url()
        ));
        say.line(uninstall.left());
        return Ok(ExitCode::SUCCESS);
    }
    say.line(format_args!(
        "This takes fedrs off the host {}:\n{}",
        host.url(),
        uninstall.plan()
    ));
    if !args.yes && !terminal::confirm()? {
        say.line("Nothing was changed.");
        return Ok(ExitCode::FAILURE);
    }
    uninstall.run(&mut say).await?;
    say.line(format_args!("Done. {}", uninstall.left()));
    Ok(ExitCode::SUCCESS)
}
