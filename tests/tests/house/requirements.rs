//! Each built rule of `docs/requirements.md` is in the name of a test.
//!
//! ```text
//! docs/requirements.md -> rules with their status  -.
//! *.rs -> functions and cases named after rules     -+-> built rules without a test, names without a rule
//! ```

use std::{collections::BTreeMap, path::Path};

use crate::{WORKSPACE, list, read};

/// The number of a rule: `F16`.
type Id = String;

/// Whether a rule needs a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    Built,
    NotBuiltYet,
    /// The rule is about how people work, or about something that the code cannot show.
    NoTest,
}

#[test]
fn each_built_rule_has_a_test() {
    let workspace = Path::new(WORKSPACE);
    let mut names = Vec::new();
    for directory in ["crates", "tests"] {
        collect_names(&workspace.join(directory), &mut names);
    }
    let rules = rules(&read(&workspace.join("docs/requirements.md")));
    let mismatches = mismatches(&rules, &names);
    assert!(mismatches.is_empty(), "{}", mismatches.join("\n"));
}

/// Adds the names in the sources below `directory`.
fn collect_names(directory: &Path, names: &mut Vec<String>) {
    for path in list(directory) {
        if path.is_dir() {
            collect_names(&path, names);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            names.extend(names_in(&read(&path)));
        }
    }
}

/// The rules of the document: list items that begin with a number, with the status of their group or their own.
fn rules(document: &str) -> BTreeMap<Id, Status> {
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
            let status = parse_status(status);
            match &last {
                Some(id) => drop(rules.insert(id.clone(), status)),
                None => group = Some(status),
            }
        } else if let Some(item) = line.strip_prefix("- ") {
            // A decision begins with the numbers of its rules and a colon.
            let id = item.split(' ').next().filter(|word| is_id(word));
            last = id.map(str::to_owned);
            if let Some(id) = id {
                let status = group.unwrap_or_else(|| panic!("the group of {id} has no status"));
                rules.insert(id.to_owned(), status);
            }
        }
    }
    rules
}

fn parse_status(text: &str) -> Status {
    match text {
        "built" => Status::Built,
        "not built yet" => Status::NotBuiltYet,
        _ if text.starts_with("no test, ") => Status::NoTest,
        _ => {
            panic!("unknown status {text:?}: must be `built`, `not built yet` or `no test, REASON`")
        }
    }
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

/// What doesn't match, as sentences.
fn mismatches(rules: &BTreeMap<Id, Status>, names: &[String]) -> Vec<String> {
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
        .map(|(id, _)| format!("{id} is built, but no test has it in its name"))
        .chain(unknown.map(|name| format!("{name} names a rule that does not exist")))
        .collect()
}

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

fn check(source: &str) -> Vec<String> {
    mismatches(&rules(DOCUMENT), &names_in(source).collect::<Vec<_>>())
}

#[test]
fn built_rules_without_a_test_are_found() {
    let untested = |id| format!("{id} is built, but no test has it in its name");
    assert_eq!(check("fn first() {}"), [untested("F1"), untested("F3")]);
    let some = "#[case::f3_a_case(1)] fn rules() {} async fn other() {}";
    assert_eq!(check(some), [untested("F1")]);
    assert_eq!(check("fn f1_f3_both_rules() {}"), [""; 0]);
}

#[test]
fn names_without_a_rule_are_found() {
    let both = "fn f1_f3_both_rules() {} fn r4_of_another_document() {}";
    assert_eq!(check(both), [""; 0]);
    let name = "f9_no_such_rule";
    assert_eq!(
        check(&format!("{both} fn {name}() {{}}")),
        [format!("{name} names a rule that does not exist")]
    );
}

#[test]
#[should_panic = "the group of F1 has no status"]
fn a_group_without_a_status_is_an_error() {
    rules("## F. Sets\n- F1 A rule");
}

#[test]
#[should_panic = "unknown status \"done\""]
fn an_unknown_status_is_an_error() {
    rules("## F. Sets\nStatus: done");
}
