//! `fedrs crds`: prints the CRDs.

use std::process::ExitCode;

use crate::output;

/// Print the CustomResourceDefinitions to install on the host cluster
#[derive(clap::Args)]
#[command(after_help = "Examples:
  # Install or update the CRDs
  fedrs crds | kubectl apply --server-side -f -

  # Delete the CRDs, and all FederatedReplicaSets and FederatedDeployments
  fedrs crds | kubectl delete -f -")]
pub(crate) struct CrdsArgs {
    /// Print the CustomResourceDefinition for a cluster in which `fedrs replica-set-controller` runs, instead
    #[arg(long)]
    replica_set_controller: bool,
}

/// Prints the CRDs as YAML.
pub(crate) fn run(args: &CrdsArgs) -> ExitCode {
    if args.replica_set_controller {
        let local = fedrs_api::crd::local_replica_set();
        return output::print(&fedrs_api::crd::as_yaml(&local));
    }
    output::print(&fedrs_api::crd::all_as_yaml())
}
