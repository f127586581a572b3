//! `cargo xtask requirements`: each built rule of `docs/requirements.md` is in the name of a test.
//!
//! ```text
//! docs/requirements.md -> rules with their status  -.
//! *.rs -> functions and cases named after rules     -+-> built rules without a test, names without a rule
//! ```

use std::{
    collections::BTreeMap,
    fmt, fs, io,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, bail};

use crate::print;

/// The number of a rule: `F16`.
type Id = String;

/// Whether a rule needs a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    Built,
    NotBuiltYet,
    /// The rule is about how people work, or about what the code can't show.
    NoTest,
}

/// A rule and its tests don't match.
#[derive(Debug, PartialEq, Eq)]
enum Mismatch {
    NoTest(Id),
    NoRule(String),
}

/// Prints what doesn't match. The exit status is 1 if there is anything.
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    let mismatches = of_workspace()?;
    for mismatch in &mismatches {
        print::line(mismatch);
    }
    if mismatches.is_empty() {
        print::line("each built rule has a test");
    }
    Ok(ExitCode::from(u8::from(!mismatches.is_empty())))
}

/// What doesn't match in this workspace.
fn of_workspace() -> anyhow::Result<Vec<Mismatch>> {
    let workspace = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let mut files = Vec::new();
    for folder in ["crates", "tests"].map(|name| workspace.join(name)) {
        collect_sources(&folder, &mut files)
            .with_context(|| format!("failed to list {}", folder.display()))?;
    }
    let mut names = Vec::new();
    for file in files {
        names.extend(names_in(&read(&file)?));
    }
    let rules = rules(&read(&workspace.join("docs/requirements.md"))?)?;
    Ok(mismatches(&rules, &names))
}

fn read(file: &Path) -> anyhow::Result<String> {
    fs::read_to_string(file).with_context(|| format!("failed to read {}", file.display()))
}

/// The rules of the document: list items that begin with a number, with the status of their group or their own.
fn rules(document: &str) -> anyhow::Result<BTreeMap<Id, Status>> {
    let mut rules = BTreeMap::new();
    let mut group = None;
    let mut last: Option<Id> = None;
    for line in document.lines() {
        if line.starts_with('#') || line.trim().is_empty() {
            last = None;
        }
        if line.starts_with("## ") {
            group = None;
        } else if let Some(status) = line.trim().strip_prefix("Status: ") {
            let status = parse_status(status)?;
            match &last {
                Some(id) => drop(rules.insert(id.clone(), status)),
                None => group = Some(status),
            }
        } else if let Some(item) = line.strip_prefix("- ") {
            // A decision begins with the numbers of its rules and a colon.
            let id = item.split(' ').next().filter(|word| is_id(word));
            last = id.map(str::to_owned);
            if let Some(id) = id {
                let status = group.with_context(|| format!("the group of {id} has no status"))?;
                rules.insert(id.to_owned(), status);
            }
        }
    }
    Ok(rules)
}

fn parse_status(text: &str) -> anyhow::Result<Status> {
    Ok(match text {
        "built" => Status::Built,
        "not built yet" => Status::NotBuiltYet,
        _ if text.starts_with("no test, ") => Status::NoTest,
        _ => {
            bail!("unknown status {text:?}: must be `built`, `not built yet` or `no test, REASON`")
        }
    })
}

/// One letter and a number, in upper case: `F16`.
fn is_id(word: &str) -> bool {
    let mut letters = word.chars();
    letters
        .next()
        .is_some_and(|letter| letter.is_ascii_uppercase())
        && !letters.as_str().is_empty()
        && letters.all(|digit| digit.is_ascii_digit())
}

/// The names of functions and of `rstest` cases.
fn names_in(source: &str) -> impl Iterator<Item = String> {
    let words = source.split(|letter: char| !letter.is_alphanumeric() && !"_:".contains(letter));
    let mut is_function = false;
    words.filter_map(move |word| {
        let name = if is_function {
            Some(word)
        } else {
            word.strip_prefix("case::")
        };
        is_function = word == "fn";
        name.filter(|name| !ids_of(name).is_empty())
            .map(str::to_owned)
    })
}

/// The rules that a name begins with: F10 and F34 of `f10_f34_a_full_cluster_keeps_two_pods`.
fn ids_of(name: &str) -> Vec<Id> {
    let words = name.split('_').map(str::to_uppercase);
    words.take_while(|word| is_id(word)).collect()
}

fn mismatches(rules: &BTreeMap<Id, Status>, names: &[String]) -> Vec<Mismatch> {
    let is_tested = |id: &Id| names.iter().any(|name| ids_of(name).contains(id));
    let built = rules.iter().filter(|(_, status)| **status == Status::Built);
    let untested = built.filter(|(id, _)| !is_tested(id));
    // Names such as `r4_cheaper_first` are about rules of another document.
    let is_group = |id: &Id| rules.keys().any(|rule| rule[..1] == id[..1]);
    let is_unknown = |id: &Id| is_group(id) && !rules.contains_key(id);
    let unknown = names
        .iter()
        .filter(|name| ids_of(name).iter().any(is_unknown));
    untested
        .map(|(id, _)| Mismatch::NoTest(id.clone()))
        .chain(unknown.map(|name| Mismatch::NoRule(name.clone())))
        .collect()
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoTest(id) => write!(f, "{id} is built, but no test has it in its name"),
            Self::NoRule(name) => write!(f, "{name} names a rule that does not exist"),
        }
    }
}

fn collect_sources(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect_sources(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = "\
## F. Sets

Status: built

### Objects
- F1 A rule
  over two lines.
- F2 Another rule.
  Status: not built yet
- F3 A third rule.

- F1: a decision
- F4 How people work.
  Status: no test, a habit

## L. Later

Status: not built yet

- L1 A rule.
";

    fn check(source: &str) -> Vec<Mismatch> {
        let rules = rules(DOCUMENT).expect("the document is valid");
        mismatches(&rules, &names_in(source).collect::<Vec<_>>())
    }

    #[test]
    fn each_built_rule_has_a_test() {
        assert_eq!(of_workspace().expect("the workspace can be read"), []);
    }

    #[test]
    fn built_rules_without_a_test_are_found() {
        let none = "fn first() {}";
        assert_eq!(
            check(none),
            [Mismatch::NoTest("F1".into()), Mismatch::NoTest("F3".into())]
        );
        let some = "#[case::f3_a_case(1)] fn rules() {} async fn other() {}";
        assert_eq!(check(some), [Mismatch::NoTest("F1".into())]);
        assert_eq!(check("fn f1_f3_both_rules() {}"), []);
    }

    #[test]
    fn names_without_a_rule_are_found() {
        assert_eq!(
            check("fn f1_f3_both_rules() {} fn r4_of_another_document() {}"),
            []
        );
        let name = "f9_no_such_rule";
        let source = format!("fn f1_f3_both_rules() {{}} fn {name}() {{}}");
        assert_eq!(check(&source), [Mismatch::NoRule(name.into())]);
    }

    #[test]
    fn a_group_needs_a_known_status() {
        for (document, message) in [
            ("## F. Sets\n- F1 A rule", "the group of F1 has no status"),
            ("## F. Sets\nStatus: done", "unknown status"),
        ] {
            let error = rules(document).expect_err("the document is invalid");
            assert!(error.to_string().starts_with(message), "{error}");
        }
    }
}
