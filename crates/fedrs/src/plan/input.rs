//! Input files.

use std::{fs, io, path::Path};

use anyhow::{Context, Error};

/// Reads a file, or standard input for `-`.
pub(super) fn read_text(path: &Path) -> Result<String, Vec<Error>> {
    let text = if path == Path::new("-") {
        io::read_to_string(io::stdin())
    } else {
        fs::read_to_string(path)
    };
    text.with_context(|| format!("failed to read {}", path.display()))
        .map_err(|error| vec![error])
}
