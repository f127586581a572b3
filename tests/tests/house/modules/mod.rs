//! No module of a crate uses one that uses it, directly or indirectly.
//!
//! ```text
//! crates/*/src -> tree    files parsed into modules: the items that each one defines, what it imports and mentions
//!              -> graph   each path followed, through imports and re-exports, to the file that defines its item;
//!                         cycles: files that reach each other, with the names that tie them
//! ```
//!
//! A file uses each file that defines an item that it names. A `mod` declaration is no use; neither is a re-export
//! (`pub use`), so that `mod.rs` can offer what its children define. Code for tests alone is left out. Method calls are
//! not followed, because that takes types; a file that calls the methods of a type usually names the type.

mod cases;
mod graph;
mod tree;

use std::path::{Path, PathBuf};

use self::{graph::Graph, tree::Tree};
use crate::{WORKSPACE, list, read};

#[test]
fn no_module_uses_one_that_uses_it() {
    let workspace = Path::new(WORKSPACE);
    let mut cycles = Vec::new();
    for root in roots(workspace) {
        let source = |file: &Path| {
            let file = workspace.join(file);
            file.is_file().then(|| read(&file))
        };
        let graph = Graph::of(&Tree::read(&root, &source));
        cycles.extend(graph.cycles().iter().map(ToString::to_string));
    }
    let cycles = cycles.join("\n");
    assert!(cycles.is_empty(), "cycles between modules:\n{cycles}");
}

/// The root files of the libraries and programs in `workspace`, relative to it.
fn roots(workspace: &Path) -> Vec<PathBuf> {
    let mut packages = list(&workspace.join("crates"));
    packages.push(workspace.join("tests"));
    let roots = packages
        .iter()
        .flat_map(|package| ["lib.rs", "main.rs"].map(|name| package.join("src").join(name)));
    roots
        .filter(|root| root.is_file())
        .filter_map(|root| Some(root.strip_prefix(workspace).ok()?.to_owned()))
        .collect()
}
