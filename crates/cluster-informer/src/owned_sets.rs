//! The ReplicaSets of Deployments, by the uids of both.
//!
//! ```text
//! pod --controller's uid--> ReplicaSet --controller's uid--> Deployment
//! ```
//!
//! Pods are counted by their ReplicaSet, in the order in which events come; a Deployment's counts are the sum over the
//! ReplicaSets that it owns when somebody looks. So each of the three watches may be ahead of the others, and a ReplicaSet that
//! changes its owner takes its pods along.
//!
//! **Which ReplicaSets are known.** Those that the watch of ReplicaSets shows, because they have our labels. A ReplicaSet has
//! the labels of the template that it was created from, so that those of a template of ours have them. Those of an adopted
//! Deployment, whose template stays as it was found, have them once they are labeled by a patch, as its pods are: labels of a
//! ReplicaSet belong to no revision, and change no pod. What has no labels is not known, and its pods count in the status of the
//! Deployment only (F30). Another watch, of all ReplicaSets of a member, would cost far more than it tells.
//!
//! Pods of a ReplicaSet that is not known, not yet or no more, count for no Deployment: it may be a copied one, or an earlier
//! one of the name.

use std::{
    collections::{BTreeSet, HashMap},
    mem,
};

use fedrs_api::WorkloadKey;
use reflector::Uid;

use crate::workload::WorkloadState;

/// The ReplicaSets of a table that Deployments own.
#[derive(Debug, Default)]
pub(crate) struct OwnedSets {
    /// The keys of ReplicaSets by the uid of the Deployment.
    sets: HashMap<Uid, BTreeSet<WorkloadKey>>,
    /// The keys of Deployments by the uid of the ReplicaSet.
    owners: HashMap<Uid, WorkloadKey>,
    /// The Deployments that have other ReplicaSets since the last [`take_changed`](Self::take_changed).
    changed: BTreeSet<WorkloadKey>,
}

/// What a ReplicaSet takes in both maps, of which half may be free.
const SET_BYTES: usize = 4 * size_of::<WorkloadKey>() + 4 * size_of::<Uid>();

impl OwnedSets {
    /// The keys of the ReplicaSets of the Deployment with this uid.
    pub(crate) fn of(&self, deployment: Uid) -> impl Iterator<Item = &WorkloadKey> {
        self.sets.get(&deployment).into_iter().flatten()
    }

    /// The key of the Deployment that owns the ReplicaSet with this uid.
    pub(crate) fn owner(&self, set: Uid) -> Option<&WorkloadKey> {
        self.owners.get(&set)
    }

    /// A ReplicaSet is replaced by its next state; `None` is one that does not exist.
    pub(crate) fn replace(&mut self, before: Option<&WorkloadState>, now: Option<&WorkloadState>) {
        let owner = |state: Option<&WorkloadState>| {
            let owner = state?.owned_by.as_ref()?.uid;
            Some((owner, state?.id()))
        };
        if owner(before) == owner(now) {
            return;
        }
        if let Some(before) = before {
            self.remove(before);
        }
        if let Some(now) = now {
            self.insert(now);
        }
    }

    fn insert(&mut self, state: &WorkloadState) {
        if let Some(owner) = &state.owned_by {
            let sets = self.sets.entry(owner.uid).or_default();
            sets.insert(state.key.clone());
            self.owners.insert(state.id(), owner.key.clone());
            self.changed.insert(owner.key.clone());
        }
    }

    fn remove(&mut self, state: &WorkloadState) {
        if let Some(owner) = &state.owned_by {
            if let Some(sets) = self.sets.get_mut(&owner.uid) {
                sets.remove(&state.key);
                if sets.is_empty() {
                    self.sets.remove(&owner.uid);
                }
            }
            self.owners.remove(&state.id());
            self.changed.insert(owner.key.clone());
        }
    }

    /// The Deployments that have other ReplicaSets since the last call.
    pub(crate) fn take_changed(&mut self) -> BTreeSet<WorkloadKey> {
        mem::take(&mut self.changed)
    }

    /// The bytes that they take: the texts are those of the ReplicaSets.
    pub(crate) fn bytes(&self) -> usize {
        self.owners.len() * SET_BYTES
    }
}

#[cfg(test)]
impl OwnedSets {
    pub(crate) fn is_empty(&self) -> bool {
        self.sets.is_empty() && self.owners.is_empty()
    }
}
