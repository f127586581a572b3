//! Commands that print one text.

use std::{
    io::{self, Write},
    process::ExitCode,
};

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
