//! What the code of an item mentions: its paths, those in macros and attributes included, and its `use` declarations.

use std::collections::BTreeSet;

use proc_macro2::{TokenStream, TokenTree};
use syn::{
    Attribute, Ident, ImplItemFn, Item, ItemUse, Macro, Meta, Path,
    visit::{self, Visit},
};

/// What the code of the visited items mentions.
#[derive(Default)]
pub(super) struct Mentions {
    /// Paths as written, without generic arguments.
    pub(super) paths: BTreeSet<Vec<String>>,
    /// `use` declarations, those in functions included.
    pub(super) imports: Vec<ItemUse>,
}

impl Visit<'_> for Mentions {
    fn visit_item(&mut self, item: &Item) {
        if !matches!(item, Item::Mod(_)) && !is_for_tests(head(item).1) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, function: &ImplItemFn) {
        if !is_for_tests(&function.attrs) {
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_item_use(&mut self, declaration: &ItemUse) {
        self.imports.push(declaration.clone());
    }

    fn visit_path(&mut self, path: &Path) {
        self.paths.insert(segments(path));
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, invocation: &Macro) {
        self.paths.insert(segments(&invocation.path));
        self.read_tokens(invocation.tokens.clone());
    }

    fn visit_attribute(&mut self, attribute: &Attribute) {
        if let Meta::List(list) = &attribute.meta {
            self.read_tokens(list.tokens.clone());
        }
    }
}

impl Mentions {
    /// Reads the paths in the arguments of a macro or an attribute: names joined by `::`, and strings that are paths,
    /// as in `#[serde(with = "crate::time")]`.
    fn read_tokens(&mut self, tokens: TokenStream) {
        let (mut path, mut colons) = (Vec::new(), 0);
        for token in tokens {
            match token {
                TokenTree::Punct(mark) if mark.as_char() == ':' => colons += 1,
                TokenTree::Ident(name) if colons == 2 => {
                    path.push(name.to_string());
                    colons = 0;
                }
                other => {
                    self.paths.insert(std::mem::take(&mut path));
                    colons = 0;
                    match other {
                        TokenTree::Ident(name) => path.push(name.to_string()),
                        TokenTree::Group(group) => self.read_tokens(group.stream()),
                        TokenTree::Literal(literal) => self.read_text(&literal.to_string()),
                        TokenTree::Punct(_) => {}
                    }
                }
            }
        }
        self.paths.insert(path);
    }

    fn read_text(&mut self, literal: &str) {
        if literal.contains("::")
            && let Ok(path) = syn::parse_str::<Path>(literal.trim_matches('"'))
        {
            self.paths.insert(segments(&path));
        }
    }
}

fn segments(path: &Path) -> Vec<String> {
    path.segments
        .iter()
        .map(|segment| segment.ident.to_string())
        .collect()
}

/// Whether one of the attributes compiles the item for tests alone.
pub(super) fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(condition) if condition.path.is_ident("cfg") => {
            let words = condition.tokens.to_string();
            words.contains("test") && !words.contains("not")
        }
        _ => false,
    })
}

/// The name that an item defines, and its attributes.
pub(super) fn head(item: &Item) -> (Option<&Ident>, &[Attribute]) {
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
