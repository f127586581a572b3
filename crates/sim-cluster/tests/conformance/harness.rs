//! Runs comparisons as tests. Without real control planes, all of them are skipped by name.

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

use crate::reference::{cluster_pair::ClusterPair, compare::Comparison};

/// What comparisons require.
const NEEDS: &str = "a real control plane is needed (FEDRS_CLUSTERS=local)";

/// A comparison as a test.
pub(crate) struct ComparisonTest {
    /// Its name: `topic::what_is_compared`.
    pub(crate) name: String,
    /// Whether it runs while no other one does.
    pub(crate) is_alone: bool,
    /// Compares in the namespace of this name; fails if a request can't be sent.
    pub(crate) run: Run,
}

/// The body of a comparison.
pub(crate) type Run = Box<
    dyn FnOnce(Arc<ClusterPair>, String) -> LocalBoxFuture<'static, Result<Comparison, String>>
        + Send,
>;

/// Runs the comparisons with the usual arguments of a test binary, and prints how many responses were compared.
pub(crate) fn main(comparisons: Vec<ComparisonTest>, others: Vec<Trial>) -> ExitCode {
    let mut arguments = Arguments::from_args();
    let is_local = std::env::var("FEDRS_CLUSTERS").is_ok_and(|clusters| clusters == "local");
    if !is_local {
        eprintln!("{} comparisons are ignored: {NEEDS}", comparisons.len());
    }
    let runtime = Runtime::new().expect("a runtime can be made");
    let pair = if is_local && !arguments.list {
        match runtime.block_on(ClusterPair::start()) {
            Ok(pair) => Some(Arc::new(pair)),
            Err(message) => {
                eprintln!("{message}");
                return ExitCode::FAILURE;
            }
        }
    } else {
        None
    };
    // They wait more than they work.
    arguments.test_threads = arguments.test_threads.or(Some(6));
    let runtime = Arc::new(runtime);
    let tally = Arc::new(Tally::default());
    let mut trials = others;
    for test in comparisons {
        let (pair, runtime, tally) = (pair.clone(), Arc::clone(&runtime), Arc::clone(&tally));
        let name = test.name.clone();
        let trial = Trial::test(name, move || {
            let pair = pair.ok_or(NEEDS)?;
            runtime.block_on(tally.run(test, pair)).map_err(Into::into)
        });
        trials.push(trial.with_ignored_flag(!is_local));
    }
    let code = libtest_mimic::run(&arguments, trials).exit_code();
    if let Some(pair) = pair {
        eprintln!("{}", tally.summary());
        runtime.block_on(async move { drop(pair) });
    }
    code
}

#[derive(Default)]
struct Tally {
    number: AtomicUsize,
    compared: AtomicUsize,
    known: AtomicUsize,
    alone: RwLock<()>,
}

impl Tally {
    async fn run(&self, test: ComparisonTest, pair: Arc<ClusterPair>) -> Result<(), String> {
        let number = self.number.fetch_add(1, Ordering::Relaxed) + 1;
        let namespace = format!("compare-{number}");
        let (_all, _one);
        if test.is_alone {
            _all = self.alone.write().await;
        } else {
            _one = self.alone.read().await;
        }
        let run = (test.run)(pair, namespace);
        let comparison = AssertUnwindSafe(run).catch_unwind().await;
        let comparison = comparison.map_err(|_| "the comparison panicked".to_owned())??;
        self.compared
            .fetch_add(comparison.compared, Ordering::Relaxed);
        self.known.fetch_add(comparison.known, Ordering::Relaxed);
        if comparison.unexpected.is_empty() {
            return Ok(());
        }
        Err(comparison.unexpected)
    }

    fn summary(&self) -> String {
        let (compared, known) = (&self.compared, &self.known);
        format!(
            "{} responses compared, {} with known differences",
            compared.load(Ordering::Relaxed),
            known.load(Ordering::Relaxed)
        )
    }
}
