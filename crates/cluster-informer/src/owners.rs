//! Counts of pods by the workload that owns them, updated in O(1) for each event.

use std::collections::{BTreeMap, HashMap};

use fedrs_api::WorkloadKey;
use reflector::{Uid, printable};

use crate::{
    nodes::NodeState,
    pod::{OwnerId, PodEntry, PodState},
    unix_seconds::UnixSeconds,
    workload::PodCounts,
};

/// The message for pods whose node is not ready, unless the scheduler has a message for other pods.
const NODE_NOT_READY: &str = "the node is not ready";

/// How a pod counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Terminating,
    Ready,
    NotReady,
    /// It is ready according to its status, and its node has not confirmed that.
    Doubtful,
    Unscheduled(UnixSeconds),
    /// Its node is not ready since then. It counts as a pod without a node.
    Stranded {
        since: UnixSeconds,
        says_ready: bool,
    },
}

impl Class {
    fn of(pod: PodState, node: NodeState) -> Self {
        let says_ready = matches!(pod, PodState::Ready | PodState::Draining);
        match (pod, node) {
            (PodState::Terminating, _) => Self::Terminating,
            (PodState::Unscheduled(since), _) => Self::Unscheduled(since),
            (_, NodeState::NotReady(since)) => Self::Stranded { since, says_ready },
            (PodState::NotReady, _) => Self::NotReady,
            (PodState::Ready | PodState::Draining, NodeState::Unconfirmed) => Self::Doubtful,
            (PodState::Ready | PodState::Draining, NodeState::Ready) => Self::Ready,
        }
    }
}

/// The controller of pods.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodOwner {
    /// The workload that the label of its newest pod names. A ReplicaSet of a Deployment has another name.
    pub key: WorkloadKey,
    /// Its uid.
    pub uid: Uid,
}

/// The owners that have pods.
#[derive(Debug, Default)]
pub(crate) struct Owners {
    ids: HashMap<Uid, OwnerId>,
    slots: Vec<Owner>,
    free: Vec<OwnerId>,
    /// The bytes of the texts of all slots.
    text_bytes: usize,
}

/// What an owner takes without its texts: also its id, and the first nodes of its maps.
const OWNER_BYTES: usize = size_of::<Owner>() + 300;

#[derive(Debug)]
struct Owner {
    uid: Uid,
    /// The workload to check: namespace and label of the pods.
    key: WorkloadKey,
    pods: u32,
    ready: u32,
    doubtful: u32,
    unscheduled: u32,
    /// The number of unscheduled pods that are bound to a node that is not ready.
    stranded: u32,
    terminating: u32,
    /// The number of draining pods.
    draining: u32,
    /// When the last of them began to drain.
    draining_since: UnixSeconds,
    /// Active pods by the hash of their template.
    by_template: BTreeMap<u32, u32>,
    unscheduled_since: BTreeMap<UnixSeconds, u32>,
    unscheduled_message: Option<Box<str>>,
}

impl Owners {
    pub(crate) fn counts(&self, uid: Uid) -> PodCounts {
        self.ids
            .get(&uid)
            .map_or_else(PodCounts::default, |id| self.slots[id.0 as usize].counts())
    }

    /// The bytes that they take, also of what is free.
    pub(crate) fn bytes(&self) -> usize {
        self.slots.len() * OWNER_BYTES + self.text_bytes
    }

    /// The number of owners.
    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    fn slot(&mut self, id: OwnerId) -> &mut Owner {
        &mut self.slots[id.0 as usize]
    }

    pub(crate) fn get(&self, id: OwnerId) -> PodOwner {
        self.slots[id.0 as usize].as_pod_owner()
    }

    /// The owner with this uid, and the key from its newest pod.
    pub(crate) fn get_or_insert(&mut self, uid: Uid, namespace: &str, label: &str) -> OwnerId {
        if let Some(id) = self.ids.get(&uid).copied() {
            let owner = &mut self.slots[id.0 as usize];
            if &*owner.key.namespace != namespace || &*owner.key.name != label {
                self.text_bytes -= owner.text_bytes();
                owner.key = WorkloadKey::new(namespace, label);
                self.text_bytes += owner.text_bytes();
            }
            return id;
        }
        let owner = Owner::new(uid, WorkloadKey::new(namespace, label));
        self.text_bytes += owner.text_bytes();
        let id = if let Some(id) = self.free.pop() {
            self.text_bytes -= self.slot(id).text_bytes();
            *self.slot(id) = owner;
            id
        } else {
            self.slots.push(owner);
            OwnerId(
                u32::try_from(self.slots.len() - 1)
                    .expect("fewer than 2^32 workloads in a cluster"),
            )
        };
        self.ids.insert(uid, id);
        id
    }

    /// Adds a pod, whose node is in this state, to the counts of its owner.
    pub(crate) fn add(&mut self, pod: &PodEntry, node: NodeState) {
        let owner = self.slot(pod.owner);
        owner.pods += 1;
        if pod.state() != PodState::Terminating {
            *owner.by_template.entry(pod.template).or_default() += 1;
        }
        owner.draining += u32::from(pod.state() == PodState::Draining);
        match Class::of(pod.state(), node) {
            Class::Terminating => owner.terminating += 1,
            Class::Ready => owner.ready += 1,
            Class::Doubtful => owner.doubtful += 1,
            Class::NotReady => {}
            Class::Unscheduled(since) => owner.add_unscheduled(since),
            Class::Stranded { since, says_ready } => {
                owner.stranded += 1;
                owner.doubtful += u32::from(says_ready);
                owner.add_unscheduled(since);
            }
        }
    }

    /// Subtracts a pod, which was added with its node in this state; removes the owner with its last pod. Returns the owner.
    pub(crate) fn subtract(&mut self, pod: &PodEntry, node: NodeState) -> PodOwner {
        let owner = &mut self.slots[pod.owner.0 as usize];
        self.text_bytes -= owner.text_bytes();
        owner.pods -= 1;
        if pod.state() != PodState::Terminating {
            subtract_one(&mut owner.by_template, &pod.template);
        }
        owner.draining -= u32::from(pod.state() == PodState::Draining);
        match Class::of(pod.state(), node) {
            Class::Terminating => owner.terminating -= 1,
            Class::Ready => owner.ready -= 1,
            Class::Doubtful => owner.doubtful -= 1,
            Class::NotReady => {}
            Class::Unscheduled(since) => owner.subtract_unscheduled(since),
            Class::Stranded { since, says_ready } => {
                owner.stranded -= 1;
                owner.doubtful -= u32::from(says_ready);
                owner.subtract_unscheduled(since);
            }
        }
        self.text_bytes += owner.text_bytes();
        let (pods, owner) = (owner.pods, owner.as_pod_owner());
        if pods == 0 {
            self.ids.remove(&owner.uid);
            self.free.push(pod.owner);
        }
        owner
    }

    /// A pod of the owner has drained since then.
    pub(crate) fn set_draining_since(&mut self, id: OwnerId, since: UnixSeconds) {
        let owner = self.slot(id);
        // The pod counts already.
        owner.draining_since = match owner.draining {
            0 | 1 => since,
            _ => owner.draining_since.max(since),
        };
    }

    /// Keeps the scheduler's message about one of the owner's pods.
    pub(crate) fn set_unscheduled_message(&mut self, id: OwnerId, message: Option<Box<str>>) {
        let Some(message) = message else { return };
        let owner = &mut self.slots[id.0 as usize];
        self.text_bytes -= owner.text_bytes();
        owner.unscheduled_message = Some(printable(&message).into());
        self.text_bytes += owner.text_bytes();
    }
}

impl Owner {
    fn new(uid: Uid, key: WorkloadKey) -> Self {
        Self {
            uid,
            key,
            pods: 0,
            ready: 0,
            doubtful: 0,
            unscheduled: 0,
            stranded: 0,
            terminating: 0,
            draining: 0,
            draining_since: UnixSeconds(0),
            by_template: BTreeMap::new(),
            unscheduled_since: BTreeMap::new(),
            unscheduled_message: None,
        }
    }

    fn as_pod_owner(&self) -> PodOwner {
        PodOwner {
            key: self.key.clone(),
            uid: self.uid,
        }
    }

    fn text_bytes(&self) -> usize {
        let message = self.unscheduled_message.as_ref();
        self.key.namespace.len() + self.key.name.len() + message.map_or(0, |text| text.len())
    }

    fn add_unscheduled(&mut self, since: UnixSeconds) {
        self.unscheduled += 1;
        *self.unscheduled_since.entry(since).or_default() += 1;
    }

    fn subtract_unscheduled(&mut self, since: UnixSeconds) {
        self.unscheduled -= 1;
        subtract_one(&mut self.unscheduled_since, &since);
        if self.unscheduled == 0 {
            self.unscheduled_message = None;
        }
    }

    fn counts(&self) -> PodCounts {
        PodCounts {
            active: self.pods - self.terminating,
            ready: self.ready,
            doubtful: self.doubtful,
            unscheduled: self.unscheduled,
            terminating: self.terminating,
            draining: self.draining,
            draining_since: (self.draining > 0).then(|| self.draining_since.timestamp()),
            by_template: self
                .by_template
                .iter()
                .map(|(template, count)| (*template, *count))
                .collect(),
            unscheduled_since: self
                .unscheduled_since
                .iter()
                .map(|(since, count)| (since.timestamp(), *count))
                .collect(),
            unscheduled_message: self
                .unscheduled_message
                .as_deref()
                .or((self.stranded > 0).then_some(NODE_NOT_READY))
                .map(str::to_owned),
        }
    }
}

/// Subtracts one pod from those counted under `key`.
fn subtract_one<K: Ord>(counts: &mut BTreeMap<K, u32>, key: &K) {
    let count = counts.get_mut(key).expect("each pod was added before");
    *count -= 1;
    if *count == 0 {
        counts.remove(key);
    }
}

#[cfg(test)]
impl Owners {
    pub(crate) fn each_slot_is_used_or_free(&self) -> bool {
        self.ids.len() + self.free.len() == self.slots.len()
    }

    pub(crate) fn all_texts_are_counted(&self) -> bool {
        self.slots.iter().map(Owner::text_bytes).sum::<usize>() == self.text_bytes
    }
}
