//! The modules of a crate: the items that each one defines, and what it imports.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use anyhow::Context;
use syn::{Ident, Item, UseTree, Visibility, visit::Visit};

use super::mentions::{self, Mentions};

/// The path of a module or an item, segment by segment: `["check", "target"]`.
pub(super) type Segments = Vec<String>;

/// All modules of a crate without those of tests, by their path from the root. The root's path is empty.
pub(super) struct Tree {
    pub(super) modules: BTreeMap<Segments, Module>,
}

/// One module. A file holds several where modules are written inline.
#[derive(Default)]
pub(super) struct Module {
    pub(super) file: PathBuf,
    /// The names of its items, without modules and imports.
    pub(super) items: BTreeSet<String>,
    /// What its `use` declarations bring into scope.
    pub(super) imports: Vec<Import>,
    /// The paths of its glob imports.
    pub(super) globs: Vec<Segments>,
    /// The paths that its code mentions, as written.
    pub(super) mentions: BTreeSet<Segments>,
}

/// A name that a `use` declaration brings into scope.
pub(super) struct Import {
    /// Its name in this module.
    pub(super) name: String,
    pub(super) path: Segments,
    /// Whether the declaration is `pub`, to any extent: it offers the item to others.
    pub(super) is_reexport: bool,
}

/// Reads the text of a file, if the file exists.
pub(super) type Read<'a> = &'a dyn Fn(&Path) -> Option<String>;

impl Tree {
    /// The modules of the crate whose root is the file `root`.
    pub(super) fn read(root: &Path, read: Read<'_>) -> anyhow::Result<Self> {
        let folder = root.parent().context("the root of a crate has no folder")?;
        let modules = BTreeMap::new();
        let mut tree = Self { modules };
        tree.add_file(root, folder, &[], read)?;
        Ok(tree)
    }

    /// Adds the module at `path`, which is `file`. The files of its child modules are in `folder`.
    fn add_file(
        &mut self,
        file: &Path,
        folder: &Path,
        path: &[String],
        read: Read<'_>,
    ) -> anyhow::Result<()> {
        let text = read(file).with_context(|| format!("failed to read {}", file.display()))?;
        let parsed = syn::parse_file(&text);
        let items = parsed
            .with_context(|| format!("failed to parse {}", file.display()))?
            .items;
        self.add(file, folder, path, &items, read)
    }

    /// Adds the module at `path` with its child modules.
    fn add(
        &mut self,
        file: &Path,
        folder: &Path,
        path: &[String],
        items: &[Item],
        read: Read<'_>,
    ) -> anyhow::Result<()> {
        let mut module = Module {
            file: file.to_owned(),
            ..Module::default()
        };
        let mut found = Mentions::default();
        for item in items {
            let (name, attributes) = mentions::head(item);
            if mentions::is_for_tests(attributes) {
                continue;
            }
            found.visit_item(item);
            let Item::Mod(child) = item else {
                module.items.extend(name.map(Ident::to_string));
                continue;
            };
            let name = child.ident.to_string();
            let (folder, path) = (folder.join(&name), [path, &[name]].concat());
            if let Some((_, items)) = &child.content {
                self.add(file, &folder, &path, items, read)?;
                continue;
            }
            let places = [folder.with_extension("rs"), folder.join("mod.rs")];
            let place = places.iter().find(|place| read(place).is_some());
            let place = place.with_context(|| format!("{} has no file", path.join("::")))?;
            self.add_file(place, &folder, &path, read)?;
        }
        module.mentions = found.paths;
        for declaration in &found.imports {
            let is_reexport = !matches!(declaration.vis, Visibility::Inherited);
            module.import(&declaration.tree, &[], is_reexport);
        }
        self.modules.insert(path.to_vec(), module);
        Ok(())
    }
}

impl Module {
    /// Adds what a `use` declaration brings into scope.
    fn import(&mut self, tree: &UseTree, prefix: &[String], is_reexport: bool) {
        let mut add = |item: &Ident, name: &Ident| {
            let mut path = prefix.to_vec();
            // `use clock::{self, Clock}` imports the module by its own name.
            if item != "self" {
                path.push(item.to_string());
            }
            let is_self = name == "self";
            let own = path.last().filter(|_| is_self).cloned();
            self.imports.push(Import {
                name: own.unwrap_or_else(|| name.to_string()),
                path,
                is_reexport,
            });
        };
        match tree {
            UseTree::Name(leaf) => add(&leaf.ident, &leaf.ident),
            UseTree::Rename(leaf) => add(&leaf.ident, &leaf.rename),
            UseTree::Glob(_) => self.globs.push(prefix.to_vec()),
            UseTree::Path(step) => {
                let prefix = [prefix, &[step.ident.to_string()]].concat();
                self.import(&step.tree, &prefix, is_reexport);
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.import(tree, prefix, is_reexport);
                }
            }
        }
    }
}
