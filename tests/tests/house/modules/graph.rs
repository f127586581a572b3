//! Which file uses items of which other file, and the cycles of such uses.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    path::{Path, PathBuf},
    slice,
};

use super::tree::Tree;

/// The uses between the files of a crate: from a file to those whose items it uses, with the names of the items.
#[derive(Default)]
pub(super) struct Graph(BTreeMap<PathBuf, Uses>);

type Uses = BTreeMap<PathBuf, BTreeSet<String>>;

/// Files that all reach each other, with the uses between them.
pub(super) struct Cycle(pub(super) BTreeMap<PathBuf, Uses>);

/// The most imports that a path may lead through before it counts as unresolved: they can form a cycle.
const MAX_IMPORTS: usize = 16;

impl Graph {
    /// The uses between the files of the crate.
    pub(super) fn of(tree: &Tree) -> Self {
        let mut graph = Self::default();
        for (path, module) in &tree.modules {
            let imports = module.imports.iter();
            let used = imports.filter(|import| !import.is_reexport);
            let used = used.map(|import| &import.path).chain(&module.mentions);
            for (file, name) in used.filter_map(|segments| tree.find(path, segments, MAX_IMPORTS)) {
                if file != module.file {
                    let uses = graph.0.entry(module.file.clone()).or_default();
                    uses.entry(file.to_owned())
                        .or_default()
                        .insert(name.to_owned());
                }
            }
        }
        graph
    }

    /// The strongly connected components, in the order of their first files.
    pub(super) fn cycles(&self) -> Vec<Cycle> {
        let mut cycles: Vec<Cycle> = Vec::new();
        for file in self.0.keys() {
            let reached = self.reached_from(file);
            let is_new = !cycles.iter().any(|cycle| cycle.0.contains_key(file));
            if is_new && reached.contains(file) {
                let returns = |other: &&PathBuf| self.reached_from(other).contains(file);
                let files: BTreeSet<_> = reached.into_iter().filter(returns).collect();
                let inside = |from: &PathBuf| {
                    let mut uses = self.0[from].clone();
                    uses.retain(|to, _| files.contains(to));
                    (from.clone(), uses)
                };
                cycles.push(Cycle(files.iter().copied().map(inside).collect()));
            }
        }
        cycles
    }

    /// The files that `file` uses, directly or indirectly.
    fn reached_from<'a>(&'a self, file: &'a PathBuf) -> BTreeSet<&'a PathBuf> {
        let mut reached = BTreeSet::new();
        let mut open = vec![file];
        while let Some(file) = open.pop() {
            let next = self.0.get(file).into_iter().flat_map(BTreeMap::keys);
            open.extend(next.filter(|next| reached.insert(*next)));
        }
        reached
    }
}

/// The files, and for each two of them the names that the first file uses of the second.
impl fmt::Display for Cycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} files", self.0.len())?;
        for (from, uses) in &self.0 {
            for (to, names) in uses {
                let names: Vec<_> = names.iter().map(String::as_str).collect();
                let (from, to) = (from.display(), to.display());
                writeln!(f, "  {from} uses {} of {to}", names.join(", "))?;
            }
        }
        Ok(())
    }
}

impl Tree {
    /// The item that a path leads to, as written in the module at `from`: the file that defines it, and its name. `None`
    /// for a module, and for a name that the crate does not define.
    fn find(&self, from: &[String], path: &[String], imports: usize) -> Option<(&Path, &str)> {
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
    fn find_in(&self, path: &[String], names: &[String], imports: usize) -> Option<(&Path, &str)> {
        let (name, rest) = names.split_first()?;
        let module = self.modules.get(path)?;
        if let Some(item) = module.items.get(name) {
            return Some((&module.file, item));
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
