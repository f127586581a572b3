//! How many pods are created at a time (L13, C1): 1, 2, 4 and so on while the API server accepts them, as with a ReplicaSet. Where it
//! rejects one, because of a quota for example, as many fail in vain as have succeeded before, and not a thousand.
//!
//! Belongs to the process: a new leader starts with one.

use std::{collections::BTreeSet, time::Duration};

use jiff::Timestamp;

use crate::{pod::Pod, time::after};

/// The most pods to create at a time: that of Kubernetes' ReplicaSet controller.
const MAX_BATCH: usize = 500;
/// The wait after the first failure. Doubles with each further one in a row.
const FIRST_DELAY: Duration = Duration::from_secs(1);
/// The longest wait: what rejects pods, such as a quota, may change at any time, without an event.
const MAX_DELAY: Duration = Duration::from_secs(64);

/// How many pods may be created next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlowStart {
    batch: usize,
    failures: u32,
    retry_at: Option<Timestamp>,
    taken: BTreeSet<String>,
    unanswered: BTreeSet<String>,
}

/// What became of the creations of a plan, by the names of pods.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Created {
    /// They exist now, and belong to the set.
    pub created: Vec<String>,
    /// The API server rejected them.
    pub rejected: Vec<String>,
    /// The names belong to pods that the set can't see.
    pub taken: Vec<String>,
    /// It is not known whether they exist: the answer was lost. They are created again by the same names, before others.
    pub unanswered: Vec<String>,
    /// Whether the plan had more pods to create.
    pub has_more: bool,
}

impl Default for SlowStart {
    fn default() -> Self {
        Self {
            batch: 1,
            failures: 0,
            retry_at: None,
            taken: BTreeSet::new(),
            unanswered: BTreeSet::new(),
        }
    }
}

impl SlowStart {
    /// How many pods may be created at `now`.
    #[must_use]
    pub fn allowed(&self, now: Timestamp) -> usize {
        match self.retry_at {
            Some(at) if at > now => 0,
            _ => self.batch,
        }
    }

    /// When pods may be created again; `None` if they may.
    #[must_use]
    pub fn retry_at(&self, now: Timestamp) -> Option<Timestamp> {
        self.retry_at.filter(|at| *at > now)
    }

    /// Creations of pods that exist are answered. Call it with the pods of each step, before that.
    pub fn observe(&mut self, pods: &[Pod<'_>]) {
        if !self.unanswered.is_empty() {
            for pod in pods {
                self.unanswered.remove(pod.name);
            }
        }
    }

    /// Names that are not free.
    pub(crate) fn taken(&self) -> impl Iterator<Item = &str> {
        self.taken.iter().map(String::as_str)
    }

    /// Whether the name is known not to be free.
    pub(crate) fn is_taken(&self, name: &str) -> bool {
        self.taken.contains(name)
    }

    /// Names to create first.
    pub(crate) fn unanswered(&self) -> impl Iterator<Item = &str> {
        self.unanswered.iter().map(String::as_str)
    }

    /// Records what became of a plan at `now`.
    pub fn record(&mut self, outcome: Created, now: Timestamp) {
        let has_failed = !(outcome.rejected.is_empty() && outcome.unanswered.is_empty());
        let has_created = !outcome.created.is_empty();
        for name in outcome
            .created
            .iter()
            .chain(&outcome.rejected)
            .chain(&outcome.taken)
        {
            self.unanswered.remove(name);
        }
        self.unanswered.extend(outcome.unanswered);
        self.taken.extend(outcome.taken);
        if has_failed {
            let doublings = self.failures.min(u32::BITS - 1);
            let delay = FIRST_DELAY.saturating_mul(1 << doublings).min(MAX_DELAY);
            self.failures = self.failures.saturating_add(1);
            self.batch = 1;
            self.retry_at = Some(after(now, delay));
        } else if has_created {
            self.failures = 0;
            self.retry_at = None;
            self.batch = if outcome.has_more {
                (self.batch * 2).min(MAX_BATCH)
            } else {
                1
            };
        }
    }
}
