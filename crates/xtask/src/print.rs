//! Output of the tasks.

use std::{
    fmt::Display,
    io::{self, Write},
};

/// Prints a line to standard output. A task completes even if nobody reads its output any more.
pub(crate) fn line(text: impl Display) {
    if let Err(error) = writeln!(io::stdout(), "{text}")
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        eprintln!("failed to write to standard output: {error}");
    }
}
