//! Plays the story: does each step's deed, waits until its goal is reached, and judges.

use std::time::Duration;

use tokio::{
    sync::watch,
    time::{Instant, timeout_at},
};

use super::{
    deeds::Actor,
    expect,
    observer::Scene,
    story::{Goal, STEPS, Step},
    telling::{self, Teller, Tone},
};

/// How long a step may take to reach its goal. Each takes some seconds on an idle machine.
pub(crate) const STEP_DEADLINE: Duration = Duration::from_secs(60);

/// Everything a step needs.
pub(crate) struct Play<'a> {
    /// Does what the steps say.
    pub(crate) actor: Actor<'a>,
    /// Tells what happens.
    pub(crate) teller: &'a Teller,
    /// Says to the observer which step it is.
    pub(crate) steps: watch::Sender<usize>,
    /// What is seen.
    pub(crate) scenes: watch::Receiver<Scene>,
    /// Time to read after each step.
    pub(crate) pause: Duration,
}

impl Play<'_> {
    /// Plays all steps; answers which failed, by number. Later steps build on a step that was not reached, so
    /// the story ends there; after a dip it goes on.
    pub(crate) async fn run(&mut self) -> anyhow::Result<Vec<usize>> {
        let mut failed = Vec::new();
        for (number, step) in (1..).zip(&STEPS) {
            let (reached, steady) = self.step(number, step).await?;
            if !(reached && steady) {
                failed.push(number);
            }
            if !reached {
                break;
            }
            tokio::time::sleep(self.pause).await;
        }
        Ok(failed)
    }

    /// Plays one step; whether its goal was reached, and whether no ready replica was missing meanwhile.
    async fn step(&mut self, number: usize, step: &Step) -> anyhow::Result<(bool, bool)> {
        let heading = telling::heading(number, step);
        self.teller.tell_all([heading]).await;
        self.steps.send_replace(number);
        let started = Instant::now();
        let deadline = started + STEP_DEADLINE;
        self.actor.act(step).await?;

        let set = step.goal.set();
        let there = |scene: &Scene| {
            scene.step == number
                && scene
                    .sets
                    .get(set)
                    .is_some_and(|it| expect::missing(&step.goal, it).is_empty())
        };
        let reached = match timeout_at(deadline, self.scenes.wait_for(there)).await {
            Ok(Ok(_)) => true,
            Ok(Err(_)) => anyhow::bail!("nobody observes the clusters any more"),
            Err(_) => false,
        };
        let scene = self.scenes.borrow().clone();
        let shown = scene.sets.get(set).cloned().unwrap_or_default();
        if reached && self.disagrees(&step.goal).await {
            return Ok((false, true));
        }
        if reached {
            self.teller
                .tell_all(telling::reached(step, &shown, started.elapsed()))
                .await;
        } else {
            self.teller
                .tell_all(telling::not_reached(step, &shown, STEP_DEADLINE))
                .await;
        }
        let dips = scene
            .sets
            .iter()
            .filter_map(|(name, it)| Some((*name, it.watch.dip()?)));
        let dips: Vec<_> = dips.map(|(name, dip)| telling::dipped(name, dip)).collect();
        let steady = dips.is_empty();
        self.teller.tell_all(dips).await;
        Ok((reached, steady))
    }

    /// Whether the planner's layout, which was reached, is not the document's.
    async fn disagrees(&self, goal: &Goal) -> bool {
        let Goal::Layout(layout) = goal else {
            return false;
        };
        let Some(document) = layout.document else {
            return false;
        };
        let expected = expect::expected(layout);
        let disagrees = !expected.agrees_with(document);
        if disagrees {
            let text = format!(
                "  FAILED: the document has {document:?}, the planner {:?}.",
                expected.0
            );
            self.teller.tell(Tone::Bad, text).await;
        }
        disagrees
    }
}
