//! What tasks tell.

use std::{
    fmt::Display,
    io::{self, Write},
};

/// Prints a line to standard output. A reader that has gone is no reason to leave half of the work undone.
pub(crate) fn line(text: impl Display) {
    if let Err(error) = writeln!(io::stdout(), "{text}")
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        eprintln!("failed to write to standard output: {error}");
    }
}
