//! Where this repository pins the programs, and where what is built and runs is kept.

use std::path::{Path, PathBuf};

use crate::{Error, Result};

/// The Go modules that pin the programs.
pub(crate) fn modules() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/control-plane")
}

/// Where costly results are kept, for all checkouts of this user.
pub(crate) fn cache() -> Result<PathBuf> {
    const CACHE: &str = ".cache/fedrs";
    let home = std::env::home_dir().ok_or_else(|| Error::File {
        path: format!("~/{CACHE}"),
        error: std::io::Error::other("there is no home directory"),
    })?;
    Ok(home.join(CACHE))
}
