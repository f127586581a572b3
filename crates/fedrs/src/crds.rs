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
pub(crate) struct CrdsArgs {}

/// Prints the CRDs as YAML.
pub(crate) fn run(_: &CrdsArgs) -> ExitCode {
    output::print(&fedrs_api::crd::all_as_yaml())
}
