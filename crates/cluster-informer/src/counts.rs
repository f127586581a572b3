//! The pods of one member as facts, and counts over those of each local set, kept in O(1) per event: the old
//! fact's contribution is subtracted, the new one's added.
//!
//! A pod belongs to the set that is its *controller owner by uid*: pods of a copied set, or of an earlier set
//! with the same name, never count. The set's label only tells whom to notify.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use fedrs_api::SetKey;
use jiff::Timestamp;

use crate::{
    pod_fact::{PodFact, PodObject, Standing},
    view::{Change, PodCounts},
    wire::{Seconds, Uid, Version},
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
        let version = Version::of(&pod.metadata.resource_version);
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
            standing,
        };
        self.owners.add(&fact);
        if let Standing::Unscheduled(_) = standing {
            self.owners.keep_message(owner, pod.waiting_message());
        }
        let mut changes = Vec::new();
        if !old.is_some_and(|old| old.owner == owner && old.standing == standing) {
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
        if self.is_outdated(old, Version::of(resource_version)) {
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

    fn is_outdated(&self, old: Option<PodFact>, version: Version) -> bool {
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
        match fact.standing {
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
        match fact.standing {
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
            waiting: BTreeMap::new(),
            message: None,
        }
    }

    fn subtract_waiting(&mut self, since: Seconds) {
        self.unscheduled -= 1;
        let count = self
            .waiting
            .get_mut(&since)
            .expect("added when the fact was");
        *count -= 1;
        if *count == 0 {
            self.waiting.remove(&since);
        }
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
            waiting: self
                .waiting
                .iter()
                .map(|(since, count)| (since.timestamp(), *count))
                .collect(),
            waiting_message: self.message.as_deref().map(str::to_owned),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    /// A hash table's entry costs one control byte; the table doubles when it is 7/8 full, so that right after
    /// that an entry has 16/7 of its size.
    #[test]
    fn a_pod_costs_at_most_100_bytes_with_its_share_of_the_table() {
        let entry = size_of::<(Uid, PodFact)>();
        assert!((entry + 1) * 16 / 7 <= 100, "{entry} bytes per entry");
    }

    /// A pod as a test means it; `since` is used while it waits.
    #[derive(Clone, Debug)]
    struct Pod {
        uid: u8,
        owner: Option<u8>,
        state: u8,
        since: u8,
    }

    impl Pod {
        fn standing(&self) -> Option<Standing> {
            [
                Some(Standing::Ready),
                Some(Standing::NotReady),
                Some(Standing::Unscheduled(Seconds(u32::from(self.since)))),
                Some(Standing::Terminating),
                None,
            ][usize::from(self.state)]
        }

        fn object(&self, version: u64) -> PodObject {
            let (node, phase, ready) = match self.standing() {
                None => ("n", "Failed", "False"),
                Some(Standing::Ready) => ("n", "Running", "True"),
                Some(Standing::Unscheduled(_)) => ("", "Pending", "False"),
                _ => ("n", "Running", "False"),
            };
            let created = Seconds(u32::from(self.since)).timestamp().to_string();
            let mut pod = json!({
                "metadata": {
                    "uid": format!("pod-{}", self.uid), "namespace": "default", "resourceVersion": version.to_string(),
                    "creationTimestamp": created, "labels": {"fedrs.dev/replica-set": "web"},
                },
                "spec": {"nodeName": node},
                "status": {"phase": phase, "conditions": [{"type": "Ready", "status": ready}]},
            });
            if let Some(owner) = self.owner {
                pod["metadata"]["ownerReferences"] =
                    json!([{"uid": format!("set-{owner}"), "controller": true}]);
            }
            if self.standing() == Some(Standing::Terminating) {
                pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
            }
            serde_json::from_value(pod).expect("a pod")
        }
    }

    fn now() -> Timestamp {
        Seconds(1_000_000).timestamp()
    }

    fn table(pods: &[Pod]) -> PodTable {
        let mut table = PodTable::default();
        for pod in pods {
            table.applied(pod.object(1), now());
        }
        table
    }

    fn ready(uid: u8) -> Pod {
        Pod {
            uid,
            owner: Some(1),
            state: 0,
            since: 0,
        }
    }

    fn waiting(uid: u8, since: u8) -> Pod {
        Pod {
            uid,
            owner: Some(1),
            state: 2,
            since,
        }
    }

    #[test]
    fn counts_by_owner() {
        let terminating = Pod {
            state: 3,
            ..ready(5)
        };
        let others = Pod {
            owner: Some(2),
            ..ready(6)
        };
        let nobodys = Pod {
            owner: None,
            ..ready(7)
        };
        let table = table(&[
            ready(1),
            Pod {
                state: 1,
                ..ready(2)
            },
            waiting(3, 9),
            waiting(4, 5),
            terminating,
            others,
            nobodys,
        ]);
        assert_eq!(
            table.counts(Uid::of("set-1")),
            PodCounts {
                present: 4,
                ready: 1,
                unscheduled: 2,
                terminating: 1,
                waiting: vec![(Seconds(5).timestamp(), 1), (Seconds(9).timestamp(), 1)],
                waiting_message: None,
            }
        );
        assert_eq!(table.counts(Uid::of("set-2")).present, 1);
        assert_eq!(table.len(), 6, "a pod without a controller isn't kept");
    }

    #[test]
    fn f34_notices_tell_waiting_from_other_changes() {
        let key = SetKey::new("default", "web");
        let mut table = table(&[]);
        let since = Seconds(3).timestamp();
        assert_eq!(
            table.applied(waiting(1, 3).object(1), now()),
            [(key.clone(), Change::PodWaiting { since })]
        );
        assert_eq!(
            table.applied(waiting(1, 3).object(2), now()),
            [],
            "a heartbeat"
        );
        assert_eq!(
            table.applied(ready(1).object(3), now()),
            [(key.clone(), Change::PodChanged)]
        );
        assert_eq!(
            table.applied(waiting(1, 3).object(2), now()),
            [],
            "an old event"
        );
        assert_eq!(
            table.deleted(Uid::of("pod-1"), "4"),
            Some((key, Change::PodChanged))
        );
        assert_eq!(table.deleted(Uid::of("pod-1"), "4"), None);
        assert!(table.is_empty());
    }

    #[test]
    fn one_message_is_kept_while_anything_waits_and_cut() {
        let mut table = table(&[]);
        let mut pod = json!({
            "metadata": {"uid": "pod-1", "namespace": "default", "resourceVersion": "1",
                "ownerReferences": [{"uid": "set-1", "controller": true}]},
            "status": {"conditions": [{"type": "PodScheduled", "status": "False", "message": "\u{e4}".repeat(1000)}]},
        });
        table.applied(serde_json::from_value(pod.clone()).unwrap(), now());
        let message = table.counts(Uid::of("set-1")).waiting_message.unwrap();
        assert_eq!(message.chars().count(), MAX_MESSAGE_CHARS);
        pod["spec"]["nodeName"] = json!("n");
        table.applied(serde_json::from_value(pod).unwrap(), now());
        assert_eq!(table.counts(Uid::of("set-1")).waiting_message, None);
    }

    #[test]
    fn a_relist_sweeps_what_it_does_not_show_and_is_believed() {
        let mut table = table(&[ready(1), ready(2), ready(3)]);
        table.applied(ready(1).object(50), now());
        table.restarted();
        // The member was restored from an older snapshot: its versions went back.
        assert_eq!(
            table
                .applied(
                    Pod {
                        state: 1,
                        ..ready(1)
                    }
                    .object(2),
                    now()
                )
                .len(),
            1
        );
        table.kept(Uid::of("pod-2"));
        assert_eq!(
            table.listed().into_iter().collect::<Vec<_>>(),
            [SetKey::new("default", "web")]
        );
        assert_eq!(
            table.counts(Uid::of("set-1")),
            PodCounts {
                present: 2,
                ready: 1,
                ..PodCounts::default()
            }
        );
    }

    #[derive(Clone, Debug)]
    enum Step {
        Apply(Pod),
        /// The newest event but some, again.
        Repeat(usize),
        Delete(u8),
        /// A list of what there is; of the pods in the mask nothing was heard since the watch broke.
        Relist {
            missed: Vec<Pod>,
        },
    }

    fn pod() -> impl Strategy<Value = Pod> {
        (0..12u8, prop::option::weighted(0.9, 0..3u8), 0..5u8, 0..4u8).prop_map(
            |(uid, owner, state, since)| Pod {
                uid,
                owner,
                state,
                since,
            },
        )
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            8 => pod().prop_map(Step::Apply),
            3 => (0..10usize).prop_map(Step::Repeat),
            2 => (0..12u8).prop_map(Step::Delete),
            1 => prop::collection::vec(pod(), 0..5).prop_map(|missed| Step::Relist { missed }),
        ]
    }

    /// Counts of an owner from scratch.
    fn recount(cluster: &BTreeMap<u8, (Pod, u64)>, owner: u8) -> PodCounts {
        let mut counts = PodCounts::default();
        let mut waiting = BTreeMap::new();
        for (pod, _) in cluster.values().filter(|(pod, _)| pod.owner == Some(owner)) {
            let Some(standing) = pod.standing() else {
                continue;
            };
            counts.present += u32::from(standing != Standing::Terminating);
            match standing {
                Standing::Terminating => counts.terminating += 1,
                Standing::Ready => counts.ready += 1,
                Standing::NotReady => {}
                Standing::Unscheduled(since) => {
                    counts.unscheduled += 1;
                    *waiting.entry(since.timestamp()).or_default() += 1;
                }
            }
        }
        counts.waiting = waiting.into_iter().collect();
        counts
    }

    proptest! {
        #[test]
        fn counts_equal_a_recount_after_any_events(steps in prop::collection::vec(step(), 0..120)) {
            let mut table = PodTable::default();
            let mut cluster: BTreeMap<u8, (Pod, u64)> = BTreeMap::new();
            let mut history: Vec<(Pod, u64)> = Vec::new();
            for (version, step) in (1u64..).zip(steps) {
                match step {
                    Step::Apply(pod) => {
                        table.applied(pod.object(version), now());
                        history.push((pod.clone(), version));
                        cluster.insert(pod.uid, (pod, version));
                    }
                    Step::Repeat(back) => {
                        let repeated = history.iter().rev().nth(back);
                        // A pod that is gone, or that isn't kept, has no fact that could tell an event's age.
                        let kept = |pod: &Pod| pod.owner.is_some() && pod.standing().is_some();
                        if let Some((pod, version)) = repeated
                            && cluster.get(&pod.uid).is_some_and(|(pod, _)| kept(pod))
                        {
                            table.applied(pod.object(*version), now());
                        }
                    }
                    Step::Delete(uid) => {
                        table.deleted(Uid::of(&format!("pod-{uid}")), &version.to_string());
                        cluster.remove(&uid);
                    }
                    Step::Relist { missed } => {
                        cluster.retain(|uid, _| !missed.iter().any(|pod| pod.uid == *uid && pod.since == 0));
                        for pod in missed.into_iter().filter(|pod| pod.since != 0) {
                            cluster.insert(pod.uid, (pod, version));
                        }
                        table.restarted();
                        for (pod, version) in cluster.values() {
                            table.applied(pod.object(*version), now());
                        }
                        table.listed();
                        history.clear();
                    }
                }
                for owner in 0..3 {
                    prop_assert_eq!(table.counts(Uid::of(&format!("set-{owner}"))), recount(&cluster, owner));
                }
            }
            let owned = cluster.values().filter(|(pod, _)| pod.owner.is_some() && pod.standing().is_some()).count();
            prop_assert_eq!(table.len(), owned);
            prop_assert_eq!(table.owners.ids.len() + table.owners.free.len(), table.owners.slots.len());
        }
    }
}
