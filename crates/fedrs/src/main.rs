//! `fedrs`: runs one application across many Kubernetes clusters.
//!
//! The binary parses arguments, calls libraries and prints; each subcommand has a module.

mod availability;
mod cli;
mod config_file;
mod controller;
mod cordon;
mod crds;
#[cfg(feature = "demo")]
mod demo;
mod discovery_service;
mod drain;
mod elected;
#[cfg(feature = "demo")]
mod embedded;
mod explain;
mod explain_migration;
mod help;
mod host;
mod join;
mod logging;
mod lrs;
mod maintenance;
mod mcs_controller;
mod member_source;
mod metrics_text;
mod migrate;
mod migrations;
mod output;
mod plan;
mod program;
mod rbac;
mod replica_set_controller;
mod resolve;
mod rollout;
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

use program::Program;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    rustls::crypto::aws_lc_rs::default_provider()
        .install_default()
        .expect("no other TLS provider is installed before this one");
    let program = Program::current();
    cli::run(program).unwrap_or_else(|error| {
        let text = format!("error: {error:#}");
        output::print_error(program.text(&text, &cli::command()));
        ExitCode::FAILURE
    })
}
