//! The same requests to both clusters: their responses are compared.

mod access;
mod apply;
mod autoscalers;
mod controllers;
mod crud;
mod custom;
mod deletion;
mod deployments;
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

use futures::FutureExt;

use crate::{
    harness::ComparisonTest,
    reference::{compare::compare, runner::run_script, script::RequestScript},
};

/// The scripts of all topics.
pub(crate) fn comparisons() -> Vec<ComparisonTest> {
    let topics = [
        access::all(),
        apply::all(),
        autoscalers::all(),
        controllers::all(),
        crud::all(),
        custom::all(),
        deletion::all(),
        deployments::all(),
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
    topics.into_iter().flatten().map(comparison).collect()
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
