//! Counts by owner, and that they equal a recount after any sequence of events.

use std::collections::BTreeMap;

use super::*;
use fedrs_api::WorkloadKey;

use crate::{unix_seconds::UnixSeconds, workload::WorkloadView};
use proptest::prelude::*;
use serde_json::json;

/// A hash table's entry costs one control byte; the table doubles when it is 7/8 full, so that right after
/// that an entry has 16/7 of its size.
#[test]
fn a_pod_costs_at_most_100_bytes_with_its_share_of_the_table() {
    let entry = size_of::<(Uid, PodEntry)>();
    assert!((entry + 1) * 16 / 7 <= 100, "{entry} bytes per entry");
}

/// A pod of a test; `since` is used while it is unscheduled.
#[derive(Clone, Debug)]
struct Pod {
    uid: u8,
    owner: Option<u8>,
    state: u8,
    since: u8,
    template: u8,
}

impl Pod {
    fn node(&self) -> String {
        format!("node-{}", self.uid % 2)
    }

    fn state(&self) -> Option<PodState> {
        [
            Some(PodState::Ready),
            Some(PodState::NotReady),
            Some(PodState::Unscheduled(UnixSeconds(u32::from(self.since)))),
            Some(PodState::Terminating),
            None,
            Some(PodState::Draining),
        ][usize::from(self.state)]
    }

    /// When the state is first seen.
    fn seen(&self) -> Timestamp {
        UnixSeconds(u32::from(self.since)).timestamp()
    }

    /// The pod as it counts in `cluster`: an unscheduled one stays so since it was first seen.
    fn in_cluster(self, cluster: &BTreeMap<u8, (Pod, u64)>) -> Self {
        let is_unscheduled = |pod: &Pod| matches!(pod.state(), Some(PodState::Unscheduled(_)));
        let before = cluster.get(&self.uid).map(|(pod, _)| pod);
        let before = before.filter(|pod| pod.owner.is_some() && is_unscheduled(pod));
        let since = before.filter(|_| is_unscheduled(&self));
        Self {
            since: since.map_or(self.since, |before| before.since),
            ..self
        }
    }

    fn object(&self, version: u64) -> PodObject {
        let (node, phase, ready) = match self.state() {
            None => ("n", "Failed", "False"),
            Some(PodState::Ready | PodState::Draining) => ("n", "Running", "True"),
            Some(PodState::Unscheduled(_)) => ("", "Pending", "False"),
            _ => ("n", "Running", "False"),
        };
        let created = UnixSeconds(u32::from(self.since)).timestamp().to_string();
        let mut pod = json!({
            "metadata": {
                "uid": format!("pod-{}", self.uid), "namespace": "default", "resourceVersion": version.to_string(),
                "creationTimestamp": created, "labels": {"fedrs.dev/replica-set": "web"},
                "annotations": {"fedrs.dev/template-hash": format!("{:08x}", self.template)},
            },
            "spec": {"nodeName": if node.is_empty() { String::new() } else { self.node() }},
            "status": {"phase": phase, "conditions": [{"type": "Ready", "status": ready}]},
        });
        if let Some(owner) = self.owner {
            pod["metadata"]["ownerReferences"] =
                json!([{"uid": format!("set-{owner}"), "controller": true}]);
        }
        if self.state() == Some(PodState::Draining) {
            pod["metadata"]["annotations"]["fedrs.dev/draining"] = self.seen().to_string().into();
        }
        if self.state() == Some(PodState::Terminating) {
            pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        }
        serde_json::from_value(pod).expect("a pod")
    }
}

fn now() -> Timestamp {
    UnixSeconds(1_000_000).timestamp()
}

fn table(pods: &[Pod]) -> PodTable {
    let mut table = PodTable::default();
    for pod in pods {
        table.apply(pod.object(1), pod.seen());
    }
    table
}

/// The controller of most pods.
fn web() -> PodOwner {
    PodOwner {
        key: WorkloadKey::new("default", "web"),
        uid: Uid::of("set-1"),
    }
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

fn draining(uid: u8, since: u8) -> Pod {
    Pod {
        state: 5,
        since,
        ..ready(uid)
    }
}

fn unscheduled(uid: u8, since: u8) -> Pod {
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
    let unowned = Pod {
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
        unscheduled(3, 9),
        unscheduled(4, 5),
        terminating,
        draining(8, 20),
        draining(9, 10),
        others,
        unowned,
    ]);
    assert_eq!(
        table.counts(Uid::of("set-1")),
        PodCounts {
            active: 6,
            ready: 3,
            unscheduled: 2,
            doubtful: 0,
            terminating: 1,
            draining: 2,
            draining_since: Some(UnixSeconds(20).timestamp()),
            by_template: vec![(0, 5), (7, 1)],
            unscheduled_since: vec![
                (UnixSeconds(5).timestamp(), 1),
                (UnixSeconds(9).timestamp(), 1)
            ],
            unscheduled_message: None,
        }
    );
    assert_eq!(table.counts(Uid::of("set-2")).active, 1);
    assert_eq!(table.len(), 8, "a pod without a controller is not kept");
}

#[test]
fn updated_replicas_are_the_active_pods_of_the_template() {
    let of_7 = |pod| Pod { template: 7, ..pod };
    let updated = |table: &PodTable| {
        let pods = table.counts(Uid::of("set-1"));
        let view = WorkloadView {
            pods,
            ..WorkloadView::default()
        };
        view.updated_replicas(7)
    };
    let mut table = table(&[
        of_7(ready(1)),
        of_7(ready(2)),
        of_7(unscheduled(3, 1)),
        ready(4),
    ]);
    assert_eq!(updated(&table), 3, "pod 4 has no annotation");
    let deleted = Pod {
        state: 3,
        ..of_7(ready(1))
    };
    table.apply(deleted.object(2), now());
    assert_eq!(updated(&table), 2, "pod 1 is being deleted");
    let failed = Pod {
        state: 4,
        ..of_7(ready(2))
    };
    table.apply(failed.object(2), now());
    assert_eq!(updated(&table), 1, "pod 2 failed");
    table.delete(Uid::of("pod-3"), "3");
    assert_eq!(updated(&table), 0, "pod 3 lost our labels");
    let key = web();
    assert_eq!(
        table.apply(of_7(ready(4)).object(4), now()),
        [(key, WorkloadChange::Pods)],
        "the annotation alone changed"
    );
    assert_eq!(updated(&table), 1);
}

#[test]
fn f34_unscheduled_pods_are_another_change() {
    let key = web();
    let mut table = table(&[]);
    let since = UnixSeconds(3).timestamp();
    assert_eq!(
        table.apply(unscheduled(1, 3).object(1), since),
        [(key.clone(), WorkloadChange::PodUnscheduled { since })]
    );
    assert_eq!(
        table.apply(unscheduled(1, 3).object(2), now()),
        [],
        "a heartbeat"
    );
    assert_eq!(
        table.apply(ready(1).object(3), now()),
        [(key.clone(), WorkloadChange::Pods)]
    );
    assert_eq!(
        table.apply(unscheduled(1, 3).object(2), now()),
        [],
        "an old event"
    );
    assert_eq!(
        table.delete(Uid::of("pod-1"), "4"),
        Some((key, WorkloadChange::Pods))
    );
    assert_eq!(table.delete(Uid::of("pod-1"), "4"), None);
    assert!(table.is_empty());
}

#[test]
fn one_message_is_kept_and_cut_while_a_pod_is_unscheduled() {
    let mut table = table(&[]);
    let mut pod = json!({
        "metadata": {"uid": "pod-1", "namespace": "default", "resourceVersion": "1",
            "ownerReferences": [{"uid": "set-1", "controller": true}]},
        "status": {"conditions": [{"type": "PodScheduled", "status": "False", "message": "\u{e4}".repeat(1000)}]},
    });
    table.apply(serde_json::from_value(pod.clone()).unwrap(), now());
    let message = table.counts(Uid::of("set-1")).unscheduled_message.unwrap();
    assert_eq!(message.chars().count(), 512);
    pod["spec"]["nodeName"] = json!("n");
    table.apply(serde_json::from_value(pod).unwrap(), now());
    assert_eq!(table.counts(Uid::of("set-1")).unscheduled_message, None);
}

#[test]
fn a_relist_removes_what_it_does_not_contain_and_overrides() {
    let mut table = table(&[ready(1), ready(2), ready(3)]);
    table.apply(ready(1).object(50), now());
    table.begin_list();
    // The member was restored from an older snapshot: its versions went back.
    assert_eq!(
        table
            .apply(
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
    table.keep(Uid::of("pod-2"));
    assert_eq!(table.end_list().into_iter().collect::<Vec<_>>(), [web()]);
    assert_eq!(
        table.counts(Uid::of("set-1")),
        PodCounts {
            active: 2,
            ready: 1,
            by_template: vec![(0, 2)],
            ..PodCounts::default()
        }
    );
}

#[derive(Clone, Debug)]
enum Step {
    Apply(Pod),
    /// An earlier event again, counted from the newest.
    Repeat(usize),
    Delete(u8),
    /// A list; the watch did not show the changes of the pods in `missed`.
    Relist {
        missed: Vec<Pod>,
    },
    Node {
        node: u8,
        ready: bool,
    },
    Confirm {
        confirming: bool,
    },
    ForbidNodes,
}

fn pod() -> impl Strategy<Value = Pod> {
    let owner = prop::option::weighted(0.9, 0..3u8);
    (0..12u8, owner, 0..6u8, 0..4u8, 0..3u8).prop_map(|(uid, owner, state, since, template)| Pod {
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
        2 => (0..2u8, any::<bool>()).prop_map(|(node, ready)| Step::Node { node, ready }),
        1 => any::<bool>().prop_map(|confirming| Step::Confirm { confirming }),
        1 => Just(Step::ForbidNodes),
    ]
}

fn change_nodes(table: &mut PodTable, change: impl FnOnce(&mut NodeTable) -> Changed) {
    let mut changed = change(&mut table.nodes.write());
    changed.retain(|id, before| table.nodes.read().state(Some(*id)) != *before);
    table.recount(&changed);
}

/// Counts of an owner from scratch.
fn recount(cluster: &BTreeMap<u8, (Pod, u64)>, nodes: &NodeTable, owner: u8) -> PodCounts {
    let mut counts = PodCounts::default();
    let mut unscheduled_since = BTreeMap::new();
    let mut by_template = BTreeMap::new();
    for (pod, _) in cluster.values().filter(|(pod, _)| pod.owner == Some(owner)) {
        let Some(state) = pod.state() else {
            continue;
        };
        if state != PodState::Terminating {
            counts.active += 1;
            *by_template.entry(u32::from(pod.template)).or_default() += 1;
        }
        if state == PodState::Draining {
            counts.draining += 1;
            counts.draining_since = counts.draining_since.max(Some(pod.seen()));
        }
        let is_ready = matches!(state, PodState::Ready | PodState::Draining);
        let since = match (state, nodes.state_of(&pod.node())) {
            (PodState::Terminating, _) => {
                counts.terminating += 1;
                continue;
            }
            (PodState::Unscheduled(since), _) => since,
            (_, NodeState::NotReady(since)) => {
                counts.doubtful += u32::from(is_ready);
                counts.unscheduled_message = Some("the node is not ready".to_owned());
                since
            }
            (PodState::Ready | PodState::Draining, NodeState::Ready) => {
                counts.ready += 1;
                continue;
            }
            (PodState::Ready | PodState::Draining, NodeState::Unconfirmed) => {
                counts.doubtful += 1;
                continue;
            }
            (PodState::NotReady, _) => continue,
        };
        counts.unscheduled += 1;
        *unscheduled_since.entry(since.timestamp()).or_default() += 1;
    }
    counts.unscheduled_since = unscheduled_since.into_iter().collect();
    counts.by_template = by_template.into_iter().collect();
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
                    table.apply(pod.object(version), pod.seen());
                    let pod = pod.in_cluster(&cluster);
                    history.push((pod.clone(), version));
                    cluster.insert(pod.uid, (pod, version));
                }
                Step::Repeat(back) => {
                    let repeated = history.iter().rev().nth(back);
                    // A pod that was deleted, or is not kept, has no entry with a version to compare.
                    let kept = |pod: &Pod| pod.owner.is_some() && pod.state().is_some();
                    if let Some((pod, version)) = repeated
                        && cluster.get(&pod.uid).is_some_and(|(pod, _)| kept(pod))
                    {
                        table.apply(pod.object(*version), now());
                    }
                }
                Step::Delete(uid) => {
                    table.delete(Uid::of(&format!("pod-{uid}")), &version.to_string());
                    cluster.remove(&uid);
                }
                Step::Node { node, ready } => {
                    let status = if ready { "True" } else { "Unknown" };
                    let object = serde_json::from_value(json!({
                        "metadata": { "name": format!("node-{node}") },
                        "status": { "conditions": [{ "type": "Ready", "status": status }] },
                    })).expect("a node");
                    change_nodes(&mut table, |nodes| nodes.apply(&object, now()));
                }
                Step::Confirm { confirming: true } => {
                    change_nodes(&mut table, NodeTable::begin_confirmation);
                }
                Step::ForbidNodes => change_nodes(&mut table, NodeTable::forbid),
                Step::Confirm { confirming: false } => {
                    change_nodes(&mut table, NodeTable::end_confirmation);
                }
                Step::Relist { missed } => {
                    let known = cluster.clone();
                    cluster.retain(|uid, _| !missed.iter().any(|pod| pod.uid == *uid && pod.since == 0));
                    for pod in missed.into_iter().filter(|pod| pod.since != 0) {
                        let pod = pod.in_cluster(&known);
                        cluster.insert(pod.uid, (pod, version));
                    }
                    table.begin_list();
                    for (pod, version) in cluster.values() {
                        table.apply(pod.object(*version), pod.seen());
                    }
                    table.end_list();
                    history.clear();
                }
            }
            for owner in 0..3 {
                let mut counts = table.counts(Uid::of(&format!("set-{owner}")));
                let expected = recount(&cluster, &table.nodes.read(), owner);
                // The last pod that began to drain may drain no longer: the others are waited for a little longer.
                prop_assert!(counts.draining_since >= expected.draining_since);
                counts.draining_since = expected.draining_since.filter(|_| counts.draining_since.is_some());
                prop_assert_eq!(counts, expected);
            }
        }
        let owned = cluster.values().filter(|(pod, _)| pod.owner.is_some() && pod.state().is_some()).count();
        prop_assert_eq!(table.len(), owned);
        prop_assert!(table.owners.each_slot_is_used_or_free());
        prop_assert!(table.owners.all_texts_are_counted());
    }
}
