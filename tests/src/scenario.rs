//! The harness of the scenarios: the same ones on every kind of clusters.
//!
//! Embedded ones run side by side, each on its own clusters and its own paused time; those on real clusters one after
//! the other.

use std::{panic::AssertUnwindSafe, process::ExitCode};

use futures::{FutureExt, future::LocalBoxFuture};
use libtest_mimic::{Arguments, Failed, Trial};
use tokio::runtime::{Builder, Runtime};

use crate::stage::{Kind, Need, Shared, Stage, StageSpec};

/// Something that must hold on every kind of clusters.
#[derive(Clone)]
pub struct Scenario {
    /// Its name: `topic::what_holds`.
    pub name: String,
    /// What its clusters must be able to do.
    pub needs: Vec<Need>,
    /// What it begins with.
    pub spec: StageSpec,
    /// Panics if it doesn't hold.
    pub run: Play,
}

/// What a scenario does.
pub type Play =
    std::sync::Arc<dyn for<'a> Fn(&'a mut Stage) -> LocalBoxFuture<'a, ()> + Send + Sync>;

/// A scenario from an async function of a module: `scenario!(hands::f29_drift_is_repaired)`, with what it
/// [needs](Need) after it.
#[macro_export]
macro_rules! scenario {
    ($topic:ident :: $name:ident $(, $need:ident)* $(,)?) => {
        $crate::scenario::Scenario {
            name: concat!(stringify!($topic), "::", stringify!($name)).to_owned(),
            needs: vec![$($crate::stage::Need::$need),*],
            spec: $crate::stage::StageSpec::default(),
            run: std::sync::Arc::new(|stage| Box::pin($topic::$name(stage))),
        }
    };
}

/// Runs the scenarios on the kind of clusters that `FEDRS_CLUSTERS` names, with the usual arguments of tests.
pub fn main(scenarios: Vec<Scenario>) -> ExitCode {
    let mut arguments = Arguments::from_args();
    let kind = match Kind::from_env() {
        Ok(kind) => kind,
        Err(message) => return failed(&message),
    };
    if arguments.list {
        return run(&arguments, &kind, None, scenarios);
    }
    let runtime: &'static Runtime = Box::leak(Box::new(real_time()));
    let shared = match runtime.block_on(Shared::start(&kind)) {
        Ok(shared) => shared,
        Err(message) => return failed(&message),
    };
    if shared.is_some() {
        arguments.test_threads = Some(1);
    }
    let shared: Option<&'static Shared> = shared.map(|it| &*Box::leak(Box::new(it)));
    let code = run(&arguments, &kind, shared.map(|it| (it, runtime)), scenarios);
    let Some(shared) = shared else { return code };
    let cleared = runtime.block_on(shared.cleared());
    runtime.block_on(shared.end());
    match cleared {
        Ok(()) => code,
        Err(message) => failed(&message),
    }
}

fn failed(message: &str) -> ExitCode {
    eprintln!("{message}");
    ExitCode::FAILURE
}

fn run(
    arguments: &Arguments,
    kind: &Kind,
    shared: Option<(&'static Shared, &'static Runtime)>,
    scenarios: Vec<Scenario>,
) -> ExitCode {
    let mut trials = Vec::new();
    for scenario in scenarios {
        let missing: Vec<_> = scenario
            .needs
            .iter()
            .filter(|it| !kind.offers(**it))
            .collect();
        let is_offered = missing.is_empty();
        if !is_offered {
            eprintln!("skipped on {kind:?}: {} needs {missing:?}", scenario.name);
        }
        let name = scenario.name.clone();
        let trial = Trial::test(name, move || {
            match shared {
                Some((shared, runtime)) => runtime.block_on(play(&scenario, Some(shared))),
                None => paused_time().block_on(play(&scenario, None)),
            }
            .map_err(Failed::from)
        });
        trials.push(trial.with_ignored_flag(!is_offered));
    }
    trials.push(rights(arguments, kind, shared));
    let end = libtest_mimic::run(arguments, trials);
    // Embedded clusters are the default: there a filter may mean tests of other crates.
    let is_asked_for = *kind != Kind::Sim && !arguments.list;
    if is_asked_for && end.num_ignored > 0 && end.num_passed + end.num_failed == 0 {
        return failed("every scenario was skipped: nothing was tested");
    }
    end.exit_code()
}

/// Looks, once all scenarios were played, whether the controller used each right that it has, and was refused nothing.
fn rights(
    arguments: &Arguments,
    kind: &Kind,
    shared: Option<(&'static Shared, &'static Runtime)>,
) -> Trial {
    const NAME: &str = "rights::none_is_missing_and_each_is_used";
    let is_whole = arguments.filter.is_none() && arguments.skip.is_empty() && !arguments.ignored;
    let why_not = if !kind.offers(Need::Audit) {
        Some("needs [Audit]")
    } else if !is_whole {
        Some("needs a run of all scenarios")
    } else {
        None
    };
    if let Some(why) = why_not {
        eprintln!("skipped on {kind:?}: {NAME} {why}");
    }
    let trial = Trial::test(NAME, move || {
        let (shared, runtime) = shared.ok_or("there are no clusters")?;
        let doubts = runtime.block_on(shared.rights_to_doubt())?;
        if doubts.is_empty() {
            return Ok(());
        }
        Err(Failed::from(doubts.join("\n")))
    });
    trial.with_ignored_flag(why_not.is_some())
}

/// Plays one scenario, and clears up after it whatever became of it.
async fn play(scenario: &Scenario, shared: Option<&'static Shared>) -> Result<(), String> {
    let mut stage = Stage::set_up(&scenario.spec, shared).await;
    let played = AssertUnwindSafe((scenario.run)(&mut stage))
        .catch_unwind()
        .await;
    let told = match &played {
        Ok(()) => String::new(),
        Err(panic) => {
            let message = panic.downcast_ref::<String>().cloned();
            let message =
                message.or_else(|| panic.downcast_ref::<&str>().map(|it| (*it).to_owned()));
            let state = stage.describe().await;
            format!("{}\n{state}", message.unwrap_or_default())
        }
    };
    let cleared = AssertUnwindSafe(stage.tear_down()).catch_unwind().await;
    match (played, cleared) {
        (Ok(()), Ok(())) => Ok(()),
        (Ok(()), Err(_)) => Err("it held, but could not be cleared away".to_owned()),
        (Err(_), _) => Err(told),
    }
}

fn real_time() -> Runtime {
    let mut builder = Builder::new_multi_thread();
    builder.enable_all().build().expect("a runtime can be made")
}

fn paused_time() -> Runtime {
    let mut builder = Builder::new_current_thread();
    let runtime = builder.enable_all().start_paused(true).build();
    runtime.expect("a runtime can be made")
}
