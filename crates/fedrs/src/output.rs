//! What commands print: one text, or the progress of an operation.

use std::{
    fmt::Display,
    io::{self, Write},
    process::ExitCode,
};

use clap::ValueEnum;
use membership::progress::{Progress, Reporter, Warning};
use serde::Serialize;

/// A format for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// JSON
    Json,
    /// YAML
    Yaml,
}

impl Format {
    /// `value` as text, with a newline at the end. Its keys must be strings.
    pub(crate) fn serialize(self, value: &impl Serialize) -> String {
        const SERIALIZABLE: &str = "output consists of objects with string keys";
        let text = match self {
            Self::Json => serde_json::to_string_pretty(value).expect(SERIALIZABLE),
            Self::Yaml => serde_saphyr::to_string(value).expect(SERIALIZABLE),
        };
        text.trim_end().to_owned() + "\n"
    }
}

/// Prints `text` to standard output. A reader that stops early is not an error.
pub(crate) fn print(text: &str) -> ExitCode {
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            eprintln!("error: failed to write to standard output: {error}");
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
    }
}

/// Prints one line to standard output. An operation continues even if the reader has gone.
pub(crate) fn print_line(text: impl Display) {
    let mut out = io::stdout();
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

/// Prints the progress of an operation to standard output, and warnings to standard error.
pub(crate) struct TerminalReporter;

impl Reporter for TerminalReporter {
    fn progress(&mut self, progress: Progress) {
        print_line(progress);
    }

    fn warn(&mut self, warning: Warning) {
        let _ = writeln!(io::stderr(), "warning: {warning}");
    }
}
