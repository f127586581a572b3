//! `fedrs crds`: prints the CRDs.

use std::{
    io::{self, Write},
    process::ExitCode,
};

/// Print the custom resource definitions that the host cluster needs
///
/// Install them, or bring them up to date, with
///
///     fedrs crds | kubectl apply --server-side -f -
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {}

/// Prints the CRDs as YAML. A reader that stops early is no error.
pub(crate) fn run(_: &Arguments) -> ExitCode {
    match io::stdout().write_all(fedrs_api::crd::all_as_yaml().as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            eprintln!("error: failed to write to standard output: {error}");
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
    }
}
