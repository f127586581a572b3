//! Commands that print one text and end.

use std::{
    io::{self, Write},
    process::ExitCode,
};

/// Prints `text` to standard output. A reader that stops early is no error.
pub(crate) fn text(text: &str) -> ExitCode {
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            eprintln!("error: failed to write to standard output: {error}");
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
    }
}
