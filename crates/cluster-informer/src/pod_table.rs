//! The pods of one member cluster. Each event subtracts the old entry from the counts of its workload and adds the new one.
//!
//! A pod belongs to the workload that is its *controller by uid*: pods of a copied workload, or of an earlier one with
//! the same name, never count. The label only says which workload to check. The controller of a Deployment's pods is a
//! ReplicaSet; the module `owned_sets` says how its counts become those of the Deployment.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use jiff::Timestamp;
use parking_lot::RwLock;
use planted_bugs::{PlantedBug, is_planted};
use reflector::{ResourceVersion, Uid};

use crate::{
    change::WorkloadChange,
    nodes::{Changed, NodeState, NodeTable},
    owners::{Owners, PodOwner},
    pod::{PackedPodState, PodEntry, PodObject, PodState},
    server_clock::ServerClock,
    workload::PodCounts,
    workload_table::MAX_WORKLOADS,
};

/// The pods of a member: Kubernetes supports as many in a cluster.
pub(crate) const MAX_PODS: usize = 150_000;

/// Pods by uid, and counts by their owners.
#[derive(Debug, Default)]
pub struct PodTable {
    pods: HashMap<Uid, PodEntry>,
    owners: Owners,
    /// Of the whole member. Locked after the table, and never across a change of another one.
    nodes: Arc<RwLock<NodeTable>>,
    /// The member's clock, while the pods are listed.
    clock: ServerClock,
    /// The number of the newest list; entries of an earlier one were not seen since it began.
    epoch: u32,
}

impl PodTable {
    /// No pods, on `nodes`.
    pub(crate) fn on(nodes: Arc<RwLock<NodeTable>>) -> Self {
        let mut table = Self::default();
        table.nodes = nodes;
        table
    }

    /// The number of pods.
    pub fn len(&self) -> usize {
        self.pods.len()
    }

    /// Whether the limit for a member is reached.
    pub(crate) fn is_full(&self) -> bool {
        let owners = self.owners.len();
        self.pods.len() >= MAX_PODS || owners >= MAX_WORKLOADS || self.nodes.read().is_full()
    }

    /// The bytes that it takes, also of what is free in it.
    pub(crate) fn bytes(&self) -> usize {
        // A table is 7/8 full at most, and has a control byte for each entry.
        let slots = self.pods.capacity() * 8 / 7;
        slots * (size_of::<(Uid, PodEntry)>() + 1) + self.owners.bytes()
    }

    /// Whether there are no pods.
    pub fn is_empty(&self) -> bool {
        self.pods.is_empty()
    }

    /// Counts of the pods whose controller has this uid.
    pub fn counts(&self, owner: Uid) -> PodCounts {
        self.owners.counts(owner)
    }

    /// A list begins: [`end_list`](Self::end_list) removes the pods that it does not contain.
    pub fn begin_list(&mut self) {
        self.epoch = self.epoch.wrapping_add(1);
    }

    /// A page of the list arrives, with this header `Date`.
    pub(crate) fn begin_page(&mut self, date: Option<&str>) {
        self.clock.begin_page(date);
    }

    /// The list is complete: removes the pods that it did not contain. Returns the owners that lost pods.
    pub fn end_list(&mut self) -> BTreeSet<PodOwner> {
        let Self {
            pods,
            owners,
            nodes,
            clock,
            epoch,
        } = self;
        clock.end_list();
        let mut nodes = nodes.write();
        let mut lost = BTreeSet::new();
        pods.retain(|_, pod| {
            let seen = pod.epoch == *epoch || is_planted(PlantedBug::DeletionLostInRelist);
            if !seen {
                lost.insert(owners.subtract(pod, nodes.state(pod.node())));
                detach(&mut nodes, pod);
            }
            seen
        });
        lost
    }

    /// Forgets all pods.
    pub(crate) fn clear(&mut self) {
        let mut nodes = self.nodes.write();
        for pod in std::mem::take(&mut self.pods).values() {
            detach(&mut nodes, pod);
        }
        self.owners = Owners::default();
    }

    /// Counts the pods on nodes that have changed anew. Returns what changed for which owner.
    pub(crate) fn recount(&mut self, changed: &Changed) -> Vec<(PodOwner, WorkloadChange)> {
        if changed.is_empty() {
            return Vec::new();
        }
        let nodes = self.nodes.read();
        let mut owners = BTreeMap::new();
        for pod in self.pods.values() {
            if let Some(before) = pod.node().and_then(|node| changed.get(&node)) {
                let now = nodes.state(pod.node());
                self.owners.add(pod, now);
                let owner = self.owners.subtract(pod, *before);
                owners.insert(owner, change_of_node(now));
            }
        }
        owners.into_iter().collect()
    }

    /// Applies the state of a pod at `now`. Returns what changed for which owner.
    ///
    /// Ignores an event older than the entry. A list overrides the entry: its request came after all that is known.
    pub fn apply(&mut self, mut pod: PodObject, now: Timestamp) -> Vec<(PodOwner, WorkloadChange)> {
        let uid = pod.metadata.uid;
        let version = ResourceVersion::parse(&pod.metadata.resource_version);
        let old = self.pods.get(&uid).copied();
        if self.is_outdated(old, version) {
            return Vec::new();
        }
        let began = |since| match old.map(|old| old.state()) {
            Some(PodState::Unscheduled(since)) => since.timestamp(),
            _ => self.clock.began(since, now),
        };
        let (Some(owner), Some(state)) =
            (pod.metadata.owner_references.controller, pod.state(began))
        else {
            return self.remove(uid).into_iter().collect();
        };
        let label = pod.metadata.labels.replica_set.as_deref();
        let label = label.unwrap_or_default();
        let owner = self
            .owners
            .get_or_insert(owner, &pod.metadata.namespace, label);
        let mut nodes = self.nodes.write();
        let node = pod.node_name().map(|name| nodes.attach(name));
        let entry = PodEntry {
            version,
            owner,
            epoch: self.epoch,
            template: pod.metadata.annotations.template,
            state: PackedPodState::new(state, node),
        };
        self.owners.add(&entry, nodes.state(entry.node()));
        if let (PodState::Draining, Some(since)) = (state, pod.metadata.annotations.draining) {
            self.owners.set_draining_since(owner, since);
        }
        if let PodState::Unscheduled(_) = state {
            let message = pod.take_unscheduled_message();
            self.owners.set_unscheduled_message(owner, message);
        }
        let mut changes = Vec::new();
        let is_same = |old: PodEntry| {
            old.owner == owner && old.state == entry.state && old.template == entry.template
        };
        if !old.is_some_and(is_same) {
            changes.push((self.owners.get(owner), change_to(state)));
        }
        if let Some(old) = self.pods.insert(uid, entry) {
            let former = self.owners.subtract(&old, nodes.state(old.node()));
            detach(&mut nodes, &old);
            if old.owner != owner {
                changes.push((former, WorkloadChange::Pods));
            }
        }
        changes
    }

    /// A pod was deleted, or no longer has our labels.
    pub fn delete(
        &mut self,
        uid: Uid,
        resource_version: &str,
    ) -> Option<(PodOwner, WorkloadChange)> {
        let old = self.pods.get(&uid).copied();
        if self.is_outdated(old, ResourceVersion::parse(resource_version)) {
            return None;
        }
        self.remove(uid)
    }

    /// A pod exists and can't be read: keeps its entry.
    pub fn keep(&mut self, uid: Uid) {
        let epoch = self.epoch;
        if let Some(pod) = self.pods.get_mut(&uid) {
            pod.epoch = epoch;
        }
    }

    fn is_outdated(&self, old: Option<PodEntry>, version: ResourceVersion) -> bool {
        old.is_some_and(|old| old.epoch == self.epoch && version.is_older_than(old.version))
    }

    fn remove(&mut self, uid: Uid) -> Option<(PodOwner, WorkloadChange)> {
        let pod = self.pods.remove(&uid)?;
        let mut nodes = self.nodes.write();
        let owner = self.owners.subtract(&pod, nodes.state(pod.node()));
        detach(&mut nodes, &pod);
        Some((owner, WorkloadChange::Pods))
    }
}

/// The nodes live longer than the pods of a namespace that is watched no more.
impl Drop for PodTable {
    fn drop(&mut self) {
        self.clear();
    }
}

fn detach(nodes: &mut NodeTable, pod: &PodEntry) {
    if let Some(node) = pod.node() {
        nodes.detach(node);
    }
}

fn change_of_node(now: NodeState) -> WorkloadChange {
    match now {
        NodeState::Ready => WorkloadChange::MoreAvailable,
        NodeState::Unconfirmed => WorkloadChange::Pods,
        NodeState::NotReady(since) => WorkloadChange::PodUnscheduled {
            since: since.timestamp(),
        },
    }
}

fn change_to(state: PodState) -> WorkloadChange {
    match state {
        PodState::Unscheduled(since) => WorkloadChange::PodUnscheduled {
            since: since.timestamp(),
        },
        _ => WorkloadChange::Pods,
    }
}

#[cfg(test)]
#[path = "pod_table_tests.rs"]
mod tests;
