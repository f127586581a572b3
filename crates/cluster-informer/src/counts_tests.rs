//! Counts by owner, and that they equal a recount after any row of events.

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
    template: u8,
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
                "annotations": {"fedrs.dev/template-hash": format!("{:08x}", self.template)},
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
        template: 0,
    }
}

fn waiting(uid: u8, since: u8) -> Pod {
    Pod {
        uid,
        owner: Some(1),
        state: 2,
        since,
        template: 0,
    }
}

#[test]
fn counts_by_owner() {
    let terminating = Pod {
        state: 3,
        template: 9,
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
            template: 7,
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
            templates: vec![(0, 3), (7, 1)],
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
            templates: vec![(0, 2)],
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
    let owner = prop::option::weighted(0.9, 0..3u8);
    (0..12u8, owner, 0..5u8, 0..4u8, 0..3u8).prop_map(|(uid, owner, state, since, template)| Pod {
        uid,
        owner,
        state,
        since,
        template,
    })
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
    let mut templates = BTreeMap::new();
    for (pod, _) in cluster.values().filter(|(pod, _)| pod.owner == Some(owner)) {
        let Some(standing) = pod.standing() else {
            continue;
        };
        if standing != Standing::Terminating {
            counts.present += 1;
            *templates.entry(u32::from(pod.template)).or_default() += 1;
        }
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
    counts.templates = templates.into_iter().collect();
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
