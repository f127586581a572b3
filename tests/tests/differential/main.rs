//! The same requests to a real API server and to an embedded one, answer by answer:
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

use fedrs_tests::truth::{
    compare::compare,
    harness::{self, Comparison},
    play::play,
    purpose,
    talk::Conversation,
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

/// The README of the embedded clusters has the list of what differs.
fn readme() -> Result<(), Failed> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/sim-cluster/README.md");
    let text = std::fs::read_to_string(file)?;
    let list = text
        .split_once("<!-- what differs -->\n")
        .and_then(|(_, rest)| rest.split_once("<!-- end -->"));
    let wanted = purpose::markdown();
    match list {
        Some((list, _)) if list == wanted => Ok(()),
        _ => Err(format!("the README should have between its marks:\n{wanted}").into()),
    }
}

fn comparison(conversation: Conversation) -> Comparison {
    Comparison {
        name: conversation.name.to_owned(),
        is_alone: conversation.is_alone,
        run: Box::new(|pair, namespace| {
            async move {
                let (real, embedded) = futures::future::try_join(
                    play(&conversation, &namespace, &pair.real, &pair),
                    play(&conversation, &namespace, &pair.embedded, &pair),
                )
                .await?;
                Ok(compare(&real, &embedded, &conversation.differs))
            }
            .boxed_local()
        }),
    }
}
