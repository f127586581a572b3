//! Which file uses items of which other file.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    slice,
};

use super::tree::Tree;

/// The arrows between the files of a crate: from a file to those whose items it uses, with the names of the items.
#[derive(Default)]
pub(super) struct Graph {
    pub(super) arrows: BTreeMap<PathBuf, BTreeMap<PathBuf, BTreeSet<String>>>,
}

/// An item, found by following a path.
struct Found {
    /// The file that defines it.
    file: PathBuf,
    name: String,
}

/// How many imports a path may lead through, one after the other, before it counts as unresolved: they can go in circles.
const MAX_IMPORTS: usize = 16;

impl Graph {
    /// The arrows between the files of the crate.
    pub(super) fn of(tree: &Tree) -> Self {
        let mut graph = Self::default();
        for (path, module) in &tree.modules {
            let imports = module.imports.iter();
            let used = imports.filter(|import| !import.is_reexport);
            let used = used.map(|import| &import.path).chain(&module.mentions);
            for found in used.filter_map(|segments| tree.find(path, segments, MAX_IMPORTS)) {
                if found.file != module.file {
                    let arrows = graph.arrows.entry(module.file.clone()).or_default();
                    arrows.entry(found.file).or_default().insert(found.name);
                }
            }
        }
        graph
    }
}

impl Tree {
    /// The item that a path leads to, as written in the module at `from`. `None` for a module, and for a name that the
    /// crate does not define.
    fn find(&self, from: &[String], path: &[String], imports: usize) -> Option<Found> {
        let (mut module, mut names) = (from, path);
        while let Some((first, rest)) = names.split_first() {
            module = match first.as_str() {
                "crate" => &[],
                "self" => module,
                "super" => module.split_last()?.1,
                _ => break,
            };
            names = rest;
        }
        self.find_in(module, names, imports)
    }

    /// The item that `names` lead to from the scope of the module at `path`.
    fn find_in(&self, path: &[String], names: &[String], imports: usize) -> Option<Found> {
        let (name, rest) = names.split_first()?;
        let module = self.modules.get(path)?;
        if module.items.contains(name) {
            return Some(Found {
                file: module.file.clone(),
                name: name.clone(),
            });
        }
        let child = [path, slice::from_ref(name)].concat();
        if self.modules.contains_key(&child) {
            return self.find_in(&child, rest, imports);
        }
        let left = imports.checked_sub(1)?;
        match module.imports.iter().find(|import| import.name == *name) {
            Some(import) => self.find(path, &[&import.path, rest].concat(), left),
            None => (module.globs.iter())
                .find_map(|glob| self.find(path, &[glob, names].concat(), left)),
        }
    }
}
