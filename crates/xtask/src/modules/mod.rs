//! `cargo xtask modules`: no module of a crate may use one that uses it, directly or around corners.
//!
//! ```text
//! crates/*/src -> tree    files parsed into modules: the items that each one defines, what it imports and mentions
//!              -> graph   each path followed, through imports and re-exports, to the file that defines its item
//!              -> cycles  files that reach each other, with the names that tie them
//! ```
//!
//! An arrow goes from a file to each file that defines an item it uses. A `mod` declaration is no arrow; neither is a
//! re-export (`pub use`), so that `mod.rs` can offer what its children define. Code for tests alone is left out. Methods
//! are not followed, since that takes their types; a file that calls the methods of a type usually names the type.

mod cycles;
mod graph;
mod mentions;
mod tree;

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context;

use self::{graph::Graph, tree::Tree};
use crate::print;

/// Prints the module cycles of all crates in the workspace. The exit status is 1 if there is one.
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    let workspace = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let mut count = 0;
    for root in roots(workspace)? {
        let tree = Tree::read(&root, &|file| fs::read_to_string(workspace.join(file)).ok())?;
        for cycle in cycles::find(&Graph::of(&tree)) {
            count += 1;
            print::line(format_args!("cycle {count}: {cycle}"));
        }
    }
    if count == 0 {
        print::line("no cycles between modules");
    }
    Ok(ExitCode::from(u8::from(count > 0)))
}

/// The root files of the libraries and programs in `workspace`, relative to it.
fn roots(workspace: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let crates = workspace.join("crates");
    let entries =
        fs::read_dir(&crates).with_context(|| format!("failed to list {}", crates.display()))?;
    let mut packages = vec![PathBuf::from("tests")];
    for entry in entries {
        packages.push(Path::new("crates").join(entry?.file_name()));
    }
    packages.sort();
    let files = packages
        .iter()
        .flat_map(|package| ["lib.rs", "main.rs"].map(|name| package.join("src").join(name)));
    Ok(files
        .filter(|file| workspace.join(file).is_file())
        .collect())
}

#[cfg(test)]
mod tests;
