//! The same requests to a real API server and to an embedded one; the responses are compared:
//! `FEDRS_CLUSTERS=local cargo test -p fedrs-tests --test differential`.

mod access;
mod apply;
mod autoscalers;
mod controllers;
mod crud;
mod custom;
mod deletion;
mod discovery;
mod escalation;
mod lists;
mod nodes;
mod objects;
mod options;
mod patches;
mod refusals;
mod scheduling;
mod subresources;
mod tables;
mod values;
mod watches;

use std::{path::Path, process::ExitCode};

use fedrs_tests::reference::{
    compare::compare,
    harness::{self, ComparisonTest},
    known_differences,
    runner::run_script,
    script::RequestScript,
};
use futures::FutureExt;
use libtest_mimic::{Failed, Trial};

fn main() -> ExitCode {
    let topics = [
        access::all(),
        apply::all(),
        autoscalers::all(),
        controllers::all(),
        crud::all(),
        custom::all(),
        deletion::all(),
        discovery::all(),
        escalation::all(),
        lists::all(),
        nodes::all(),
        options::all(),
        patches::all(),
        refusals::all(),
        scheduling::all(),
        subresources::all(),
        tables::all(),
        values::all(),
        watches::all(),
    ];
    let comparisons = topics.into_iter().flatten().map(comparison).collect();
    harness::main(
        comparisons,
        vec![Trial::test("readme::says_what_differs", readme)],
    )
}

/// The README of sim-cluster lists the known differences.
fn readme() -> Result<(), Failed> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/sim-cluster/README.md");
    let text = std::fs::read_to_string(file)?;
    let list = text
        .split_once("<!-- what differs -->\n")
        .and_then(|(_, rest)| rest.split_once("<!-- end -->"));
    let wanted = known_differences::markdown();
    match list {
        Some((list, _)) if list == wanted => Ok(()),
        _ => Err(format!("the README must contain between its markers:\n{wanted}").into()),
    }
}

fn comparison(script: RequestScript) -> ComparisonTest {
    ComparisonTest {
        name: script.name.to_owned(),
        is_alone: script.is_alone,
        run: Box::new(|pair, namespace| {
            async move {
                let (real, embedded) = futures::future::try_join(
                    run_script(&script, &namespace, &pair.real, &pair),
                    run_script(&script, &namespace, &pair.embedded, &pair),
                )
                .await?;
                Ok(compare(&real, &embedded, &script.known_differences))
            }
            .boxed_local()
        }),
    }
}
