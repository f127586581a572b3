//! The modules of a crate: the items that each one defines, and what its code imports and mentions.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
    path::{Path, PathBuf},
};

use proc_macro2::{TokenStream, TokenTree};
use syn::{
    Attribute, Ident, ImplItemFn, Item, ItemUse, Macro, Meta, UseTree, Visibility,
    visit::{self, Visit},
};

/// The path of a module or an item, segment by segment: `["check", "target"]`.
pub(super) type Segments = Vec<String>;

/// All modules of a crate without those of tests, by their path from the root. The root's path is empty.
#[derive(Default)]
pub(super) struct Tree {
    pub(super) modules: BTreeMap<Segments, Module>,
}

/// One module. A file holds several where modules are written inline.
#[derive(Default)]
pub(super) struct Module {
    pub(super) file: PathBuf,
    /// The names of its items, without modules and imports.
    pub(super) items: BTreeSet<String>,
    /// What its `use` declarations bring into scope, those in functions included.
    pub(super) imports: Vec<Import>,
    /// The paths of its glob imports.
    pub(super) globs: Vec<Segments>,
    /// The paths that its code mentions, as written, without generic arguments.
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
    pub(super) fn read(root: &Path, read: Read<'_>) -> Self {
        let mut tree = Self::default();
        let directory = root.parent().expect("a file is in a directory");
        tree.add_file(root, directory, &[], read);
        tree
    }

    /// Adds the module at `path`, which is `file`. The files of its child modules are in `directory`.
    fn add_file(&mut self, file: &Path, directory: &Path, path: &[String], read: Read<'_>) {
        let text = read(file).unwrap_or_else(|| panic!("{} does not exist", file.display()));
        let parsed = syn::parse_file(&text)
            .unwrap_or_else(|error| panic!("failed to parse {}: {error}", file.display()));
        self.add(file, directory, path, &parsed.items, read);
    }

    /// Adds the module at `path` with its child modules.
    fn add(
        &mut self,
        file: &Path,
        directory: &Path,
        path: &[String],
        items: &[Item],
        read: Read<'_>,
    ) {
        let mut module = Module {
            file: file.to_owned(),
            ..Module::default()
        };
        for item in items {
            let (name, attributes) = head(item);
            if is_for_tests(attributes) {
                continue;
            }
            let Item::Mod(child) = item else {
                module.items.extend(name.map(Ident::to_string));
                module.visit_item(item);
                continue;
            };
            let name = child.ident.to_string();
            let (directory, path) = (directory.join(&name), [path, &[name]].concat());
            if let Some((_, items)) = &child.content {
                self.add(file, &directory, &path, items, read);
                continue;
            }
            let places = [directory.with_extension("rs"), directory.join("mod.rs")];
            let place = places.iter().find(|place| read(place).is_some());
            let place = place.unwrap_or_else(|| panic!("{} has no file", path.join("::")));
            self.add_file(place, &directory, &path, read);
        }
        self.modules.insert(path.to_vec(), module);
    }
}

impl Visit<'_> for Module {
    fn visit_item(&mut self, item: &Item) {
        if !is_for_tests(head(item).1) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, function: &ImplItemFn) {
        if !is_for_tests(&function.attrs) {
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_item_use(&mut self, declaration: &ItemUse) {
        let is_reexport = !matches!(declaration.vis, Visibility::Inherited);
        self.import(&declaration.tree, &[], is_reexport);
    }

    fn visit_path(&mut self, path: &syn::Path) {
        self.mention(path);
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, invocation: &Macro) {
        self.mention(&invocation.path);
        self.read_tokens(invocation.tokens.clone());
    }

    fn visit_attribute(&mut self, attribute: &Attribute) {
        if let Meta::List(list) = &attribute.meta {
            self.read_tokens(list.tokens.clone());
        }
    }
}

impl Module {
    /// Adds what a `use` declaration brings into scope.
    fn import(&mut self, tree: &UseTree, prefix: &[String], is_reexport: bool) {
        let (item, name) = match tree {
            UseTree::Name(leaf) => (&leaf.ident, &leaf.ident),
            UseTree::Rename(leaf) => (&leaf.ident, &leaf.rename),
            UseTree::Glob(_) => return self.globs.push(prefix.to_vec()),
            UseTree::Path(step) => {
                let prefix = [prefix, &[step.ident.to_string()]].concat();
                return self.import(&step.tree, &prefix, is_reexport);
            }
            UseTree::Group(group) => {
                let trees = group.items.iter();
                return trees.for_each(|tree| self.import(tree, prefix, is_reexport));
            }
        };
        // `use clock::{self, Clock}` imports the module by its own name.
        let mut path = prefix.to_vec();
        if item != "self" {
            path.push(item.to_string());
        }
        let own = path.last().filter(|_| name == "self").cloned();
        self.imports.push(Import {
            name: own.unwrap_or_else(|| name.to_string()),
            path,
            is_reexport,
        });
    }

    fn mention(&mut self, path: &syn::Path) {
        let segments = path.segments.iter();
        let names = segments.map(|segment| segment.ident.to_string());
        self.mentions.insert(names.collect());
    }

    /// Reads the paths in the arguments of a macro or an attribute: names joined by `::`, and strings that are paths,
    /// as in `#[serde(with = "crate::time")]`.
    fn read_tokens(&mut self, tokens: TokenStream) {
        let (mut path, mut colons) = (Vec::new(), 0);
        for token in tokens {
            if let TokenTree::Punct(mark) = &token
                && mark.as_char() == ':'
            {
                colons += 1;
                continue;
            }
            if !(matches!(token, TokenTree::Ident(_)) && colons == 2) {
                self.mentions.insert(mem::take(&mut path));
            }
            colons = 0;
            match token {
                TokenTree::Ident(name) => path.push(name.to_string()),
                TokenTree::Group(group) => self.read_tokens(group.stream()),
                TokenTree::Literal(literal) => {
                    let text = literal.to_string();
                    if let Ok(path) = syn::parse_str(text.trim_matches('"')) {
                        self.mention(&path);
                    }
                }
                TokenTree::Punct(_) => {}
            }
        }
        self.mentions.insert(path);
    }
}

/// Whether one of the attributes compiles the item for tests alone.
fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(condition) if condition.path.is_ident("cfg") => {
            let words = condition.tokens.to_string();
            words.contains("test") && !words.contains("not")
        }
        _ => false,
    })
}

/// The name that an item defines, and its attributes.
fn head(item: &Item) -> (Option<&Ident>, &[Attribute]) {
    match item {
        Item::Const(item) => (Some(&item.ident), &item.attrs),
        Item::Enum(item) => (Some(&item.ident), &item.attrs),
        Item::Fn(item) => (Some(&item.sig.ident), &item.attrs),
        Item::Impl(item) => (None, &item.attrs),
        Item::Macro(item) => (item.ident.as_ref(), &item.attrs),
        Item::Mod(item) => (Some(&item.ident), &item.attrs),
        Item::Static(item) => (Some(&item.ident), &item.attrs),
        Item::Struct(item) => (Some(&item.ident), &item.attrs),
        Item::Trait(item) => (Some(&item.ident), &item.attrs),
        Item::Type(item) => (Some(&item.ident), &item.attrs),
        Item::Use(item) => (None, &item.attrs),
        _ => (None, &[]),
    }
}
