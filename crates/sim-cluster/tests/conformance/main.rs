//! The same requests and kubectl commands to a real API server and to an embedded one; the responses are compared:
//! `FEDRS_CLUSTERS=local cargo test -p sim-cluster --test conformance`.

mod harness;
mod kubectl;
mod reference;
mod requests;

use std::{path::Path, process::ExitCode};

use libtest_mimic::Trial;

use self::reference::{compare, known_differences, normalize};

fn main() -> ExitCode {
    let mut comparisons = requests::comparisons();
    comparisons.extend(kubectl::comparisons());
    // This program has its own harness, which knows no `#[test]`.
    let checks: [(&str, fn()); _] = [
        ("readme::lists_the_known_differences", readme),
        ("compare::a_difference_is_unexpected_unless_it_is_declared_and_a_declared_one_must_exist", compare::checks::a_difference_is_unexpected_unless_it_is_declared_and_a_declared_one_must_exist),
        ("normalize::only_random_parts_are_removed", normalize::checks::only_random_parts_are_removed),
        ("normalize::the_rules_of_a_review_are_unordered_and_other_lists_are_ordered", normalize::checks::the_rules_of_a_review_are_unordered_and_other_lists_are_ordered),
        ("normalize::ages_are_removed_from_tables_and_their_watch_events", normalize::checks::ages_are_removed_from_tables_and_their_watch_events),
        ("normalize::lists_of_generated_names_are_sorted", normalize::checks::lists_of_generated_names_are_sorted),
        ("kubectl::session::ages_and_column_gaps_are_normalized", kubectl::session::checks::ages_and_column_gaps_are_normalized),
    ];
    let checks = checks.map(|(name, check)| {
        Trial::test(name, move || {
            check();
            Ok(())
        })
    });
    harness::main(comparisons, checks.into())
}

/// The README of sim-cluster lists the known differences.
fn readme() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let text = std::fs::read_to_string(file).expect("the README can be read");
    let list = text
        .split_once("<!-- what differs -->\n")
        .and_then(|(_, rest)| rest.split_once("<!-- end -->"))
        .map(|(list, _)| list);
    let wanted = known_differences::markdown();
    assert!(
        list == Some(&wanted),
        "the README must contain between its markers:\n{wanted}"
    );
}
