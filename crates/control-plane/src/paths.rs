//! The directories of the pinned Go modules and of the user's cache.

use std::path::{Path, PathBuf};

use crate::{Error, Result};

/// The Go modules that pin the programs.
pub(crate) fn modules() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/control-plane")
}

/// The cache directory of this user, for all checkouts.
pub(crate) fn cache() -> Result<PathBuf> {
    const CACHE: &str = ".cache/fedrs";
    let home = std::env::home_dir().ok_or_else(|| Error::File {
        path: format!("~/{CACHE}"),
        error: std::io::Error::other("no home directory"),
    })?;
    Ok(home.join(CACHE))
}
