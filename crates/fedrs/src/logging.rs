//! Logs: for people on a terminal, or as JSON for machines.

use std::{fs::File, io::IsTerminal, path::Path};

use anyhow::Context;
use clap::{Args, ValueEnum};
use tracing_subscriber::{EnvFilter, fmt::MakeWriter};

/// kube logs every failed request as an error by itself; what matters of it is told by its callers.
const DEFAULT: &str = "info,kube_client=off";

/// How logs look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Lines for people
    Human,
    /// One JSON object a line
    Json,
}

/// What is logged, and how.
#[derive(Args, Debug)]
#[command(next_help_heading = "Logging")]
pub(crate) struct LogArgs {
    /// How logs look
    #[arg(long, global = true, value_enum, default_value = "human")]
    log_format: LogFormat,
    /// What is logged: error, warn, info, debug, trace, or a filter such as `info,cluster_informer=debug`
    #[arg(
        long,
        global = true,
        env = "FEDRS_LOG",
        value_name = "FILTER",
        default_value = DEFAULT
    )]
    log: String,
}

impl LogArgs {
    /// Starts logging to standard error.
    pub(crate) fn start(&self) -> anyhow::Result<()> {
        self.start_to(std::io::stderr, std::io::stderr().is_terminal())
    }

    /// Starts logging to a new file, for commands that need the terminal for something else.
    pub(crate) fn start_in_file(&self, path: &Path) -> anyhow::Result<()> {
        let file = File::create(path).with_context(|| format!("can't write {}", path.display()))?;
        self.start_to(file, false)
    }

    fn start_to<W>(&self, writer: W, coloured: bool) -> anyhow::Result<()>
    where
        W: for<'writer> MakeWriter<'writer> + Send + Sync + 'static,
    {
        let filter = EnvFilter::try_new(&self.log)?;
        let logs = tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_writer(writer)
            .with_ansi(coloured);
        match self.log_format {
            LogFormat::Human => logs.with_target(false).init(),
            LogFormat::Json => logs.json().init(),
        }
        Ok(())
    }
}
