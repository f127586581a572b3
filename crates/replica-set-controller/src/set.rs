//! What a step needs to know of the set.

use std::{collections::BTreeMap, time::Duration};

use federated_rollout::{Amount, Speed};
use fedrs_api::{AllowedChanges, ValidLocalReplicaSet};

use crate::{change::Change, pod::Pod, policy::Policy, resize::Resize};

/// A set with its current revision, and how pods of other revisions get to it.
#[derive(Clone, Copy, Debug)]
pub struct Set<'a> {
    /// The name, from which those of pods are made.
    pub name: &'a str,
    /// The uid, so that another set of the same name names its pods otherwise.
    pub uid: &'a str,
    /// The number of pods (L7).
    pub replicas: usize,
    /// How long a pod must be ready to be available.
    pub min_ready: Duration,
    /// After how long a pod that is not available has failed; `None` for never.
    pub progress_deadline: Option<Duration>,
    /// What may be unavailable (L14).
    pub max_unavailable: Amount,
    /// What AvailabilitySets let be unavailable (A1), if they say less; `None` if none is about it. [`Self::new`] knows of none.
    pub availability_limit: Option<usize>,
    /// The most pods that begin to be updated in a time (L15).
    pub speed: Option<Speed>,
    /// Which changes of pods are allowed (L8, C4).
    pub allowed: AllowedChanges,
    /// Whether the set is being deleted: its pods are left to the garbage collector, or to nobody (C7).
    pub is_deleted: bool,
    /// After how long a pod that does not shut down is deleted by force (L17).
    pub removal_timeout: Duration,
    /// After how long an eviction no longer delays updates (L19).
    pub eviction_timeout: Duration,
    /// How long a ready pod is out of endpoints before it is removed, or its containers restart.
    pub drain: Duration,
    /// How pods leave the nodes that they have to leave (M1): [`Self::new`] knows of no policy.
    pub migration: Policy<'a>,
    /// The hash of the current template (L2).
    pub target: u32,
    /// How a pod of another revision gets to the current one. One that is missing is recreated.
    pub changes: &'a BTreeMap<u32, Change>,
}

impl<'a> Set<'a> {
    /// The valid `set`, whose current template has the hash `target`.
    #[must_use]
    pub fn new(
        set: &'a ValidLocalReplicaSet,
        is_deleted: bool,
        target: u32,
        changes: &'a BTreeMap<u32, Change>,
    ) -> Self {
        Self {
            name: &set.name,
            uid: &set.uid,
            replicas: usize::try_from(set.replicas).unwrap_or(usize::MAX),
            min_ready: Duration::from_secs(set.min_ready_seconds.into()),
            progress_deadline: set.progress_deadline,
            max_unavailable: set.strategy.max_unavailable,
            availability_limit: None,
            speed: set.strategy.speed,
            allowed: set.changes,
            is_deleted,
            removal_timeout: set.removal_timeout,
            eviction_timeout: set.eviction_timeout,
            drain: set.drain,
            migration: Policy::None,
            target,
            changes,
        }
    }

    /// How many pods may be unavailable: the least of all budgets (L14, A1).
    pub(crate) fn limit(&self) -> usize {
        let replicas = u64::try_from(self.replicas).unwrap_or(u64::MAX);
        let own = self.max_unavailable.without_surge(replicas);
        let own = usize::try_from(own).unwrap_or(usize::MAX);
        self.availability_limit.map_or(own, |limit| own.min(limit))
    }

    /// Whether nothing at all may be changed.
    pub(crate) fn is_still(&self) -> bool {
        self.is_deleted || self.allowed == AllowedChanges::None
    }

    /// Whether updates may begin.
    pub(crate) fn may_update(&self) -> bool {
        !self.is_deleted && self.allowed == AllowedChanges::All
    }

    /// Whether a pod has to be updated: it has another revision, or it can't get the resources of the current one in place.
    pub(crate) fn is_outdated(&self, pod: &Pod<'_>) -> bool {
        pod.revision != Some(self.target) || pod.is_refused || pod.resize == Resize::Infeasible
    }

    /// How a pod gets to the current revision; `None` if it has to be recreated, because its revision is not known, or it can't be
    /// updated in place.
    pub(crate) fn change(&self, pod: &Pod<'_>) -> Option<&'a Change> {
        let change = self.changes.get(&pod.revision?);
        change.filter(|change| match change {
            Change::Recreate(_) => true,
            Change::InPlace(patch) => {
                !pod.is_refused && (patch.resizes.is_empty() || pod.is_resizable)
            }
        })
    }
}
