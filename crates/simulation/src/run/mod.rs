//! Runs a plan: the real controller on paused time, against embedded clusters.
//!
//! ```text
//! Plan --steps, at their times--> Runner --> clusters, controller --> Recorder --> Outcome
//!                                    |--at the end: the core recovers--> goal: is the desired state reached, and does it stay?
//!                                    '--last--> trial: does one more change have its effect in time, and no other?
//! ```
//!
//! A run ends at the first invariant that does not hold. The same plan gives the same trace, byte for byte.

mod actions;
mod availability;
mod describe;
mod discovery;
mod discovery_steps;
mod failures;
mod faults;
mod goal;
mod maintenance;
mod panics;
mod processes;
mod recorder;
mod runner;
mod slots;
mod timers;
mod trial;

use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};

use crate::{
    checks::{Invariant, Violation},
    plan::Plan,
    trace::{Topic, Trace},
};
pub(crate) use describe::{changed_fields, conditions, short};
pub(crate) use faults::{quota_of, requests};
use runner::Runner;
pub(crate) use runner::fault_counts;
pub(crate) use slots::{Process, Slots};
pub(crate) use timers::Timers;

/// The outcome of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What happened.
    pub trace: Trace,
    /// The invariant that did not hold, if any.
    pub violation: Option<Violation>,
    /// How often each kind of fault and of write has happened.
    pub counts: BTreeMap<String, u64>,
    /// The simulated time.
    pub simulated: Duration,
}

/// Runs `plan`.
#[must_use]
pub fn run(plan: &Plan) -> Outcome {
    simulate(
        Runner::start(plan),
        async |runner| execute(runner, plan).await,
        Runner::end,
    )
}

/// The trace of a run, the invariants that did not hold, and what has happened how often.
pub(crate) type Recorded = (Trace, Vec<Violation>, BTreeMap<String, u64>);

/// Starts a run on paused time, executes it, and ends it. A panic of any task is a violation.
pub(crate) fn simulate<R>(
    start: impl Future<Output = R>,
    execute: impl AsyncFnOnce(&mut R),
    end: impl FnOnce(R) -> Recorded,
) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime without IO can be built");
    panics::record();
    let mut runner = runtime.block_on(start);
    let ended = catch_unwind(AssertUnwindSafe(|| {
        runtime.block_on(execute(&mut runner));
    }));
    let _entered = runtime.enter();
    let (mut trace, violations, counts) = end(runner);
    let mut violation = violations.into_iter().next();
    if let Some(text) = panics::take() {
        trace.add(Topic::Violation, text.clone());
        violation = Some(Violation {
            invariant: Invariant::NoPanic,
            text,
        });
    } else if let Err(panic) = ended {
        std::panic::resume_unwind(panic);
    }
    Outcome {
        simulated: trace.elapsed(),
        trace,
        violation,
        counts,
    }
}

/// Runs the plan until its end, or until an invariant does not hold.
async fn execute(runner: &mut Runner, plan: &Plan) {
    let recorder = runner.recorder.clone();
    let start = runner.start;
    let steps = async {
        runner.start_controllers();
        for set in &plan.sets {
            runner.create_set(&set.name).await;
        }
        if plan.discovery {
            runner.begin_discovery().await;
        }
        for step in &plan.steps {
            let at = start + Duration::from_millis(step.at_ms);
            runner.wait_until(at).await;
            runner.act(&step.action).await;
        }
        let end = start + Duration::from_millis(plan.end_ms);
        runner.wait_until(end).await;
        if let Some(core) = &plan.core {
            runner.recover(core).await;
            let are_all_well = core.len() == runner.federation.member_names().len();
            runner.end_blocking_availability_sets(are_all_well).await;
            if plan.discovery {
                runner.settle_discovery(core).await;
            }
            runner.settle_maintenances(core, plan).await;
            let goal = goal::check(runner, core, plan).await;
            if let Some(goal) = &goal {
                runner.settle_availability(&goal.members, plan).await;
            }
            if let Some((goal, trial)) = goal.zip(plan.trial.as_ref()) {
                trial::carry_out(runner, &goal, trial).await;
            }
        }
    };
    tokio::select! {
        biased;
        () = recorder.failed() => {}
        () = steps => {}
    }
}
