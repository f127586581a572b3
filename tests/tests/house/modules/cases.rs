//! Small crates, written inline, and the cycles between their modules.

use std::path::{Path, PathBuf};

use super::{
    graph::{Cycle, Graph},
    tree::Tree,
};

/// A name for each case, the files of the crate by module, and the files of its cycles.
type Case = (
    &'static str,
    &'static [(&'static str, &'static str)],
    &'static [&'static [&'static str]],
);

const CASES: &[Case] = &[
    (
        "layers",
        &[
            ("lib", "mod a; mod b; fn f() { b::g() }"),
            ("a", "pub fn f() {}"),
            ("b", "use crate::a::f; pub fn g() { f() }"),
        ],
        &[],
    ),
    (
        "a direct cycle",
        &[
            ("lib", "mod a; mod b;"),
            ("a", "use crate::b::B; pub struct A(B);"),
            ("b", "use super::a; pub struct B(Option<Box<a::A>>);"),
        ],
        &[&["a", "b"]],
    ),
    (
        "an indirect cycle",
        &[
            ("lib", "mod a; mod b; mod c;"),
            ("a", "pub fn f() { crate::b::f() }"),
            ("b", "pub fn f() { crate::c::f() }"),
            ("c", "pub fn f() { crate::a::f() }"),
        ],
        &[&["a", "b", "c"]],
    ),
    (
        "a parent and its child",
        &[
            ("lib", "mod a;"),
            (
                "a/mod",
                "mod child; pub struct Shared; pub fn f() { child::f() }",
            ),
            (
                "a/child",
                "use super::Shared; pub fn f() { let _ = Shared; }",
            ),
        ],
        &[&["a/child", "a/mod"]],
    ),
    (
        "a re-export for others",
        &[
            ("lib", "mod a; mod b; pub use a::A; pub use b::B;"),
            ("a", "pub struct A;"),
            ("b", "use crate::A; pub struct B(A);"),
        ],
        &[],
    ),
    (
        "a re-export that its module uses as well",
        &[
            (
                "lib",
                "mod a; pub use a::A; pub struct Config; fn f(_: A) {}",
            ),
            ("a", "use crate::Config; pub struct A(Config);"),
        ],
        &[&["a", "lib"]],
    ),
    (
        "a cycle through re-exports, globs and another name",
        &[
            ("lib", "mod a; mod b; pub(crate) use a::*;"),
            (
                "a",
                "pub use crate::b::B as Other; pub struct A; fn f(_: Other) {}",
            ),
            ("b", "use crate::*; pub struct B(A);"),
        ],
        &[&["a", "b"]],
    ),
    (
        "paths in macros, attributes, patterns and functions",
        &[
            ("lib", "mod a; mod b; mod c; mod d;"),
            (
                "a",
                r#"pub const A: u8 = 0; fn f() { println!("{}", crate::b::B) }"#,
            ),
            (
                "b",
                r#"pub const B: u8 = 0; #[serde(with = "crate::c::C")] struct X;"#,
            ),
            (
                "c",
                "pub enum C { One } fn f(d: u8) { match d { crate::d::D => {} _ => {} } }",
            ),
            ("d", "pub const D: u8 = 0; fn f() { use crate::a::A; }"),
        ],
        &[&["a", "b", "c", "d"]],
    ),
    (
        "tests use what they test",
        &[
            ("lib", "mod a; mod b;"),
            (
                "a",
                "pub fn f() {} #[cfg(test)] mod tests { use crate::b::g; }",
            ),
            (
                "b",
                "use crate::a::f; pub fn g() { f() } #[cfg(test)] use crate::a; #[cfg(test)] mod more_tests;",
            ),
        ],
        &[],
    ),
    (
        "modules of one file",
        &[(
            "lib",
            "mod a { pub fn f() { super::b::f() } } mod b { pub fn f() { super::a::f() } }",
        )],
        &[],
    ),
    (
        "two cycles",
        &[
            ("lib", "mod a; mod b; mod c; mod d;"),
            ("a", "pub fn f() { super::b::f(); super::c::f() }"),
            ("b", "pub fn f() { super::a::f() }"),
            ("c", "pub fn f() { super::d::f() }"),
            ("d", "pub fn f() { super::c::f() }"),
        ],
        &[&["a", "b"], &["c", "d"]],
    ),
];

/// The cycles of a crate of these files.
fn cycles_of(files: &[(&str, &str)]) -> Vec<Cycle> {
    let read = |path: &Path| {
        let module = path.with_extension("");
        let found = files.iter().find(|(file, _)| Path::new(file) == module);
        found.map(|(_, text)| (*text).to_owned())
    };
    Graph::of(&Tree::read(Path::new("lib.rs"), &read)).cycles()
}

#[test]
fn cycles_are_found_where_they_are_and_nowhere_else() {
    for (name, files, expected) in CASES {
        let module = |file: &PathBuf| file.with_extension("").display().to_string();
        let found: Vec<Vec<String>> = cycles_of(files)
            .iter()
            .map(|cycle| cycle.0.keys().map(module).collect())
            .collect();
        assert_eq!(found, *expected, "{name}");
    }
}

#[test]
fn a_cycle_names_what_ties_it() {
    let (_, files, _) = CASES[1];
    assert_eq!(
        cycles_of(files)[0].to_string(),
        "2 files\n  a.rs uses B of b.rs\n  b.rs uses A of a.rs\n"
    );
}
