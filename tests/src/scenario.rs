//! The test harness of the suite: runs the same scenarios on every kind of cluster.
//!
//! Scenarios on embedded clusters run in parallel, each on its own clusters and paused time; those on real clusters run one
//! after the other.

use std::{panic::AssertUnwindSafe, process::ExitCode};

use fedrs_api::LocalKind;
use futures::{FutureExt, future::LocalBoxFuture};
use libtest_mimic::{Arguments, Failed, Trial};
use tokio::runtime::{Builder, Runtime};

use crate::test_environment::{
    Capability, ClusterKind, Shared, TestEnvironment, TestEnvironmentSpec,
};

/// A scenario that must pass on every kind of cluster.
#[derive(Clone)]
pub struct Scenario {
    /// Its name: `topic::what_holds`.
    pub name: String,
    /// Capabilities that its clusters must have.
    pub requires: Vec<Capability>,
    /// The members and the configuration that it starts with.
    pub spec: TestEnvironmentSpec,
    /// Panics if the scenario fails.
    pub run: Body,
}

impl Scenario {
    /// The same scenario with FederatedDeployments in place of FederatedReplicaSets.
    #[must_use]
    pub fn with_deployments(mut self) -> Self {
        self.name = format!("with_deployments::{}", self.name);
        self.spec.local = LocalKind::Deployment;
        self
    }

    /// The same scenario with FederatedDeployments that have LocalReplicaSets. The controller of these runs in all members.
    #[must_use]
    pub fn with_local_replica_sets(mut self) -> Self {
        self.name = format!("with_local_replica_sets::{}", self.name);
        self.spec.local = LocalKind::LocalReplicaSet;
        self.requires.push(Capability::LocalReplicaSets);
        self
    }
}

/// The body of a scenario.
pub type Body =
    std::sync::Arc<dyn for<'a> Fn(&'a mut TestEnvironment) -> LocalBoxFuture<'a, ()> + Send + Sync>;

/// A scenario from an async function of a module: `scenario!(external_changes::f29_drift_is_repaired)`, followed by the
/// [capabilities](Capability) that it requires.
#[macro_export]
macro_rules! scenario {
    ($topic:ident :: $name:ident $(, $need:ident)* $(,)?) => {
        $crate::scenario::Scenario {
            name: concat!(stringify!($topic), "::", stringify!($name)).to_owned(),
            requires: vec![$($crate::test_environment::Capability::$need),*],
            spec: $crate::test_environment::TestEnvironmentSpec::default(),
            run: std::sync::Arc::new(|env| Box::pin($topic::$name(env))),
        }
    };
}

/// Runs the scenarios on the kind of clusters that `FEDRS_CLUSTERS` names, with the usual arguments of a test binary. With
/// `uses_all_rules`, all of them together use each RBAC rule of the controller.
pub fn main(scenarios: Vec<Scenario>, uses_all_rules: bool) -> ExitCode {
    let mut arguments = Arguments::from_args();
    let kind = match ClusterKind::from_env() {
        Ok(kind) => kind,
        Err(message) => return failed(&message),
    };
    if arguments.list {
        return run(&arguments, &kind, None, scenarios, uses_all_rules);
    }
    let runtime: &'static Runtime = Box::leak(Box::new(real_time()));
    let shared = match runtime.block_on(Shared::start(&kind)) {
        Ok(shared) => shared,
        Err(message) => return failed(&message),
    };
    if shared.is_some() {
        arguments.test_threads = Some(1);
    }
    let shared: Option<&'static Shared> = shared.map(|shared| &*Box::leak(Box::new(shared)));
    let code = run(
        &arguments,
        &kind,
        shared.map(|shared| (shared, runtime)),
        scenarios,
        uses_all_rules,
    );
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
    kind: &ClusterKind,
    shared: Option<(&'static Shared, &'static Runtime)>,
    scenarios: Vec<Scenario>,
    uses_all_rules: bool,
) -> ExitCode {
    let mut trials = Vec::new();
    for scenario in scenarios {
        let missing: Vec<_> = scenario
            .requires
            .iter()
            .filter(|capability| !kind.supports(**capability))
            .collect();
        let is_supported = missing.is_empty();
        if !is_supported {
            eprintln!(
                "skipped on {kind:?}: {} requires {missing:?}",
                scenario.name
            );
        }
        let name = scenario.name.clone();
        let trial = Trial::test(name, move || {
            match shared {
                Some((shared, runtime)) => runtime.block_on(run_scenario(&scenario, Some(shared))),
                None => paused_time().block_on(run_scenario(&scenario, None)),
            }
            .map_err(Failed::from)
        });
        trials.push(trial.with_ignored_flag(!is_supported));
    }
    if uses_all_rules {
        trials.push(check_rbac(arguments, kind, shared));
    }
    let end = libtest_mimic::run(arguments, trials);
    // Embedded clusters are the default: a filter may select tests of other crates.
    let is_asked_for = *kind != ClusterKind::Sim && !arguments.list;
    if is_asked_for && end.num_ignored > 0 && end.num_passed + end.num_failed == 0 {
        return failed("every scenario was skipped: nothing was tested");
    }
    end.exit_code()
}

/// Checks, after all scenarios, that the controller used each of its RBAC rules and that no request was forbidden.
fn check_rbac(
    arguments: &Arguments,
    kind: &ClusterKind,
    shared: Option<(&'static Shared, &'static Runtime)>,
) -> Trial {
    const NAME: &str = "rbac::no_rule_is_missing_and_each_is_used";
    let is_whole = arguments.filter.is_none() && arguments.skip.is_empty() && !arguments.ignored;
    let why_not = if !kind.supports(Capability::AuditLog) {
        Some("needs [AuditLog]")
    } else if !is_whole {
        Some("requires a run of all scenarios")
    } else {
        None
    };
    if let Some(why) = why_not {
        eprintln!("skipped on {kind:?}: {NAME} {why}");
    }
    let trial = Trial::test(NAME, move || {
        let (shared, runtime) = shared.ok_or("there are no clusters")?;
        let findings = runtime.block_on(shared.rbac_findings())?;
        if findings.is_empty() {
            return Ok(());
        }
        Err(Failed::from(findings.join("\n")))
    });
    trial.with_ignored_flag(why_not.is_some())
}

/// Runs one scenario and cleans up after it, whatever its result.
async fn run_scenario(scenario: &Scenario, shared: Option<&'static Shared>) -> Result<(), String> {
    let mut env = TestEnvironment::set_up(&scenario.spec, shared).await;
    let result = AssertUnwindSafe((scenario.run)(&mut env))
        .catch_unwind()
        .await;
    let report = match &result {
        Ok(()) => String::new(),
        Err(panic) => {
            let message = panic.downcast_ref::<String>().cloned();
            let message = message.or_else(|| {
                panic
                    .downcast_ref::<&str>()
                    .map(|message| (*message).to_owned())
            });
            let state = env.describe().await;
            format!("{}\n{state}", message.unwrap_or_default())
        }
    };
    let cleanup = AssertUnwindSafe(env.tear_down()).catch_unwind().await;
    match (result, cleanup) {
        (Ok(()), Ok(())) => Ok(()),
        (Ok(()), Err(_)) => Err("the scenario passed, but its cleanup failed".to_owned()),
        (Err(_), _) => Err(report),
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
