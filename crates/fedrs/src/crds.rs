//! `fedrs crds`: prints the CRDs.

use std::process::ExitCode;

use fedrs_api::crd;

use crate::output;

/// Print the CustomResourceDefinitions to install on the host cluster
#[derive(clap::Args)]
#[command(after_help = "Examples:
  # Install or update the CRDs
  fedrs crds | kubectl apply --server-side -f -

  # Delete the CRDs, and all FederatedReplicaSets and FederatedDeployments
  fedrs crds | kubectl delete -f -")]
pub(crate) struct CrdsArgs {
    /// Print the CustomResourceDefinitions for a cluster in which `fedrs replica-set-controller` runs, instead
    #[arg(long)]
    replica_set_controller: bool,
}

/// Prints the CRDs as YAML.
pub(crate) fn run(args: &CrdsArgs) -> ExitCode {
    let crds = if args.replica_set_controller {
        crd::local()
    } else {
        crd::all()
    };
    output::print(&crd::to_yaml_stream(&crds))
}
