//! Runs a plan: two candidates of the real controller on paused time, against an embedded cluster.
//!
//! ```text
//! LocalPlan --steps, at their times--> Runner --> cluster, controllers --> Recorder --> Outcome
//!                                        |--at the end: everything recovers--> goal: is the desired state reached, and does it stay?
//! ```

mod actions;
mod describe;
mod goal;
mod migrations;
mod processes;
mod recorder;
mod runner;

use tokio::time::Duration;

use super::plan::LocalPlan;
use crate::run::{Outcome, simulate};
use runner::Runner;

/// Runs `plan`.
#[must_use]
pub(super) fn run(plan: &LocalPlan) -> Outcome {
    simulate(
        Runner::start(plan),
        async |runner| execute(runner, plan).await,
        Runner::end,
    )
}

/// Runs the plan until its end, or until an invariant does not hold.
async fn execute(runner: &mut Runner, plan: &LocalPlan) {
    let recorder = runner.recorder.clone();
    let start = runner.start;
    let steps = async {
        runner.start_controllers();
        if let Some(policy) = &plan.policy {
            runner.create_policy(policy).await;
        }
        for set in &plan.sets {
            runner.create_set(&set.name).await;
        }
        for step in &plan.steps {
            let at = start + Duration::from_millis(step.at_ms);
            runner.wait_until(at).await;
            runner.act(&step.action).await;
        }
        let end = start + Duration::from_millis(plan.end_ms);
        runner.wait_until(end).await;
        if plan.recovers {
            runner.recover().await;
            goal::check(runner).await;
        }
    };
    tokio::select! {
        biased;
        () = recorder.failed() => {}
        () = steps => {}
    }
}
