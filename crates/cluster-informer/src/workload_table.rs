//! The local workloads of one kind in one member cluster: from the watch and from the responses to our own writes, whichever is newer.
//!
//! A list overrides everything known before it began. Otherwise the higher resourceVersion wins, of an event or of a
//! response.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use fedrs_api::WorkloadKey;
use jiff::Timestamp;
use planted_bugs::{PlantedBug, is_planted};
use reflector::{ResourceVersion, Uid};

use crate::{
    change::WorkloadChange,
    owned_sets::OwnedSets,
    scale_requests::ScaleRequests,
    tombstones::{Cause, Tombstone, Tombstones},
    workload::WorkloadState,
};

/// The local workloads of a kind in a member. Each takes some hundred bytes.
pub(crate) const MAX_WORKLOADS: usize = 10_000;

/// Local workloads of one kind by key.
#[derive(Debug, Default)]
pub(crate) struct WorkloadTable {
    /// Boxed: the slots of a map of this size are half empty. A key shares its texts with that in the state.
    workloads: BTreeMap<WorkloadKey, Box<Entry>>,
    /// Our requests to scale them.
    pub(crate) scale_requests: ScaleRequests,
    /// The bytes of the texts of all of them.
    text_bytes: usize,
    /// Which of them Deployments own.
    owned: OwnedSets,
    /// The labels of the last one, federation and member, which most of them have.
    labels: [Arc<str>; 2],
    deleted: Tombstones,
    /// The newest version since the last list, and until the next one begins.
    newest: ResourceVersion,
    /// The number of the newest list.
    epoch: u32,
    listing: bool,
}

#[derive(Debug)]
struct Entry {
    state: WorkloadState,
    version: ResourceVersion,
    /// The number of the list during or after which the watch last showed it; `None` if only a response did.
    observed_in: Option<u32>,
    /// The same, or the number of the list at our last write.
    updated_in: u32,
    /// The status that was last reported as a change: a response may already contain what the watch shows later.
    reported: Status,
}

/// What a workload says about its pods.
#[derive(Debug, Default, PartialEq, Eq)]
struct Status {
    observed_generation: i64,
    replicas: u32,
    ready: u32,
    fully_labeled: u32,
    available: u32,
    updated: u32,
    failing: bool,
    deleting: bool,
}

impl Status {
    fn of(state: &WorkloadState) -> Self {
        Self {
            observed_generation: state.observed_generation,
            replicas: state.status_replicas,
            ready: state.ready_replicas,
            fully_labeled: state.fully_labeled_replicas,
            available: state.available_replicas,
            updated: state.updated_replicas(),
            failing: state.replica_failure.is_some(),
            deleting: state.deletion.is_some(),
        }
    }
}

/// Whether the response to a write was applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Believed(pub(crate) bool);

impl WorkloadTable {
    pub(crate) fn len(&self) -> usize {
        self.workloads.len()
    }

    /// Whether the limit for a member is reached.
    pub(crate) fn is_full(&self) -> bool {
        self.workloads.len() >= MAX_WORKLOADS
    }

    /// The bytes that it takes.
    pub(crate) fn bytes(&self) -> usize {
        // A map is at least half full.
        let entry = size_of::<Entry>() + 2 * size_of::<(WorkloadKey, Box<Entry>)>();
        let owned = self.owned.bytes();
        self.workloads.len() * entry + self.text_bytes + owned + self.deleted.bytes()
    }

    /// What is known of a workload.
    pub(crate) fn get(&self, key: &WorkloadKey) -> Option<&WorkloadState> {
        self.workloads.get(key).map(|entry| &entry.state)
    }

    /// The workload at `now`, with the replicas of the requests that may have been carried out.
    pub(crate) fn at(&self, key: &WorkloadKey, now: Timestamp) -> Option<WorkloadState> {
        let entry = self.workloads.get(key)?;
        Some(self.scale_requests.apply(entry.state.clone(), now))
    }

    /// The known ReplicaSets of the Deployment with this uid.
    pub(crate) fn owned_by(&self, deployment: Uid) -> impl Iterator<Item = &WorkloadState> {
        let keys = self.owned.of(deployment);
        keys.filter_map(|key| self.get(key))
    }

    /// The key of the Deployment that owns the ReplicaSet with this uid.
    pub(crate) fn owner_of(&self, set: Uid) -> Option<&WorkloadKey> {
        self.owned.owner(set)
    }

    /// The Deployments that have other ReplicaSets since the last call.
    pub(crate) fn take_changed_owners(&mut self) -> BTreeSet<WorkloadKey> {
        self.owned.take_changed()
    }

    /// Forgets the workloads. Requests that are on their way may still be carried out.
    pub(crate) fn clear(&mut self) {
        *self = Self {
            scale_requests: std::mem::take(&mut self.scale_requests),
            ..Self::default()
        };
    }

    /// All workloads, in the order of their keys.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&WorkloadKey, &WorkloadState)> {
        let workloads = self.workloads.iter();
        workloads.map(|(key, entry)| (key, &entry.state))
    }

    /// A list begins: [`end_list`](Self::end_list) removes the workloads that it does not contain.
    pub(crate) fn begin_list(&mut self) {
        self.epoch = self.epoch.wrapping_add(1);
        self.listing = true;
    }

    /// The list is complete as of `version`: removes the workloads that it did not contain, except those written since.
    pub(crate) fn end_list(
        &mut self,
        version: ResourceVersion,
    ) -> Vec<(WorkloadKey, WorkloadChange)> {
        self.listing = false;
        // The member was restored from a backup: what was deleted since may exist again, with earlier versions.
        let went_back = version.is_older_than(self.newest);
        if went_back {
            self.deleted = Tombstones::default();
        }
        self.newest = version;
        let Self {
            workloads,
            text_bytes,
            owned,
            deleted,
            epoch,
            ..
        } = self;
        let epoch = *epoch;
        let mut lost = Vec::new();
        workloads.retain(|key, entry| {
            let is_older = entry.version.is_older_than(version);
            let written_since = entry.updated_in == epoch && !is_older && entry.version != version;
            let is_lost = is_planted(PlantedBug::DeletionLostInRelist);
            let keep = entry.observed_in == Some(epoch) || written_since || is_lost;
            if !keep {
                *text_bytes -= entry.state.text_bytes();
                owned.replace(Some(&entry.state), None);
                let version = if is_older || went_back {
                    version
                } else {
                    entry.version
                };
                let cause = Cause::Observed(version);
                deleted.insert(entry.state.id(), Tombstone { cause, epoch });
                lost.push((key.clone(), WorkloadChange::Drift));
            }
            keep
        });
        lost
    }

    /// Has `state` share its labels with the one before.
    fn share_labels(&mut self, state: &mut WorkloadState) {
        let labels = [&mut state.federation, &mut state.member_cluster];
        for (shared, label) in self.labels.iter_mut().zip(labels) {
            if shared == label {
                *label = Arc::clone(shared);
            } else {
                *shared = Arc::clone(label);
            }
        }
    }

    /// Applies a state from the list or the watch. Returns what changed.
    pub(crate) fn apply(&mut self, mut state: WorkloadState) -> Option<WorkloadChange> {
        let version = ResourceVersion::parse(&state.resource_version);
        let (epoch, listing) = (self.epoch, self.listing);
        self.observe_version(version);
        if self.is_deleted(&state, version) {
            return None;
        }
        self.share_labels(&mut state);
        let reported = Status::of(&state);
        let Some(entry) = self.workloads.get_mut(&state.key) else {
            self.scale_requests.close(&state);
            self.text_bytes += state.text_bytes();
            self.owned.replace(None, Some(&state));
            let entry = Entry {
                version,
                observed_in: Some(epoch),
                updated_in: epoch,
                reported,
                state,
            };
            self.workloads
                .insert(entry.state.key.clone(), Box::new(entry));
            return Some(WorkloadChange::Status);
        };
        let overrides = listing && entry.updated_in != epoch;
        entry.observed_in = Some(epoch);
        entry.updated_in = epoch;
        if !overrides && version.is_older_than(entry.version) {
            entry.apply_older(&state);
            return None;
        }
        let change = entry.change_to(&state, &reported);
        state.key = entry.state.key.clone();
        entry.carry_lowest_replicas(&mut state, &self.scale_requests);
        self.scale_requests.close(&state);
        self.text_bytes -= entry.state.text_bytes();
        self.text_bytes += state.text_bytes();
        self.owned.replace(Some(&entry.state), Some(&state));
        **entry = Entry {
            version,
            observed_in: Some(epoch),
            updated_in: epoch,
            reported,
            state,
        };
        change
    }

    /// The watch shows that the workload was deleted, or no longer has our labels.
    pub(crate) fn delete(
        &mut self,
        key: &WorkloadKey,
        uid: Uid,
        version: ResourceVersion,
    ) -> Option<WorkloadChange> {
        self.observe_version(version);
        let entry = self.workloads.get(key);
        let entry = entry.filter(|entry| entry.state.id() == uid);
        if entry.is_some_and(|entry| version.is_older_than(entry.version)) {
            return None;
        }
        let known = entry.is_some();
        if known {
            self.remove(key);
        }
        // The tombstone of our own deletion stays: it is final.
        let by_us = self
            .deleted
            .get(uid)
            .is_some_and(|tombstone| matches!(tombstone.cause, Cause::DeletedByUs));
        if !by_us {
            self.add_tombstone(uid, Cause::Observed(version));
        }
        known.then_some(WorkloadChange::Drift)
    }

    /// The response to a write shows that the workload does not exist: the watch has not shown yet, or will never show, that it
    /// was deleted. A later version, or a list, may show it again.
    pub(crate) fn observe_absence(&mut self, key: &WorkloadKey, uid: Uid) {
        let entry = self.workloads.get(key);
        if let Some(version) = entry.map(|entry| entry.version) {
            self.delete(key, uid, version);
        }
    }

    /// A workload exists and can't be read: keeps its entry.
    pub(crate) fn keep(&mut self, uid: Uid) {
        let epoch = self.epoch;
        let mut entries = self.workloads.values_mut();
        if let Some(entry) = entries.find(|entry| entry.state.id() == uid) {
            entry.observed_in = Some(epoch);
            entry.updated_in = epoch;
        }
    }

    /// Applies the response to our own write, ahead of the watch. One that shows an object which we have deleted is not believed:
    /// it is late, or the member was restored from a backup, which a list shows.
    pub(crate) fn observe_write(&mut self, mut state: WorkloadState) -> Believed {
        let version = ResourceVersion::parse(&state.resource_version);
        self.observe_version(version);
        if self.is_deleted_after_write(&state, version) {
            return Believed(false);
        }
        self.share_labels(&mut state);
        let epoch = self.epoch;
        let Some(entry) = self.workloads.get_mut(&state.key) else {
            self.text_bytes += state.text_bytes();
            self.owned.replace(None, Some(&state));
            let entry = Entry {
                version,
                observed_in: None,
                updated_in: epoch,
                reported: Status::default(),
                state,
            };
            self.workloads
                .insert(entry.state.key.clone(), Box::new(entry));
            return Believed(true);
        };
        if version.is_older_than(entry.version) {
            entry.apply_older(&state);
            return Believed(true);
        }
        state.key = entry.state.key.clone();
        entry.carry_lowest_replicas(&mut state, &self.scale_requests);
        self.scale_requests.close(&state);
        self.text_bytes -= entry.state.text_bytes();
        self.text_bytes += state.text_bytes();
        self.owned.replace(Some(&entry.state), Some(&state));
        entry.state = state;
        entry.version = version;
        entry.updated_in = epoch;
        Believed(true)
    }

    /// Our delete request for the object with this uid succeeded.
    pub(crate) fn observe_deletion(&mut self, key: &WorkloadKey, uid: Uid) {
        let entry = self.workloads.get(key);
        if entry.is_some_and(|entry| entry.state.id() == uid) {
            self.remove(key);
        }
        self.add_tombstone(uid, Cause::DeletedByUs);
    }

    fn observe_version(&mut self, version: ResourceVersion) {
        if !self.listing && !version.is_older_than(self.newest) {
            self.newest = version;
        }
    }

    fn remove(&mut self, key: &WorkloadKey) {
        if let Some(entry) = self.workloads.remove(key) {
            self.text_bytes -= entry.state.text_bytes();
            self.owned.replace(Some(&entry.state), None);
        }
    }

    fn add_tombstone(&mut self, uid: Uid, cause: Cause) {
        let epoch = self.epoch;
        self.deleted.insert(uid, Tombstone { cause, epoch });
    }

    /// Whether a state from the list or the watch is older than the deletion of its object. A deletion before a list that shows
    /// the object, or before the list that a watch follows, is forgotten: it was reported wrongly, or undone when the member was
    /// restored from a backup.
    fn is_deleted(&mut self, state: &WorkloadState, version: ResourceVersion) -> bool {
        let Some(tombstone) = self.deleted.get(state.id()) else {
            return false;
        };
        if tombstone.epoch != self.epoch {
            self.deleted.remove(state.id());
            return false;
        }
        match tombstone.cause {
            Cause::DeletedByUs => state.deletion.is_none(),
            Cause::Observed(deleted) => version == deleted || version.is_older_than(deleted),
        }
    }

    /// Whether the response to a write is, or may be, older than the deletion of its object.
    fn is_deleted_after_write(&self, state: &WorkloadState, version: ResourceVersion) -> bool {
        let Some(tombstone) = self.deleted.get(state.id()) else {
            return false;
        };
        match tombstone.cause {
            Cause::DeletedByUs => true,
            // If the versions do not compare, the watch shows the object if it exists.
            Cause::Observed(deleted) => !deleted.is_older_than(version),
        }
    }
}

impl Entry {
    fn change_to(&self, state: &WorkloadState, status: &Status) -> Option<WorkloadChange> {
        let old = &self.state;
        let drifted = old.uid != state.uid
            || old.spec_hash != state.spec_hash
            || old.replicas != state.replicas
            || old.federation != state.federation
            || old.member_cluster != state.member_cluster
            || old.has_controller != state.has_controller
            || old.has_other_rollout(state);
        if drifted {
            Some(WorkloadChange::Drift)
        } else if status.available > self.reported.available {
            Some(WorkloadChange::MoreAvailable)
        } else {
            let says_something_else = old.replica_failure != state.replica_failure
                || old.deletion != state.deletion
                || old.deployment != state.deployment;
            (*status != self.reported || says_something_else).then_some(WorkloadChange::Status)
        }
    }

    /// Keeps the lowest replicas in the newer state until the member's controller has caught up with it.
    fn carry_lowest_replicas(&self, newer: &mut WorkloadState, requests: &ScaleRequests) {
        let caught_up = newer.observed_generation >= newer.generation;
        newer.lowest_replicas = if caught_up || newer.uid != self.state.uid {
            newer.replicas
        } else {
            let requested = requests.lowest(newer);
            newer
                .replicas
                .min(self.state.lowest_replicas)
                .min(requested.unwrap_or(u32::MAX))
        };
    }

    /// An older state arrives late: it lowers the lowest replicas if the member's controller may still act on it.
    fn apply_older(&mut self, older: &WorkloadState) {
        let state = &mut self.state;
        if older.uid == state.uid && older.generation > state.observed_generation {
            state.lowest_replicas = state.lowest_replicas.min(older.replicas);
        }
    }
}

#[cfg(test)]
impl WorkloadTable {
    pub(crate) fn owns_nothing(&self) -> bool {
        self.owned.is_empty()
    }
}

#[cfg(test)]
#[path = "workload_table_tests.rs"]
mod tests;
