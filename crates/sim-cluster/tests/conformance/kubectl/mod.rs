//! The same kubectl commands against both clusters: their outputs are compared.

pub(crate) mod session;
mod sessions;

use std::path::PathBuf;

use futures::FutureExt;

use self::session::{KubectlSession, run_session};
use crate::{harness::ComparisonTest, reference::compare::compare};

/// All sessions, with the kubectl of the real cluster's version and with the installed one.
pub(crate) fn comparisons() -> Vec<ComparisonTest> {
    let pinned = sessions::all()
        .into_iter()
        .map(|session| comparison(session, None));
    let mut comparisons: Vec<_> = pinned.collect();
    if let Some(program) = on_the_path() {
        let others = sessions::all().into_iter();
        comparisons.extend(others.map(|session| comparison(session, Some(program.clone()))));
    }
    comparisons
}

/// The installed kubectl, if there is one.
fn on_the_path() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut programs = std::env::split_paths(&path).map(|directory| directory.join("kubectl"));
    programs.find(|program| program.is_file())
}

/// A session with `program`, or with the kubectl of the real cluster's version.
fn comparison(session: KubectlSession, program: Option<PathBuf>) -> ComparisonTest {
    let which = if program.is_some() {
        "installed"
    } else {
        "pinned"
    };
    ComparisonTest {
        name: format!("kubectl::{which}::{}", session.name),
        is_alone: false,
        run: Box::new(|pair, namespace| {
            async move {
                let program = program.unwrap_or_else(|| pair.kubectl.clone());
                let (real, embedded) = futures::future::try_join(
                    run_session(&session, &program, &namespace, &pair.real, &pair),
                    run_session(&session, &program, &namespace, &pair.embedded, &pair),
                )
                .await?;
                Ok(compare(&real, &embedded, &session.known_differences))
            }
            .boxed_local()
        }),
    }
}
