//! Counts of pods by the workload that owns them, updated in O(1) for each event.

use std::collections::{BTreeMap, HashMap};

use fedrs_api::ObjectKey;
use reflector::Uid;

use crate::{
    pod::{OwnerId, PodEntry, PodState},
    unix_seconds::UnixSeconds,
    workload::PodCounts,
};

/// The scheduler's message names nodes and reasons; longer ones are cut.
const MAX_MESSAGE_CHARS: usize = 256;

/// The owners that have pods.
#[derive(Debug, Default)]
pub(crate) struct Owners {
    ids: HashMap<Uid, OwnerId>,
    slots: Vec<Owner>,
    free: Vec<OwnerId>,
}

#[derive(Debug)]
struct Owner {
    uid: Uid,
    /// The workload to check: namespace and label of the pods.
    key: ObjectKey,
    pods: u32,
    ready: u32,
    unscheduled: u32,
    terminating: u32,
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

    fn slot(&mut self, id: OwnerId) -> &mut Owner {
        &mut self.slots[id.0 as usize]
    }

    pub(crate) fn key(&self, id: OwnerId) -> ObjectKey {
        self.slots[id.0 as usize].key.clone()
    }

    /// The owner with this uid, and the key from its newest pod.
    pub(crate) fn get_or_insert(&mut self, uid: Uid, namespace: &str, label: &str) -> OwnerId {
        if let Some(id) = self.ids.get(&uid).copied() {
            let key = &mut self.slot(id).key;
            if &*key.namespace != namespace || &*key.name != label {
                *key = ObjectKey::new(namespace, label);
            }
            return id;
        }
        let owner = Owner::new(uid, ObjectKey::new(namespace, label));
        let id = if let Some(id) = self.free.pop() {
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

    /// Adds a pod to the counts of its owner.
    pub(crate) fn add(&mut self, pod: &PodEntry) {
        let owner = self.slot(pod.owner);
        owner.pods += 1;
        if pod.state() != PodState::Terminating {
            *owner.by_template.entry(pod.template).or_default() += 1;
        }
        match pod.state() {
            PodState::Terminating => owner.terminating += 1,
            PodState::Ready => owner.ready += 1,
            PodState::NotReady => {}
            PodState::Unscheduled(since) => {
                owner.unscheduled += 1;
                *owner.unscheduled_since.entry(since).or_default() += 1;
            }
        }
    }

    /// Subtracts a pod from the counts of its owner; removes the owner with its last pod. Returns the owner's key.
    pub(crate) fn subtract(&mut self, pod: &PodEntry) -> ObjectKey {
        let owner = self.slot(pod.owner);
        owner.pods -= 1;
        if pod.state() != PodState::Terminating {
            subtract_one(&mut owner.by_template, &pod.template);
        }
        match pod.state() {
            PodState::Terminating => owner.terminating -= 1,
            PodState::Ready => owner.ready -= 1,
            PodState::NotReady => {}
            PodState::Unscheduled(since) => owner.subtract_unscheduled(since),
        }
        let (uid, key, pods) = (owner.uid, owner.key.clone(), owner.pods);
        if pods == 0 {
            self.ids.remove(&uid);
            self.free.push(pod.owner);
        }
        key
    }

    /// Keeps the scheduler's message about one of the owner's pods.
    pub(crate) fn set_unscheduled_message(&mut self, id: OwnerId, message: Option<Box<str>>) {
        let Some(mut message) = message else { return };
        if let Some((end, _)) = message.char_indices().nth(MAX_MESSAGE_CHARS) {
            message = message[..end].into();
        }
        self.slot(id).unscheduled_message = Some(message);
    }
}

impl Owner {
    fn new(uid: Uid, key: ObjectKey) -> Self {
        Self {
            uid,
            key,
            pods: 0,
            ready: 0,
            unscheduled: 0,
            terminating: 0,
            by_template: BTreeMap::new(),
            unscheduled_since: BTreeMap::new(),
            unscheduled_message: None,
        }
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
            unscheduled: self.unscheduled,
            terminating: self.terminating,
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
            unscheduled_message: self.unscheduled_message.as_deref().map(str::to_owned),
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
}
