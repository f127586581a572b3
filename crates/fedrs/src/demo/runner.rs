//! Runs the story: performs each step's action, waits until its goal is reached, and judges the result.

use std::time::Duration;

use anyhow::Context;
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, timeout_at},
};

use super::{
    endpoints::Endpoints,
    expectation,
    messages::{self, OutputLine},
    observer::Snapshot,
    operator::Operator,
    snapshot::Dip,
    story::{Goal, STEP_TIMEOUT, STEPS, Step, WEB},
};

/// Runs the steps one after another.
pub(crate) struct StoryRunner<'a> {
    /// Performs the actions.
    pub(crate) operator: Operator<'a>,
    /// What clients find.
    pub(crate) endpoints: &'a Endpoints,
    /// The lines of the story.
    pub(crate) lines: mpsc::Sender<OutputLine>,
    /// The number of the current step, for the observer.
    pub(crate) steps: watch::Sender<usize>,
    /// What the observer sees.
    pub(crate) snapshots: watch::Receiver<Snapshot>,
    /// Time to read after each step.
    pub(crate) pause: Duration,
}

/// How a step ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StepOutcome {
    /// The goal is reached, and the number of ready replicas never dipped.
    Passed,
    /// The goal is reached, but the number of ready replicas dipped.
    Dipped,
    /// The goal is not reached.
    Missed,
}

impl StoryRunner<'_> {
    /// Runs all steps and returns the numbers of those that failed. Later steps build on the layout of earlier ones, so the
    /// story ends at a step that misses its goal; it continues after a dip.
    pub(crate) async fn run(&mut self) -> anyhow::Result<Vec<usize>> {
        let mut failed = Vec::new();
        for (number, step) in (1..).zip(&STEPS) {
            let outcome = self.step(number, step).await?;
            if outcome != StepOutcome::Passed {
                failed.push(number);
            }
            if outcome == StepOutcome::Missed {
                break;
            }
            tokio::time::sleep(self.pause).await;
        }
        Ok(failed)
    }

    /// Reports `lines`. Without a receiver the demo is about to end, and they are dropped.
    pub(crate) async fn report(&self, lines: impl IntoIterator<Item = OutputLine>) {
        for line in lines {
            let _ = self.lines.send(line).await;
        }
    }

    async fn step(&mut self, number: usize, step: &Step) -> anyhow::Result<StepOutcome> {
        self.report([messages::heading(number, step)]).await;
        self.steps.send_replace(number);
        let started = Instant::now();
        let performed = self.operator.perform(step).await;
        performed.with_context(|| format!("step {number} failed"))?;
        let reached = self.wait_for(number, &step.goal, started).await?;

        let snapshot = self.snapshots.borrow().clone();
        let set = snapshot.sets.get(step.goal.set()).cloned();
        let set = set.unwrap_or_default();
        if !reached {
            let missing = expectation::missing(&step.goal, &set);
            let lines = messages::not_reached(&missing, STEP_TIMEOUT);
            self.report(lines).await;
            return Ok(StepOutcome::Missed);
        }
        let lines = messages::reached(&step.goal, &set, started.elapsed());
        self.report(lines).await;
        if let Goal::Layout(goal) = &step.goal
            && goal.set == WEB
        {
            let found = self.endpoints.follow(&set).await;
            self.report([messages::endpoints(&found)]).await;
            if found.is_err() {
                return Ok(StepOutcome::Missed);
            }
        }
        let sets = snapshot.sets.iter();
        let dips: Vec<(&str, Dip)> = sets
            .filter_map(|(name, set)| Some((*name, set.ready_tracker.dip?)))
            .collect();
        let lines = dips.iter().map(|(name, dip)| messages::dipped(name, *dip));
        self.report(lines).await;
        Ok(if dips.is_empty() {
            StepOutcome::Passed
        } else {
            StepOutcome::Dipped
        })
    }

    /// Waits until `goal` of step `number` is reached; false after the timeout.
    async fn wait_for(
        &mut self,
        number: usize,
        goal: &Goal,
        started: Instant,
    ) -> anyhow::Result<bool> {
        let is_reached = |snapshot: &Snapshot| {
            let set = snapshot.sets.get(goal.set());
            snapshot.step == number
                && set.is_some_and(|set| expectation::missing(goal, set).is_empty())
        };
        let deadline = started + STEP_TIMEOUT;
        match timeout_at(deadline, self.snapshots.wait_for(is_reached)).await {
            Ok(Ok(_)) => Ok(true),
            Ok(Err(_)) => anyhow::bail!("the observer of the clusters has stopped"),
            Err(_) => Ok(false),
        }
    }
}
