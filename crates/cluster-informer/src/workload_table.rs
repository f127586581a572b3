//! The local ReplicaSets of one member cluster: from the watch and from the responses to our own writes, whichever is newer.
//!
//! A list overrides everything known before it began. Otherwise the higher resourceVersion wins, of an event or of a
//! response.

use std::collections::BTreeMap;

use fedrs_api::ObjectKey;
use jiff::Timestamp;
use planted_bugs::{PlantedBug, is_planted};
use reflector::{ResourceVersion, Uid};

use crate::{
    change::WorkloadChange,
    tombstones::{Cause, Tombstone, Tombstones},
    workload::WorkloadState,
};

/// The local ReplicaSets of a member. Each takes some hundred bytes.
pub(crate) const MAX_WORKLOADS: usize = 10_000;

/// Local ReplicaSets by key.
#[derive(Debug, Default)]
pub(crate) struct WorkloadTable {
    /// Boxed: the slots of a map of this size are half empty.
    workloads: BTreeMap<ObjectKey, Box<Entry>>,
    /// The bytes of the texts of all of them.
    text_bytes: usize,
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
    /// Our latest request to scale down until its result is known, and what earlier requests may still do.
    scale_downs: [Option<ScaleDown>; 2],
    /// The status that was last reported as a change: a response may already contain what the watch shows later.
    reported: Status,
}

/// A request to scale down that may have been carried out, or may still be, although no response says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ScaleDown {
    /// The object that it is for.
    pub(crate) uid: Uid,
    /// The generation that it requires: it fails if the object has another one.
    pub(crate) generation: i64,
    /// Its `spec.replicas`.
    pub(crate) replicas: u32,
    /// The time from which on no API server can still carry it out.
    pub(crate) until: Timestamp,
}

impl ScaleDown {
    /// Whether it may still be carried out.
    fn is_open(&self, state: &WorkloadState, now: Timestamp) -> bool {
        self.generation == state.generation && now < self.until && self.uid == state.id()
    }
}

/// What a workload says about its pods.
#[derive(Debug, Default, PartialEq, Eq)]
struct Status {
    observed_generation: i64,
    replicas: u32,
    ready: u32,
    fully_labeled: u32,
    available: u32,
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
            failing: state.replica_failure.is_some(),
            deleting: state.deletion.is_some(),
        }
    }
}

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
        let entry = size_of::<Entry>() + 2 * size_of::<(ObjectKey, Box<Entry>)>();
        self.workloads.len() * entry + self.text_bytes + self.deleted.bytes()
    }

    /// What is known of a workload.
    pub(crate) fn get(&self, key: &ObjectKey) -> Option<&WorkloadState> {
        self.workloads.get(key).map(|entry| &entry.state)
    }

    /// The workload at `now`, with the replicas of a request that may have been carried out.
    pub(crate) fn at(&self, key: &ObjectKey, now: Timestamp) -> Option<WorkloadState> {
        let entry = self.workloads.get(key)?;
        let mut state = entry.state.clone();
        let requests = entry.scale_downs.iter().flatten();
        let open = requests.filter(|request| request.is_open(&entry.state, now));
        for request in open {
            state.lowest_replicas = state.lowest_replicas.min(request.replicas);
        }
        Some(state)
    }

    /// A request to scale down is about to be sent.
    pub(crate) fn observe_scale_down(&mut self, key: &ObjectKey, request: ScaleDown) {
        if let Some(entry) = self.workloads.get_mut(key) {
            let [latest, earlier] = entry.scale_downs;
            let same = |other: &ScaleDown| {
                other.uid == request.uid && other.generation == request.generation
            };
            let open = [latest, earlier].into_iter().flatten().filter(same);
            let earlier = open.reduce(|one, other| ScaleDown {
                replicas: one.replicas.min(other.replicas),
                until: one.until.max(other.until),
                ..one
            });
            entry.scale_downs = [Some(request), earlier];
        }
    }

    /// The member has rejected the latest request to scale down.
    pub(crate) fn observe_rejected_scale_down(
        &mut self,
        key: &ObjectKey,
        uid: Uid,
        generation: i64,
    ) {
        if let Some(entry) = self.workloads.get_mut(key) {
            let [latest, _] = &mut entry.scale_downs;
            latest.take_if(|request| request.uid == uid && request.generation == generation);
        }
    }

    /// All workloads, in the order of their keys.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&ObjectKey, &WorkloadState)> {
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
    ) -> Vec<(ObjectKey, WorkloadChange)> {
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

    /// Applies a state from the list or the watch. Returns what changed.
    pub(crate) fn apply(&mut self, mut state: WorkloadState) -> Option<WorkloadChange> {
        let version = ResourceVersion::parse(&state.resource_version);
        let (epoch, listing) = (self.epoch, self.listing);
        self.observe_version(version);
        if self.is_deleted(&state, version) {
            return None;
        }
        let reported = Status::of(&state);
        let Some(entry) = self.workloads.get_mut(&state.key) else {
            self.text_bytes += state.text_bytes();
            let entry = Entry {
                version,
                observed_in: Some(epoch),
                updated_in: epoch,
                scale_downs: [None; 2],
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
        entry.carry_lowest_replicas(&mut state);
        entry.close_scale_downs(&state);
        self.text_bytes -= entry.state.text_bytes();
        self.text_bytes += state.text_bytes();
        **entry = Entry {
            version,
            observed_in: Some(epoch),
            updated_in: epoch,
            scale_downs: entry.scale_downs,
            reported,
            state,
        };
        change
    }

    /// The watch shows that the workload was deleted, or no longer has our labels.
    pub(crate) fn delete(
        &mut self,
        key: &ObjectKey,
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
    pub(crate) fn observe_absence(&mut self, key: &ObjectKey, uid: Uid) {
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

    /// Applies the response to our own write, ahead of the watch.
    pub(crate) fn observe_write(&mut self, mut state: WorkloadState) {
        let version = ResourceVersion::parse(&state.resource_version);
        self.observe_version(version);
        if self.is_deleted_after_write(&state, version) {
            return;
        }
        let epoch = self.epoch;
        let Some(entry) = self.workloads.get_mut(&state.key) else {
            self.text_bytes += state.text_bytes();
            let entry = Entry {
                version,
                observed_in: None,
                updated_in: epoch,
                scale_downs: [None; 2],
                reported: Status::default(),
                state,
            };
            self.workloads
                .insert(entry.state.key.clone(), Box::new(entry));
            return;
        };
        if version.is_older_than(entry.version) {
            entry.apply_older(&state);
            return;
        }
        entry.carry_lowest_replicas(&mut state);
        entry.close_scale_downs(&state);
        self.text_bytes -= entry.state.text_bytes();
        self.text_bytes += state.text_bytes();
        entry.state = state;
        entry.version = version;
        entry.updated_in = epoch;
    }

    /// Our delete request for the object with this uid succeeded.
    pub(crate) fn observe_deletion(&mut self, key: &ObjectKey, uid: Uid) {
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

    fn remove(&mut self, key: &ObjectKey) {
        if let Some(entry) = self.workloads.remove(key) {
            self.text_bytes -= entry.state.text_bytes();
        }
    }

    fn add_tombstone(&mut self, uid: Uid, cause: Cause) {
        let epoch = self.epoch;
        self.deleted.insert(uid, Tombstone { cause, epoch });
    }

    /// Whether a state from the list or the watch is older than the deletion of its object. A deletion before the list that shows
    /// the object is forgotten: it was reported wrongly, or undone when the member was restored from a backup.
    fn is_deleted(&mut self, state: &WorkloadState, version: ResourceVersion) -> bool {
        let Some(tombstone) = self.deleted.get(state.id()) else {
            return false;
        };
        if self.listing && tombstone.epoch != self.epoch {
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
            || old.has_controller != state.has_controller;
        if drifted {
            Some(WorkloadChange::Drift)
        } else if status.available > self.reported.available {
            Some(WorkloadChange::MoreAvailable)
        } else {
            let says_something_else =
                old.replica_failure != state.replica_failure || old.deletion != state.deletion;
            (*status != self.reported || says_something_else).then_some(WorkloadChange::Status)
        }
    }

    /// Keeps the lowest replicas in the newer state until the member's controller has caught up with it.
    fn carry_lowest_replicas(&self, newer: &mut WorkloadState) {
        let caught_up = newer.observed_generation >= newer.generation;
        newer.lowest_replicas = if caught_up || newer.uid != self.state.uid {
            newer.replicas
        } else {
            let requests = self.scale_downs.iter().flatten();
            let requests = requests.filter(|request| request.uid == newer.id());
            let requested = requests.map(|request| request.replicas).min();
            newer
                .replicas
                .min(self.state.lowest_replicas)
                .min(requested.unwrap_or(u32::MAX))
        };
    }

    /// Forgets the requests that the newer state makes fail: also after the member was restored to an earlier generation.
    fn close_scale_downs(&mut self, newer: &WorkloadState) {
        for request in &mut self.scale_downs {
            request.take_if(|request| {
                request.uid == newer.id() && request.generation < newer.generation
            });
        }
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
#[path = "workload_table_tests.rs"]
mod tests;
