//! Rules for the sources and documents of this repository: no cycles between modules, and a test for each built requirement.

mod modules;
mod requirements;

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The root of the repository.
const WORKSPACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

fn read(file: &Path) -> String {
    fs::read_to_string(file)
        .unwrap_or_else(|error| panic!("failed to read {}: {error}", file.display()))
}

/// The entries of `directory`, in the order of their names.
fn list(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory)
        .unwrap_or_else(|error| panic!("failed to list {}: {error}", directory.display()));
    let mut paths: Vec<_> = entries
        .map(|entry| entry.expect("an entry can be read").path())
        .collect();
    paths.sort();
    paths
}
