//! `fedrs simulate`: federations with random edits and faults on simulated time.

use std::process::ExitCode;

use simulation::SimulateArgs;

use crate::{config_file, logging::LogArgs, output::print_line};

/// Runs the simulation. Each of its threads has a runtime of its own.
pub(crate) fn run(args: &SimulateArgs, log: &LogArgs) -> anyhow::Result<ExitCode> {
    log.start_if_requested()?;
    let config = config_file::read(args.config())?;
    Ok(args.run(&config, &|text| print_line(text))?)
}
