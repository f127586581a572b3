//! The nodes of one member cluster: their sums, and whether the pods on each of them run.
//!
//! ```text
//! ready --not ready--> its pods count as if they had no node since then --ready--> ready
//!   |
//!   '--the member returns from an outage--> unconfirmed: pods may be dead, although they say that they are ready
//!                                             |--its Lease, its heartbeat or its status changes--> ready
//!                                             '--none does for a minute--> not ready
//! ```

use std::collections::HashMap;

use jiff::Timestamp;
use planted_bugs::{PlantedBug, is_planted};

use crate::{
    cluster_info::{NodeInfo, NodeObject, NodeTotals},
    unix_seconds::UnixSeconds,
};

/// The nodes of a member: twice as many as Kubernetes supports in a cluster.
pub(crate) const MAX_NODES: usize = 10_000;

/// A node whose Lease or heartbeat has not changed for so long since the member returned is not ready, whatever the API server says:
/// kubelets renew theirs every 10 s, and the node controller waits for 50 s. It may not run.
pub(crate) const SILENCE: u32 = 60;

/// Index of a node: 28 bits in each pod's entry instead of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct NodeId(pub(crate) u32);

/// Whether the pods on a node can be relied on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeState {
    /// They run, as far as is known.
    Ready,
    /// The node has not reported since the member returned.
    Unconfirmed,
    /// The node is not ready since then, by our clock.
    NotReady(UnixSeconds),
}

/// Nodes with the state that they had before a change.
pub(crate) type Changed = HashMap<NodeId, NodeState>;

/// The nodes that exist, and those that pods name.
#[derive(Debug, Default)]
pub(crate) struct NodeTable {
    ids: HashMap<Box<str>, NodeId>,
    slots: Vec<Node>,
    free: Vec<NodeId>,
    info: NodeInfo,
    /// The number of the newest list.
    epoch: u32,
    listing: bool,
    /// Whether the nodes have to report before their pods count, because the member has returned.
    confirming: bool,
}

#[derive(Debug, Default)]
struct Node {
    name: Box<str>,
    /// The number of pods that name it.
    pods: u32,
    /// What the list says about it.
    listed: Option<Listed>,
    confirmed: bool,
    /// The hash of its first sign of life that was seen after the return, 0 without any; and when that was.
    first_sign: Option<(u64, UnixSeconds)>,
    /// Nothing has been heard of it for too long, as of then.
    silent_since: Option<UnixSeconds>,
}

#[derive(Clone, Copy, Debug)]
struct Listed {
    epoch: u32,
    not_ready_since: Option<UnixSeconds>,
    /// The hash of the heartbeat in its condition `Ready`, unless it may be from before the return.
    heartbeat: Option<u64>,
    totals: NodeTotals,
}

impl NodeTable {
    /// What is known of the nodes.
    pub(crate) fn info(&self) -> NodeInfo {
        self.info
    }

    /// Whether nodes have to report before their pods count.
    pub(crate) fn is_confirming(&self) -> bool {
        self.confirming
    }

    /// Whether the limit for a member is reached.
    pub(crate) fn is_full(&self) -> bool {
        self.ids.len() >= MAX_NODES
    }

    /// The node that a pod names; one more pod names it.
    pub(crate) fn attach(&mut self, name: &str) -> NodeId {
        let id = self.get_or_insert(name);
        self.slot(id).pods += 1;
        id
    }

    /// A pod that named the node is gone.
    pub(crate) fn detach(&mut self, id: NodeId) {
        self.slot(id).pods -= 1;
        self.free_unused(id);
    }

    /// The state of the node that a pod names, if it names one.
    pub(crate) fn state(&self, id: Option<NodeId>) -> NodeState {
        let Some(node) = id.map(|id| &self.slots[id.0 as usize]) else {
            return NodeState::Ready;
        };
        match node.listed.and_then(|listed| listed.not_ready_since) {
            Some(since) => NodeState::NotReady(since),
            None if self.confirming && !node.confirmed => node
                .silent_since
                .map_or(NodeState::Unconfirmed, NodeState::NotReady),
            None => NodeState::Ready,
        }
    }

    pub(crate) fn begin_list(&mut self) {
        self.epoch = self.epoch.wrapping_add(1);
        self.listing = true;
        if self.confirming {
            self.forget_signs();
        }
    }

    /// What is known of the nodes may be from before what is listed now, which may be from before the return.
    fn forget_signs(&mut self) {
        for node in &mut self.slots {
            node.first_sign = None;
            if let Some(listed) = &mut node.listed {
                listed.heartbeat = None;
            }
        }
    }

    /// The list is complete: forgets the nodes that it did not contain.
    pub(crate) fn end_list(&mut self) -> Changed {
        self.listing = false;
        let epoch = self.epoch;
        let gone = self
            .used()
            .filter(|(_, node)| node.listed.is_some_and(|listed| listed.epoch != epoch));
        let gone: Vec<NodeId> = gone.map(|(id, _)| id).collect();
        let changed = gone.into_iter().map(|id| self.forget(id)).collect();
        self.sum_up();
        changed
    }

    /// A node exists, which has been ready or not since then.
    pub(crate) fn apply(&mut self, object: &NodeObject, since: Timestamp) -> Changed {
        let id = self.get_or_insert(&object.metadata.name);
        let before = self.state(Some(id));
        let (epoch, listing) = (self.epoch, self.listing);
        let node = self.slot(id);
        let not_ready_since = node.listed.and_then(|listed| listed.not_ready_since);
        let is_ready = object.is_ready();
        // A list may show what the API server stored before the outage; a change shows that somebody has heard of the node.
        if is_ready && not_ready_since.is_some() && !listing {
            node.confirm();
        }
        let mut totals = NodeTotals::default();
        totals.add(object);
        node.listed = Some(Listed {
            epoch,
            not_ready_since: (!is_ready)
                .then(|| not_ready_since.unwrap_or_else(|| UnixSeconds::of(since))),
            heartbeat: object.heartbeat(),
            totals,
        });
        if !listing {
            self.sum_up();
        }
        self.changed(id, before)
    }

    /// A node was deleted.
    pub(crate) fn delete(&mut self, name: &str) -> Changed {
        let changed = self.ids.get(name).copied().map(|id| self.forget(id));
        self.sum_up();
        changed.into_iter().collect()
    }

    /// The controller may not list nodes: nothing is known of them.
    pub(crate) fn forbid(&mut self) -> Changed {
        let before = self.states();
        for id in before.keys() {
            self.forget(*id);
        }
        self.end_confirmation();
        self.info = NodeInfo::Forbidden;
        before
    }

    /// The member has returned: what its pods say may be from before its outage. Also if nodes were forbidden: the next
    /// response shows whether they still are.
    pub(crate) fn begin_confirmation(&mut self) -> Changed {
        if is_planted(PlantedBug::ReturnedPodsBelieved) {
            return Changed::new();
        }
        let before = self.states();
        self.confirming = true;
        self.forget_signs();
        for node in &mut self.slots {
            (node.confirmed, node.silent_since) = (false, None);
        }
        self.update_sums();
        before
    }

    /// All nodes that can report have reported, or the controller may not list them or their Leases.
    pub(crate) fn end_confirmation(&mut self) -> Changed {
        let before = self.states();
        self.confirming = false;
        self.update_sums();
        before
    }

    /// All Leases of nodes at `now`, by their names, with hashes of the times of their renewal. Returns whether every ready node
    /// is confirmed.
    pub(crate) fn observe_leases(
        &mut self,
        leases: &HashMap<Box<str>, u64>,
        now: Timestamp,
    ) -> (Changed, bool) {
        let (before, now) = (self.states(), UnixSeconds::of(now));
        for node in &mut self.slots {
            // Kubelets without Leases report their status as often.
            let heartbeat = || node.listed.and_then(|listed| listed.heartbeat);
            let sign = leases.get(&node.name).copied().or_else(heartbeat);
            if sign.is_none() && self.listing {
                continue;
            }
            let sign = sign.unwrap_or_default();
            let (first, since) = *node.first_sign.get_or_insert((sign, now));
            if first != sign {
                node.confirm();
            } else if now.0.saturating_sub(since.0) >= SILENCE {
                node.silent_since.get_or_insert(now);
            }
        }
        self.update_sums();
        let is_waiting = |(_, node): (NodeId, &Node)| {
            node.listed
                .is_some_and(|listed| listed.not_ready_since.is_none())
                && !node.confirmed
        };
        let is_known = matches!(self.info, NodeInfo::Known(_)) && !self.listing;
        let is_complete = !self.confirming || is_known && !self.used().any(is_waiting);
        (before, is_complete)
    }

    fn used(&self) -> impl Iterator<Item = (NodeId, &Node)> {
        let used = |node: &Node| node.pods > 0 || node.listed.is_some();
        let slots = (0..).map(NodeId).zip(&self.slots);
        slots.filter(move |(_, node)| used(node))
    }

    fn states(&self) -> Changed {
        self.used()
            .map(|(id, _)| (id, self.state(Some(id))))
            .collect()
    }

    fn changed(&self, id: NodeId, before: NodeState) -> Changed {
        let has_changed = self.state(Some(id)) != before;
        has_changed.then_some((id, before)).into_iter().collect()
    }

    fn forget(&mut self, id: NodeId) -> (NodeId, NodeState) {
        let before = self.state(Some(id));
        self.slot(id).listed = None;
        self.free_unused(id);
        (id, before)
    }

    fn sum_up(&mut self) {
        let listed = self.used().filter_map(|(id, node)| {
            let totals = node.listed?.totals;
            Some(match self.state(Some(id)) {
                NodeState::Ready => totals,
                NodeState::Unconfirmed => totals.unconfirmed(),
                NodeState::NotReady(_) => NodeTotals {
                    total: totals.total,
                    ..NodeTotals::default()
                },
            })
        });
        let totals = listed.fold(NodeTotals::default(), NodeTotals::plus);
        self.info = NodeInfo::Known(totals);
    }

    /// The state of nodes has changed.
    fn update_sums(&mut self) {
        if matches!(self.info, NodeInfo::Known(_)) && !self.listing {
            self.sum_up();
        }
    }

    fn slot(&mut self, id: NodeId) -> &mut Node {
        &mut self.slots[id.0 as usize]
    }

    fn get_or_insert(&mut self, name: &str) -> NodeId {
        if let Some(id) = self.ids.get(name) {
            return *id;
        }
        let node = Node {
            name: name.into(),
            ..Node::default()
        };
        let id = if let Some(id) = self.free.pop() {
            *self.slot(id) = node;
            id
        } else {
            self.slots.push(node);
            NodeId(u32::try_from(self.slots.len() - 1).expect("fewer than 2^28 nodes in a cluster"))
        };
        self.ids.insert(name.into(), id);
        id
    }

    fn free_unused(&mut self, id: NodeId) {
        let node = self.slot(id);
        if node.pods == 0 && node.listed.is_none() {
            let name = std::mem::take(&mut node.name);
            self.ids.remove(&name);
            self.free.push(id);
        }
    }
}

impl Node {
    /// The node has reported since the member returned.
    fn confirm(&mut self) {
        (self.confirmed, self.silent_since) = (true, None);
    }
}

#[cfg(test)]
impl NodeTable {
    pub(crate) fn state_of(&self, name: &str) -> NodeState {
        self.state(self.ids.get(name).copied())
    }
}

#[cfg(test)]
#[path = "nodes_tests.rs"]
mod tests;
