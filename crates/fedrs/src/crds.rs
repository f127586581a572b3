//! `fedrs crds`: prints the CRDs.

use std::process::ExitCode;

use crate::print;

/// Print the custom resource definitions that the host cluster needs
///
/// Install them, or bring them up to date, with
///
///     fedrs crds | kubectl apply --server-side -f -
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {}

/// Prints the CRDs as YAML.
pub(crate) fn run(_: &Arguments) -> ExitCode {
    print::text(&fedrs_api::crd::all_as_yaml())
}
