//! Runs comparisons as tests: only where real control planes are started, else all are skipped, by name.

use std::{
    panic::AssertUnwindSafe,
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use futures::{FutureExt, future::LocalBoxFuture};
use libtest_mimic::{Arguments, Trial};
use tokio::{runtime::Runtime, sync::RwLock};

use super::{compare::Verdict, pair::Pair};
use crate::stage::Kind;

/// What comparisons can't do without.
const NEEDS: &str = "a real control plane is needed (FEDRS_CLUSTERS=local)";

/// A comparison.
pub struct Comparison {
    /// Its name: `topic::what_is_compared`.
    pub name: String,
    /// It is run while no other is.
    pub is_alone: bool,
    /// Compares, in the namespace of this name; fails if something can't be asked.
    pub run: Run,
}

/// What a comparison does.
pub type Run =
    Box<dyn FnOnce(Arc<Pair>, String) -> LocalBoxFuture<'static, Result<Verdict, String>> + Send>;

/// Runs the comparisons with the usual arguments of tests, and says how much was compared.
pub fn main(comparisons: Vec<Comparison>, others: Vec<Trial>) -> ExitCode {
    let mut arguments = Arguments::from_args();
    let kind = match Kind::from_env() {
        Ok(kind) => kind,
        Err(message) => return failed(&message),
    };
    let is_local = kind == Kind::Local;
    if !is_local {
        let number = comparisons.len();
        eprintln!("{number} comparisons are ignored on {kind:?}: {NEEDS}");
    }
    let runtime = Runtime::new().expect("a runtime can be made");
    let pair = if is_local && !arguments.list {
        match runtime.block_on(Pair::start()) {
            Ok(pair) => Some(Arc::new(pair)),
            Err(message) => return failed(&message),
        }
    } else {
        None
    };
    // They wait more than they work.
    arguments.test_threads = arguments.test_threads.or(Some(6));
    let runtime = Arc::new(runtime);
    let tally = Arc::new(Tally::default());
    let mut trials = others;
    for comparison in comparisons {
        let (pair, runtime, tally) = (pair.clone(), Arc::clone(&runtime), Arc::clone(&tally));
        let name = comparison.name.clone();
        let trial = Trial::test(name, move || {
            let pair = pair.ok_or(NEEDS)?;
            runtime
                .block_on(tally.run(comparison, pair))
                .map_err(Into::into)
        });
        trials.push(trial.with_ignored_flag(!is_local));
    }
    let code = libtest_mimic::run(&arguments, trials).exit_code();
    if let Some(pair) = pair {
        eprintln!("{}", tally.told());
        runtime.block_on(async move { drop(pair) });
    }
    code
}

fn failed(message: &str) -> ExitCode {
    eprintln!("{message}");
    ExitCode::FAILURE
}

#[derive(Default)]
struct Tally {
    number: AtomicUsize,
    compared: AtomicUsize,
    meant: AtomicUsize,
    alone: RwLock<()>,
}

impl Tally {
    async fn run(&self, comparison: Comparison, pair: Arc<Pair>) -> Result<(), String> {
        let number = self.number.fetch_add(1, Ordering::Relaxed) + 1;
        let namespace = format!("talk-{number}");
        let (_all, _one);
        if comparison.is_alone {
            _all = self.alone.write().await;
        } else {
            _one = self.alone.read().await;
        }
        let run = (comparison.run)(pair, namespace);
        let verdict = AssertUnwindSafe(run).catch_unwind().await;
        let verdict = verdict.map_err(|_| "it panicked".to_owned())??;
        self.compared.fetch_add(verdict.compared, Ordering::Relaxed);
        self.meant.fetch_add(verdict.meant, Ordering::Relaxed);
        if verdict.wrong.is_empty() {
            return Ok(());
        }
        Err(verdict.wrong)
    }

    fn told(&self) -> String {
        let (compared, meant) = (&self.compared, &self.meant);
        format!(
            "{} answers compared, of which {} differ on purpose",
            compared.load(Ordering::Relaxed),
            meant.load(Ordering::Relaxed)
        )
    }
}
