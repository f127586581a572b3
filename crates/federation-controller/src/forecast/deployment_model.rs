//! A model of a Deployment in a member during a rollout: its controller replaces pods as Kubernetes' does (`rolling.go`), and
//! each pod that starts becomes available. A LocalReplicaSet has no surge, and nothing at all without a loan.

use std::{collections::VecDeque, time::Duration};

use federated_rollout::{Action, Deployment, LocalSet, Strategy};
use jiff::Timestamp;

use crate::check::after;

/// A Deployment with its pods. Each write is observed with the next [`sync`](Self::sync).
#[derive(Clone, Debug)]
pub(super) struct DeploymentModel {
    replicas: u64,
    /// Whether it has the target template.
    has_target: bool,
    strategy: Strategy,
    /// Of a LocalReplicaSet: whether it is paused.
    paused: Option<bool>,
    generation: i64,
    observed_generation: i64,
    /// Pods of another template, all of them available.
    old: u64,
    /// Available pods of the target template.
    updated: u64,
    /// Other pods of the target template, and when they become available.
    starting: VecDeque<(Timestamp, u64)>,
    last_start: Option<Timestamp>,
}

impl DeploymentModel {
    /// A Deployment without a loan, all of whose pods have its template and are available.
    pub(super) fn new(replicas: u64, has_target: bool, is_local: bool) -> Self {
        let updated = if has_target { replicas } else { 0 };
        let strategy = if is_local {
            Strategy::default()
        } else {
            Strategy::WITHOUT_LOAN
        };
        Self {
            replicas,
            has_target,
            strategy,
            paused: is_local.then_some(true),
            generation: 1,
            observed_generation: 1,
            old: replicas - updated,
            updated,
            starting: VecDeque::new(),
            last_start: None,
        }
    }

    /// What its member shows at `now`. `revisions` are the names of the target and of another one.
    pub(super) fn seen<'a>(
        &self,
        (target, other): (&'a str, &'a str),
        min_delay: Option<Duration>,
        now: Timestamp,
    ) -> Deployment<'a> {
        let lately = |at| min_delay.is_some_and(|delay| now < after(at, delay));
        // The pods of its own template.
        let (own, own_available) = if self.has_target {
            (self.updated + self.starting(), self.updated)
        } else {
            (self.old, self.old)
        };
        Deployment {
            replicas: self.replicas,
            lowest_replicas: self.replicas,
            highest_replicas: self.replicas,
            revision: if self.has_target { target } else { other },
            strategy: self.strategy,
            generation: self.generation,
            observed_generation: self.observed_generation,
            pods: self.pods(),
            updated: own,
            available: self.available(),
            pending: 0,
            updated_available: own_available,
            uncertain: 0,
            started_lately: self.last_start.is_some_and(lately),
            paused: false,
            local: self.paused.map(|paused| LocalSet {
                paused,
                ..LocalSet::default()
            }),
        }
    }

    /// Whether all pods have the target template and are available.
    pub(super) fn is_complete(&self) -> bool {
        self.has_target && self.old == 0 && self.updated >= self.replicas
    }

    /// The number of pods.
    pub(super) fn pods(&self) -> u64 {
        self.available() + self.starting()
    }

    /// The number of available pods.
    pub(super) fn available(&self) -> u64 {
        self.old + self.updated
    }

    fn starting(&self) -> u64 {
        self.starting.iter().map(|(_, pods)| pods).sum()
    }

    /// Carries out a write.
    pub(super) fn write(&mut self, action: Action) {
        self.generation += 1;
        match action {
            Action::Roll(strategy) => {
                self.has_target = true;
                self.set(strategy);
            }
            Action::Shrink(strategy) => self.set(strategy),
            Action::Lend(strategy) => self.strategy = strategy,
            // What is planned is not paused.
            Action::Pause | Action::Resume | Action::Fence => {}
        }
    }

    /// A LocalReplicaSet without a strategy is paused.
    fn set(&mut self, strategy: Strategy) {
        self.strategy = strategy;
        self.paused = self.paused.map(|_| strategy.pods() == 0);
    }

    /// One pass of its controller at `now`: starts pods, which are available after `delay`, or removes old ones. Returns whether
    /// anything changed.
    pub(super) fn sync(&mut self, now: Timestamp, delay: Duration) -> bool {
        let was_observed = self.observed_generation == self.generation;
        self.observed_generation = self.generation;
        if !self.has_target {
            return !was_observed;
        }
        let (replicas, total) = (self.replicas, self.pods());
        let new = self.updated + self.starting();
        let room = (replicas + self.strategy.surge).saturating_sub(total);
        let created = room.min(replicas.saturating_sub(new));
        if created > 0 {
            self.starting.push_back((after(now, delay), created));
            self.last_start = Some(now);
            return true;
        }
        self.remove_old() || !was_observed
    }

    /// Removes old pods as long as enough are available. Returns whether there were any.
    fn remove_old(&mut self) -> bool {
        let least = self.replicas.saturating_sub(self.strategy.unavailable);
        let removed = self.available().saturating_sub(least).min(self.old);
        self.old -= removed;
        removed > 0
    }

    /// Pods that have started long enough before `now` become available. Returns whether any did.
    pub(super) fn mature(&mut self, now: Timestamp) -> bool {
        let before = self.updated;
        while let Some((at, pods)) = self.starting.front().copied()
            && at <= now
        {
            self.starting.pop_front();
            self.updated += pods;
        }
        self.updated > before
    }

    /// When the next pods become available.
    pub(super) fn next(&self) -> Option<Timestamp> {
        self.starting.front().map(|(at, _)| *at)
    }
}
