//! `fedrs`: runs one application across many Kubernetes clusters.
//!
//! The binary parses arguments, calls libraries and prints; each subcommand has a module.

mod cli;
mod config_file;
mod controller;
mod cordon;
mod crds;
#[cfg(feature = "demo")]
mod demo;
mod drain;
#[cfg(feature = "demo")]
mod embedded;
mod explain;
mod help;
mod host;
mod join;
mod logging;
mod output;
mod plan;
mod rbac;
mod seed;
mod server;
mod set_name;
mod signals;
#[cfg(feature = "demo")]
mod sim;
#[cfg(feature = "demo")]
mod simulate;
mod terminal;
mod uninstall;
mod unjoin;
mod values;

use std::process::ExitCode;

fn main() -> ExitCode {
    rustls::crypto::aws_lc_rs::default_provider()
        .install_default()
        .expect("no other TLS provider is installed before this one");
    cli::run().unwrap_or_else(|error| {
        output::print_error(format_args!("error: {error:#}"));
        ExitCode::FAILURE
    })
}
