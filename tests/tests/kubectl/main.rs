//! kubectl as a client of a real cluster and of an embedded one, command by command:
//! `FEDRS_CLUSTERS=local cargo test -p fedrs-tests --test kubectl`.

mod sessions;

use std::{path::PathBuf, process::ExitCode};

use fedrs_tests::truth::{
    command::{Session, play},
    compare::compare,
    harness::{self, Comparison},
};
use futures::FutureExt;

fn main() -> ExitCode {
    let pinned = sessions::all().into_iter().map(|it| comparison(it, None));
    let mut comparisons: Vec<_> = pinned.collect();
    if let Some(program) = on_the_path() {
        let others = sessions::all().into_iter();
        comparisons.extend(others.map(|it| comparison(it, Some(program.clone()))));
    }
    harness::main(comparisons, Vec::new())
}

/// The kubectl that is installed, if one is.
fn on_the_path() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut programs = std::env::split_paths(&path).map(|it| it.join("kubectl"));
    programs.find(|it| it.is_file())
}

/// A session with `program`, or with the kubectl of the real cluster's version.
fn comparison(session: Session, program: Option<PathBuf>) -> Comparison {
    let which = if program.is_some() {
        "installed"
    } else {
        "pinned"
    };
    Comparison {
        name: format!("{which}::{}", session.name),
        is_alone: false,
        run: Box::new(|pair, namespace| {
            async move {
                let program = program.unwrap_or_else(|| pair.kubectl.clone());
                let (real, embedded) = futures::future::try_join(
                    play(&session, &program, &namespace, &pair.real, &pair),
                    play(&session, &program, &namespace, &pair.embedded, &pair),
                )
                .await?;
                Ok(compare(&real, &embedded, &session.differs))
            }
            .boxed_local()
        }),
    }
}
