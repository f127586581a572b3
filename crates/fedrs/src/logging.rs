//! Logs: text for people, or JSON for machines.

use std::io::IsTerminal;
#[cfg(feature = "demo")]
use std::{fs::OpenOptions, os::unix::fs::OpenOptionsExt, path::Path};

#[cfg(feature = "demo")]
use anyhow::Context;
use clap::{Args, ValueEnum};
use tracing_subscriber::{EnvFilter, fmt::MakeWriter};

use crate::terminal;

/// kube logs each failed request as an error; its callers log those that matter. The DNS server logs each query.
const DEFAULT: &str = "info,kube_client=off,hickory_server=off";

/// The format of logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Text for people
    Text,
    /// One JSON object per line
    Json,
}

/// The options for logs.
#[derive(Args, Debug)]
#[command(next_help_heading = "Logging")]
pub(crate) struct LogArgs {
    /// Format of logs
    #[arg(long, global = true, value_enum, default_value = "text")]
    log_format: LogFormat,
    /// Log level (error, warn, info, debug or trace), or a filter such as `info,federation_controller=debug`
    #[arg(
        long,
        global = true,
        env = "FEDRS_LOG",
        hide_env_values = true,
        value_name = "FILTER",
        default_value = DEFAULT
    )]
    log: String,
}

impl LogArgs {
    /// Starts logging to standard error.
    pub(crate) fn start(&self) -> anyhow::Result<()> {
        let colored = std::io::stderr().is_terminal() && terminal::allows_color();
        self.start_to(std::io::stderr, colored)
    }

    /// Starts logging to standard error if a level or a filter was given, for commands whose controllers are simulated.
    #[cfg(feature = "demo")]
    pub(crate) fn start_if_requested(&self) -> anyhow::Result<()> {
        if self.log == DEFAULT {
            return Ok(());
        }
        self.start()
    }

    /// Starts logging to a new file, for commands that show something else on the terminal.
    #[cfg(feature = "demo")]
    pub(crate) fn start_in_file(&self, path: &Path) -> anyhow::Result<()> {
        let mut options = OpenOptions::new();
        let private = options.write(true).create(true).truncate(true).mode(0o600);
        let file = private
            .open(path)
            .with_context(|| format!("failed to create {}", path.display()))?;
        self.start_to(file, false)
    }

    fn start_to<W>(&self, writer: W, colored: bool) -> anyhow::Result<()>
    where
        W: for<'writer> MakeWriter<'writer> + Send + Sync + 'static,
    {
        let filter = EnvFilter::try_new(&self.log)?;
        let logs = tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_writer(writer)
            .with_ansi(colored);
        match self.log_format {
            LogFormat::Text => logs.with_target(false).init(),
            LogFormat::Json => logs.json().init(),
        }
        Ok(())
    }
}
