//! The pods of one member as facts, and counts over those of each local set, kept in O(1) per event: the old
//! fact's contribution is subtracted, the new one's added.
//!
//! A pod belongs to the set that is its *controller owner by uid*: pods of a copied set, or of an earlier set
//! with the same name, never count. The set's label only tells whom to notify.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use fedrs_api::SetKey;
use jiff::Timestamp;
use reflector::{ResourceVersion, Uid};

use crate::{
    pod_fact::{PodFact, PodObject, Standing},
    view::{Change, PodCounts},
    wire::Seconds,
};

/// The scheduler's message names nodes and reasons; longer ones are cut.
const MAX_MESSAGE_CHARS: usize = 256;

/// Place of an owner in the list of owners: 4 bytes in each pod's fact instead of a uid of 16.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OwnerId(u32);

/// Pods by uid, and counts by their owners.
#[derive(Debug, Default)]
pub struct PodTable {
    pods: HashMap<Uid, PodFact>,
    owners: Owners,
    /// Number of the newest list; facts of an earlier one were not seen since.
    epoch: u32,
}

impl PodTable {
    /// How many pods are kept.
    pub fn len(&self) -> usize {
        self.pods.len()
    }

    /// Whether no pod is kept.
    pub fn is_empty(&self) -> bool {
        self.pods.is_empty()
    }

    /// Counts over the pods whose controller owner has this uid.
    pub fn counts(&self, owner: Uid) -> PodCounts {
        self.owners
            .get(owner)
            .map(Owner::counts)
            .unwrap_or_default()
    }

    /// A list begins: facts that it doesn't show are swept by [`listed`](Self::listed).
    pub fn restarted(&mut self) {
        self.epoch = self.epoch.wrapping_add(1);
    }

    /// The list is complete: removes what it didn't show. The keys that lost pods, in order.
    pub fn listed(&mut self) -> BTreeSet<SetKey> {
        let Self {
            pods,
            owners,
            epoch,
        } = self;
        let mut lost = BTreeSet::new();
        pods.retain(|_, fact| {
            let seen = fact.epoch == *epoch;
            if !seen {
                lost.insert(owners.subtract(fact));
            }
            seen
        });
        lost
    }

    /// Takes in a pod as it is at `now`; what that changed, for whom.
    ///
    /// An event older than the fact is ignored; a list is believed, as it was asked for after all that was known.
    pub fn applied(&mut self, mut pod: PodObject, now: Timestamp) -> Vec<(SetKey, Change)> {
        let uid = pod.metadata.uid;
        let version = ResourceVersion::parse(&pod.metadata.resource_version);
        let old = self.pods.get(&uid).copied();
        if self.is_outdated(old, version) {
            return Vec::new();
        }
        let (Some(owner), Some(standing)) = (pod.metadata.owner_references.0, pod.standing(now))
        else {
            return self.take_out(uid).into_iter().collect();
        };
        let label = pod.metadata.labels.set.as_deref().unwrap_or_default();
        let owner = self.owners.named(owner, &pod.metadata.namespace, label);
        let fact = PodFact {
            version,
            owner,
            epoch: self.epoch,
            template: pod.metadata.annotations.0,
            standing: standing.into(),
        };
        self.owners.add(&fact);
        if let Standing::Unscheduled(_) = standing {
            self.owners.keep_message(owner, pod.waiting_message());
        }
        let mut changes = Vec::new();
        if !old.is_some_and(|old| old.owner == owner && old.standing() == standing) {
            changes.push((self.owners.key(owner), change_to(standing)));
        }
        if let Some(old) = self.pods.insert(uid, fact) {
            let former = self.owners.subtract(&old);
            if old.owner != owner {
                changes.push((former, Change::PodChanged));
            }
        }
        changes
    }

    /// A pod is gone, or no longer has our labels.
    pub fn deleted(&mut self, uid: Uid, resource_version: &str) -> Option<(SetKey, Change)> {
        let old = self.pods.get(&uid).copied();
        if self.is_outdated(old, ResourceVersion::parse(resource_version)) {
            return None;
        }
        self.take_out(uid)
    }

    /// A pod was shown that can't be read: what is known of it stays.
    pub fn kept(&mut self, uid: Uid) {
        let epoch = self.epoch;
        if let Some(fact) = self.pods.get_mut(&uid) {
            fact.epoch = epoch;
        }
    }

    fn is_outdated(&self, old: Option<PodFact>, version: ResourceVersion) -> bool {
        old.is_some_and(|old| old.epoch == self.epoch && version.is_older_than(old.version))
    }

    fn take_out(&mut self, uid: Uid) -> Option<(SetKey, Change)> {
        let fact = self.pods.remove(&uid)?;
        Some((self.owners.subtract(&fact), Change::PodChanged))
    }
}

fn change_to(standing: Standing) -> Change {
    match standing {
        Standing::Unscheduled(since) => Change::PodWaiting {
            since: since.timestamp(),
        },
        _ => Change::PodChanged,
    }
}

/// Owners that have pods.
#[derive(Debug, Default)]
struct Owners {
    ids: HashMap<Uid, OwnerId>,
    slots: Vec<Owner>,
    free: Vec<OwnerId>,
}

#[derive(Debug)]
struct Owner {
    uid: Uid,
    /// Whom to notify: namespace and label of the pods.
    key: SetKey,
    pods: u32,
    ready: u32,
    unscheduled: u32,
    terminating: u32,
    /// Of those that are not terminating.
    templates: BTreeMap<u32, u32>,
    waiting: BTreeMap<Seconds, u32>,
    message: Option<Box<str>>,
}

impl Owners {
    fn get(&self, uid: Uid) -> Option<&Owner> {
        self.ids.get(&uid).map(|id| &self.slots[id.0 as usize])
    }

    fn slot(&mut self, id: OwnerId) -> &mut Owner {
        &mut self.slots[id.0 as usize]
    }

    fn key(&self, id: OwnerId) -> SetKey {
        self.slots[id.0 as usize].key.clone()
    }

    /// The owner's place, with the key by which its newest pod wants it notified.
    fn named(&mut self, uid: Uid, namespace: &str, label: &str) -> OwnerId {
        if let Some(id) = self.ids.get(&uid).copied() {
            let key = &mut self.slot(id).key;
            if &*key.namespace != namespace || &*key.name != label {
                *key = SetKey::new(namespace, label);
            }
            return id;
        }
        let owner = Owner::new(uid, SetKey::new(namespace, label));
        let id = if let Some(id) = self.free.pop() {
            *self.slot(id) = owner;
            id
        } else {
            self.slots.push(owner);
            OwnerId(u32::try_from(self.slots.len() - 1).expect("fewer than 2^32 sets in a member"))
        };
        self.ids.insert(uid, id);
        id
    }

    fn add(&mut self, fact: &PodFact) {
        let owner = self.slot(fact.owner);
        owner.pods += 1;
        if fact.standing() != Standing::Terminating {
            *owner.templates.entry(fact.template).or_default() += 1;
        }
        match fact.standing() {
            Standing::Terminating => owner.terminating += 1,
            Standing::Ready => owner.ready += 1,
            Standing::NotReady => {}
            Standing::Unscheduled(since) => {
                owner.unscheduled += 1;
                *owner.waiting.entry(since).or_default() += 1;
            }
        }
    }

    /// Takes a pod's contribution away, and the owner with its last pod. The owner's key.
    fn subtract(&mut self, fact: &PodFact) -> SetKey {
        let owner = self.slot(fact.owner);
        owner.pods -= 1;
        if fact.standing() != Standing::Terminating {
            take_one(&mut owner.templates, &fact.template);
        }
        match fact.standing() {
            Standing::Terminating => owner.terminating -= 1,
            Standing::Ready => owner.ready -= 1,
            Standing::NotReady => {}
            Standing::Unscheduled(since) => owner.subtract_waiting(since),
        }
        let (uid, key, pods) = (owner.uid, owner.key.clone(), owner.pods);
        if pods == 0 {
            self.ids.remove(&uid);
            self.free.push(fact.owner);
        }
        key
    }

    fn keep_message(&mut self, id: OwnerId, message: Option<Box<str>>) {
        let Some(mut message) = message else { return };
        if let Some((end, _)) = message.char_indices().nth(MAX_MESSAGE_CHARS) {
            message = message[..end].into();
        }
        self.slot(id).message = Some(message);
    }
}

impl Owner {
    fn new(uid: Uid, key: SetKey) -> Self {
        Self {
            uid,
            key,
            pods: 0,
            ready: 0,
            unscheduled: 0,
            terminating: 0,
            templates: BTreeMap::new(),
            waiting: BTreeMap::new(),
            message: None,
        }
    }

    fn subtract_waiting(&mut self, since: Seconds) {
        self.unscheduled -= 1;
        take_one(&mut self.waiting, &since);
        if self.unscheduled == 0 {
            self.message = None;
        }
    }

    fn counts(&self) -> PodCounts {
        PodCounts {
            present: self.pods - self.terminating,
            ready: self.ready,
            unscheduled: self.unscheduled,
            terminating: self.terminating,
            templates: self
                .templates
                .iter()
                .map(|(template, count)| (*template, *count))
                .collect(),
            waiting: self
                .waiting
                .iter()
                .map(|(since, count)| (since.timestamp(), *count))
                .collect(),
            waiting_message: self.message.as_deref().map(str::to_owned),
        }
    }
}

/// Takes a pod out of those that are counted under `key`.
fn take_one<K: Ord>(counts: &mut BTreeMap<K, u32>, key: &K) {
    let count = counts.get_mut(key).expect("added when the fact was");
    *count -= 1;
    if *count == 0 {
        counts.remove(key);
    }
}

#[cfg(test)]
#[path = "counts_tests.rs"]
mod tests;
