//! The node lifecycle controller: detects unreachable nodes, taints them, and evicts pods that do not tolerate the taint.
//!
//! ```text
//! lease not renewed for the grace period -> conditions Unknown, pods not ready
//! Ready False | Unknown -> taints not-ready | unreachable (NoSchedule at once; NoExecute unless no node is ready)
//! NoExecute taint -> each pod is deleted when its tolerationSeconds are over
//! ```
//!
//! When no node is ready the controller assumes that it is disconnected itself and evicts no pods, as in Kubernetes. Unlike
//! there, evictions are not limited to one node in ten seconds.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::object::Object;
use crate::resources::kinds;
use crate::status::Status;
use crate::store::Change;

use crate::clock::to_time;
use crate::controllers::context::{Context, Deletion, ignore_not_found};
use crate::controllers::controller::Controller;
use crate::controllers::event_correlator::NewEvent;
use crate::controllers::pod::Pod;
use crate::controllers::queue::Queue;
use crate::controllers::taints::{
    EvictionTime, NOT_READY, UNREACHABLE, UNSCHEDULABLE, eviction_time,
};
use crate::object::{
    self, Condition, condition, condition_mut, flag, list, set_condition, text, uid,
};

use super::spec::LEASE_NAMESPACE;

const MANAGER: &str = "kube-controller-manager";
const SOURCE: &str = "node-controller";

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    Node(String),
    /// A pod, by uid, that may have to be evicted.
    Pod(String),
}

/// The last heartbeat of each node, and the queue of nodes and pods.
#[derive(Debug)]
pub(crate) struct NodeLifecycle {
    queue: Queue<Key>,
    /// By the monotonic clock, so that a step of the clock makes no node unreachable.
    heard: BTreeMap<String, Instant>,
    /// The last observed readiness of each node: `True`, `False`, `Unknown`.
    readiness: BTreeMap<String, String>,
}

impl NodeLifecycle {
    pub(crate) fn new(context: &Context) -> Self {
        Self {
            queue: Queue::new(context.settings.sync_latency),
            heard: BTreeMap::new(),
            readiness: BTreeMap::new(),
        }
    }

    fn observe_node(&mut self, old: Option<&Object>, new: Option<&Object>, context: &Context) {
        let Some(new) = new else {
            if let Some(old) = old {
                self.heard.remove(object::name(old));
                self.readiness.remove(object::name(old));
                self.queue.remove(&Key::Node(object::name(old).to_owned()));
            }
            return;
        };
        let node = object::name(new).to_owned();
        self.heard.entry(node.clone()).or_insert_with(Instant::now);
        let ready = readiness(new).to_owned();
        if self.readiness.get(&node) != Some(&ready) {
            let all_down = self.none_is_ready();
            self.readiness.insert(node.clone(), ready);
            if self.none_is_ready() != all_down {
                self.queue_all_nodes();
            }
        }
        let taints = |node: &Object| node["spec"]["taints"].clone();
        if !new["spec"]["taints"].is_null() && old.is_none_or(|old| taints(old) != taints(new)) {
            for pod in context.index.pods_on(&node) {
                self.queue.add(Key::Pod(uid(pod).to_owned()));
            }
        }
        self.queue.add(Key::Node(node));
    }

    fn none_is_ready(&self) -> bool {
        self.readiness.values().all(|ready| ready != "True")
    }

    fn queue_all_nodes(&mut self) {
        for node in self.readiness.keys() {
            self.queue.add(Key::Node(node.clone()));
        }
    }

    fn check(&mut self, context: &mut Context, name: &str) -> Result<(), Status> {
        let (Ok(node), Some(heard)) = (
            context.api.get(&kinds::NODES, "", name),
            self.heard.get(name),
        ) else {
            return Ok(());
        };
        let now = context.now();
        let lost_at = *heard + context.settings.node_grace;
        if Instant::now() < lost_at {
            self.queue.add_at(Key::Node(name.to_owned()), lost_at);
        } else if readiness(&node) != "Unknown" {
            context.record_event(
                &kinds::NODES,
                &node,
                NewEvent {
                    component: SOURCE,
                    event_type: "Normal",
                    reason: "NodeNotReady",
                    message: &format!("Node {name} status is now: NodeNotReady"),
                },
            );
            ignore_not_found(context.edit(
                MANAGER,
                (&kinds::NODES, Some("status")),
                &node,
                |node| {
                    lose(node, now);
                },
            ))?;
            // The change of the node queues it again, for its taints.
            return mark_pods_not_ready(context, name);
        }
        let taints = wanted_taints(&node, !self.none_is_ready(), now);
        if list(&node, "/spec/taints") != taints {
            ignore_not_found(context.edit(MANAGER, (&kinds::NODES, None), &node, |node| {
                set_taints(node, &taints);
            }))?;
        }
        Ok(())
    }

    fn check_pod(&mut self, context: &mut Context, pod_uid: &str) -> Result<(), Status> {
        let Some(pod) = context
            .index
            .get(pod_uid)
            .map(|entry| Object::clone(&entry.object))
        else {
            return Ok(());
        };
        let view = Pod(&pod);
        let Ok(node) = context.api.get(&kinds::NODES, "", view.node()) else {
            return Ok(());
        };
        if !view.is_active() {
            return Ok(());
        }
        let now = context.now();
        match eviction_time(&node, view.tolerations(), now) {
            EvictionTime::Never => Ok(()),
            EvictionTime::At(time) if time > now => {
                self.queue
                    .add_at(Key::Pod(pod_uid.to_owned()), context.instant(time));
                Ok(())
            }
            EvictionTime::At(_) => evict(context, &pod, now),
        }
    }
}

/// The status of the node's `Ready` condition; `Unknown` if it has none.
fn readiness(node: &Value) -> &str {
    condition(node, "Ready").map_or("Unknown", |ready| text(ready, "/status"))
}

fn lose(node: &mut Value, now: Timestamp) {
    for kind in ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"] {
        let (reason, message) = match condition(node, kind) {
            Some(_) => ("NodeStatusUnknown", "Kubelet stopped posting node status."),
            None => (
                "NodeStatusNeverUpdated",
                "Kubelet never posted node status.",
            ),
        };
        set_condition(
            node,
            Condition {
                kind,
                status: "Unknown",
                reason,
                message,
            },
            now,
        );
    }
}

fn mark_pods_not_ready(context: &mut Context, node: &str) -> Result<(), Status> {
    let ready: Vec<Object> = context
        .index
        .pods_on(node)
        .filter(|pod| Pod(pod).is_ready())
        .cloned()
        .collect();
    for pod in ready {
        let now = context.now();
        ignore_not_found(
            context.edit(MANAGER, (&kinds::PODS, Some("status")), &pod, |pod| {
                set_condition(
                    pod,
                    Condition {
                        kind: "Ready",
                        status: "False",
                        reason: "",
                        message: "",
                    },
                    now,
                );
            }),
        )?;
        context.record_event(
            &kinds::PODS,
            &pod,
            NewEvent {
                component: SOURCE,
                event_type: "Warning",
                reason: "NodeNotReady",
                message: "Node is not ready",
            },
        );
    }
    Ok(())
}

/// The desired taints of the node: those of others, and those that follow from its state. A taint that stays keeps its time.
fn wanted_taints(node: &Value, evict: bool, now: Timestamp) -> Vec<Value> {
    let present = list(node, "/spec/taints");
    let ours =
        |taint: &Value| matches!(text(taint, "/key"), NOT_READY | UNREACHABLE | UNSCHEDULABLE);
    let mut wanted = Vec::new();
    if flag(node, "/spec/unschedulable") {
        wanted.push((UNSCHEDULABLE, "NoSchedule"));
    }
    let key = match readiness(node) {
        "True" => "",
        "False" => NOT_READY,
        _ => UNREACHABLE,
    };
    // A node without conditions is new: its kubelet reports soon.
    if !key.is_empty() && condition(node, "Ready").is_some() {
        wanted.push((key, "NoSchedule"));
        if evict {
            wanted.push((key, "NoExecute"));
        }
    }
    let mut taints: Vec<Value> = present
        .iter()
        .filter(|taint| !ours(taint))
        .cloned()
        .collect();
    for (key, effect) in wanted {
        let there = present
            .iter()
            .find(|taint| taint["key"] == key && taint["effect"] == effect);
        let made = || json!({"key": key, "effect": effect, "timeAdded": to_time(now)});
        taints.push(there.cloned().unwrap_or_else(made));
    }
    taints
}

fn set_taints(node: &mut Value, taints: &[Value]) {
    if let (true, Some(spec)) = (taints.is_empty(), node["spec"].as_object_mut()) {
        spec.remove("taints");
    } else {
        node["spec"]["taints"] = json!(taints);
    }
}

fn evict(context: &mut Context, pod: &Object, now: Timestamp) -> Result<(), Status> {
    let message = format!(
        "Marking for deletion Pod {}/{}",
        Pod(pod).namespace(),
        Pod(pod).name()
    );
    let event = NewEvent {
        component: "taint-eviction-controller",
        event_type: "Normal",
        reason: "TaintManagerEviction",
        message: &message,
    };
    context.record_event(&kinds::PODS, pod, event);
    let target = Condition {
        kind: "DisruptionTarget",
        status: "True",
        reason: "DeletionByTaintManager",
        message: "Taint manager: deleting due to NoExecute taint",
    };
    ignore_not_found(
        context.edit(MANAGER, (&kinds::PODS, Some("status")), pod, |pod| {
            set_condition(pod, target, now);
            observe_generation(pod, target.kind);
        }),
    )?;
    ignore_not_found(context.delete(&kinds::PODS, pod, Deletion::default()))
}

/// Sets the generation of the pod for which one of its conditions holds.
fn observe_generation(pod: &mut Value, kind: &str) {
    let generation = pod["metadata"]["generation"].clone();
    if let Some(condition) = condition_mut(pod, kind) {
        condition["observedGeneration"] = generation;
    }
}

impl Controller for NodeLifecycle {
    type Key = Key;
    type Failure = Status;

    fn queue(&mut self) -> &mut Queue<Key> {
        &mut self.queue
    }

    fn observe(&mut self, change: &Change, context: &Context) {
        let (old, new) = (change.old.as_ref(), change.new.as_ref());
        if change.kind == *kinds::NODES {
            self.observe_node(old, new, context);
        } else if change.kind == *kinds::LEASES
            && change.namespace == LEASE_NAMESPACE
            && new.is_some()
        {
            // The arrival counts, not the time in the lease, so that a wrong clock makes no node unreachable.
            if let Some(heard) = self.heard.get_mut(&change.name) {
                *heard = Instant::now();
            }
        } else if change.kind == *kinds::PODS {
            let bound = new.filter(|new| {
                !Pod(new).node().is_empty() && old.is_none_or(|old| Pod(old).node().is_empty())
            });
            if let Some(pod) = bound {
                self.queue.add(Key::Pod(uid(pod).to_owned()));
            }
        }
    }

    fn sync(&mut self, context: &mut Context, key: &Key) -> Result<(), Status> {
        match key {
            Key::Node(node) => self.check(context, node),
            Key::Pod(uid) => self.check_pod(context, uid),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::ready("True", true, vec![])]
    #[case::not_ready("False", true, vec![(NOT_READY, "NoSchedule"), (NOT_READY, "NoExecute")])]
    #[case::unreachable("Unknown", true, vec![(UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")])]
    #[case::all_are_unreachable("Unknown", false, vec![(UNREACHABLE, "NoSchedule")])]
    fn taints_follow_readiness(
        #[case] ready: &str,
        #[case] evict: bool,
        #[case] expected: Vec<(&str, &str)>,
    ) {
        let foreign = json!({"key": "dedicated", "effect": "NoSchedule"});
        let node = json!({
            "spec": {"taints": [foreign, {"key": NOT_READY, "effect": "NoExecute", "timeAdded": "then"}]},
            "status": {"conditions": [{"type": "Ready", "status": ready}]},
        });
        let taints = wanted_taints(&node, evict, Timestamp::UNIX_EPOCH);
        assert_eq!(taints[0], foreign);
        let ours: Vec<_> = taints[1..]
            .iter()
            .map(|taint| (text(taint, "/key"), text(taint, "/effect")))
            .collect();
        assert_eq!(ours, expected);
        let kept = taints
            .iter()
            .filter(|taint| taint["timeAdded"] == "then")
            .count();
        assert_eq!(kept, usize::from(ready == "False"));
    }
}
