//! What a process knows of a set beyond its objects. A new leader begins without it, and decides the same.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use controller_base::retry::pause;
use fedrs_api::{PodTemplate, ResourceUpdates, ValidLocalStrategy};
use jiff::Timestamp;
use parking_lot::Mutex;
use replica_set_controller::{Pod, SlowStart};
use tokio::time::Instant;

use crate::{
    backoff::Backoff, disruption::BudgetMemory, key::SetKey, report::Progress, store::Snapshot,
};

/// What is known of one set.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// The uid of the set.
    pub(crate) uid: String,
    /// When it was last seen to exist: when this began, or when it was read before pods were added to it.
    pub(crate) seen: Option<Instant>,
    pub(crate) slow_start: SlowStart,
    /// The revision that was kept.
    pub(crate) kept: Option<Kept>,
    /// When a revision that could not be kept is tried again.
    pub(crate) keep_at: Option<Instant>,
    /// Templates of earlier revisions; `None` for one without a usable ControllerRevision.
    pub(crate) templates: BTreeMap<u32, Option<Arc<PodTemplate>>>,
    /// Pods that can't be patched to a target, or resized for it, as the API server says, by uid.
    pub(crate) refused: BTreeMap<String, RefusedPatch>,
    /// Revisions of which that is known of more than one pod, and what the API server says.
    pub(crate) refused_revisions: BTreeMap<u32, RefusedPatch>,
    /// Pods whose requests fail, by uid.
    pub(crate) failing: BTreeMap<String, Failing>,
    /// Why pods can't be created, while that lasts.
    pub(crate) create_failure: Option<String>,
    /// When the status was written last.
    pub(crate) written: Option<Instant>,
    pub(crate) progress: Progress,
    /// Its PodDisruptionBudget.
    pub(crate) budget: BudgetMemory,
    /// Writes of MigrationRequests that failed.
    pub(crate) migrations: Backoff,
    /// Events that are recorded once: of an invalid spec or status.
    pub(crate) reported: Option<String>,
}

/// A revision that is kept, and what was kept beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    /// The hash of the template.
    pub(crate) hash: u32,
    /// Why the template was changed.
    pub(crate) change_cause: Option<String>,
    /// The templates that pods have. Once they have no more, revisions beyond the limit are deleted.
    pub(crate) in_use: BTreeSet<u32>,
}

/// An update in place that the API server rejects as impossible.
#[derive(Clone, Debug)]
pub(crate) struct RefusedPatch {
    pub(crate) from: u32,
    pub(crate) target: u32,
    pub(crate) message: String,
}

/// A pod whose requests fail.
#[derive(Debug)]
pub(crate) struct Failing {
    pub(crate) count: u32,
    pub(crate) retry_at: Timestamp,
    /// Whether it could not be removed.
    pub(crate) is_removal: bool,
    pub(crate) message: String,
}

impl Memory {
    /// These are the pods now: adds to their facts what is known of them, and forgets those that are gone.
    pub(crate) fn observe(&mut self, pods: &mut [Pod<'_>], snapshot: &Snapshot) {
        for pod in &mut *pods {
            pod.is_refused = self.refused.contains_key(pod.uid);
        }
        self.slow_start.observe(pods);
        (self.failing).retain(|uid, _| snapshot.pods.contains_key(uid));
    }

    /// A request for the pod has failed.
    pub(crate) fn fail(&mut self, uid: &str, is_removal: bool, message: String, now: Timestamp) {
        let count = self.failing.get(uid).map_or(0, |failing| failing.count);
        let pause = pause(count);
        let failing = Failing {
            count: count.saturating_add(1),
            retry_at: now.checked_add(pause).unwrap_or(Timestamp::MAX),
            is_removal,
            message,
        };
        self.failing.insert(uid.to_owned(), failing);
    }

    /// The patch of the pod is invalid. The reason is the pod, as somebody has changed it; of two pods, the template.
    pub(crate) fn refuse(&mut self, uid: &str, patch: RefusedPatch) {
        let others = self.refused.iter().filter(|(other, _)| *other != uid);
        let mut others = others.filter(|(_, refused)| refused.from == patch.from);
        if others.next().is_some() {
            self.refused_revisions.insert(patch.from, patch.clone());
        }
        self.refused.insert(uid.to_owned(), patch);
    }

    /// Forgets what was about another target.
    pub(crate) fn keep_refused(&mut self, target: u32) {
        self.refused.retain(|_, patch| patch.target == target);
        self.refused_revisions
            .retain(|_, patch| patch.target == target);
    }

    /// How CPU and memory are updated: by other pods, too, once the API server has rejected the resize of two pods of the target.
    pub(crate) fn resource_updates(
        &self,
        strategy: &ValidLocalStrategy,
        target: u32,
    ) -> ResourceUpdates {
        // Only a pod that has the target already is resized.
        if self.refused_revisions.contains_key(&target) {
            ResourceUpdates::Recreate
        } else {
            strategy.resource_updates
        }
    }

    /// Whether requests for the pod have to wait.
    pub(crate) fn holds(&self, uid: &str, now: Timestamp) -> bool {
        let failing = self.failing.get(uid);
        failing.is_some_and(|failing| failing.retry_at > now)
    }

    /// How long until what failed beside the pods is tried again: a revision, the PodDisruptionBudget, or MigrationRequests.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        let revision = (self.keep_at).map(|at| at.saturating_duration_since(Instant::now()));
        let others = [&self.budget.backoff, &self.migrations].map(Backoff::retry_after);
        revision
            .into_iter()
            .chain(others.into_iter().flatten())
            .min()
    }

    /// When something is tried again.
    pub(crate) fn next(&self, now: Timestamp) -> Option<Timestamp> {
        let pods = self.failing.values().map(|failing| failing.retry_at);
        pods.chain(self.slow_start.retry_at(now))
            .filter(|at| *at > now)
            .min()
    }
}

/// The memories of all sets. The worker of a set takes its memory, and puts it back.
#[derive(Debug, Default)]
pub(crate) struct Memories(Mutex<HashMap<SetKey, Memory>>);

impl Memories {
    /// That of the set with this uid, which has none yet if it is new.
    pub(crate) fn take(&self, key: &SetKey, uid: &str) -> Memory {
        let memory = self.0.lock().remove(key);
        let memory = memory.filter(|memory| memory.uid == uid);
        memory.unwrap_or_else(|| Memory {
            uid: uid.to_owned(),
            seen: Some(Instant::now()),
            ..Memory::default()
        })
    }

    pub(crate) fn put(&self, key: &SetKey, memory: Memory) {
        self.0.lock().insert(key.clone(), memory);
    }

    pub(crate) fn forget(&self, key: &SetKey) {
        self.0.lock().remove(key);
    }
}
