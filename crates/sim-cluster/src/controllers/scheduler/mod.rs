//! The scheduler: binds pods to nodes, one after the other.
//!
//! ```text
//! pod without a node -> queue -> place (pure) -> binding | condition PodScheduled=False, event, unschedulable
//! node or pod changed so that there may be capacity -> unschedulable pods are queued again, each after its backoff
//! pod bound or its labels changed -> so are unschedulable pods with rules about other pods
//! ```
//!
//! It ignores pods of other schedulers and pods with scheduling gates, and preempts no pods.

mod amounts;
mod filters;
mod nodes;
mod place;
mod topology;

pub(crate) use amounts::Amounts;

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use crate::object::Object;
use crate::resources::kinds;
use crate::status::Status;
use crate::store::Change;

use super::context::{Context, ignore_not_found};
use super::controller::Controller;
use super::event_correlator::NewEvent;
use super::pod::Pod;
use super::queue::Queue;
use crate::object::{self, Condition, condition, condition_mut, set_condition, text};
use nodes::{NodeInfo, is_related};
use place::place;

const NAME: &str = "default-scheduler";
const MANAGER: &str = "kube-scheduler";
/// The backoff after a pod's first failure, doubled with each further one.
const FIRST_BACKOFF: Duration = Duration::from_secs(1);
const LAST_BACKOFF: Duration = Duration::from_secs(10);

/// The scheduler's view of nodes and its queue of pods (by uid).
#[derive(Debug)]
pub(crate) struct Scheduler {
    queue: Queue<String>,
    nodes: BTreeMap<String, NodeInfo>,
    waiting: BTreeMap<String, Waiting>,
}

/// An unschedulable pod.
#[derive(Debug)]
struct Waiting {
    tries: u32,
    /// No attempt is made before this time.
    not_before: Instant,
    /// The pod has rules about the placement of other pods.
    is_related: bool,
}

impl Scheduler {
    pub(crate) fn new(context: &Context) -> Self {
        Self {
            queue: Queue::new(context.settings.schedule_latency),
            nodes: BTreeMap::new(),
            waiting: BTreeMap::new(),
        }
    }

    fn observe_pod(&mut self, old: Option<&Object>, new: Option<&Object>) {
        if let Some(old) = old {
            self.leave(Pod(old), new.map(|new| Pod(new)));
        }
        let Some(new) = new else { return };
        let pod = Pod(new);
        if !pod.node().is_empty() && !pod.is_terminal() {
            self.nodes
                .entry(pod.node().to_owned())
                .or_default()
                .add(Object::clone(new));
            let was_there =
                |old: &Object| !Pod(old).node().is_empty() && Pod(old).labels() == pod.labels();
            if !old.is_some_and(was_there) {
                self.wake(|waiting| waiting.is_related);
            }
        } else if is_ours(pod) {
            // A change of the status does not make the pod schedulable.
            let same = |old: &Object| {
                old["spec"] == new["spec"] && old["metadata"]["labels"] == new["metadata"]["labels"]
            };
            if !old.is_some_and(same) {
                self.waiting.remove(pod.uid());
                self.queue.add(pod.uid().to_owned());
            }
        }
    }

    /// Removes the pod's old state. If that frees capacity, unschedulable pods are queued again.
    fn leave(&mut self, old: Pod<'_>, new: Option<Pod<'_>>) {
        if new.is_none_or(|new| !is_ours(new)) {
            self.waiting.remove(old.uid());
            self.queue.remove(&old.uid().to_owned());
        }
        let stays = new.is_some_and(|new| new.node() == old.node() && !new.is_terminal());
        if old.node().is_empty() || stays {
            return;
        }
        if let Some(node) = self.nodes.get_mut(old.node()) {
            node.remove(old.uid());
            if !node.exists() && node.pods.is_empty() {
                self.nodes.remove(old.node());
            }
        }
        self.wake(|_| true);
    }

    fn observe_node(&mut self, old: Option<&Object>, new: Option<&Object>) {
        let Some(new) = new else {
            let gone = old.and_then(|old| self.nodes.get_mut(object::name(old)));
            if let Some(node) = gone {
                node.set_object(Object::default());
            }
            return;
        };
        let node = self.nodes.entry(object::name(new).to_owned()).or_default();
        node.set_object(Object::clone(new));
        // A heartbeat makes no pod schedulable.
        let same = |old: &Object| {
            old["spec"] == new["spec"]
                && old["metadata"]["labels"] == new["metadata"]["labels"]
                && old["status"]["allocatable"] == new["status"]["allocatable"]
        };
        if !old.is_some_and(same) {
            self.wake(|_| true);
        }
    }

    /// Queues these unschedulable pods again, each after its backoff.
    fn wake(&mut self, whom: impl Fn(&Waiting) -> bool) {
        let now = Instant::now();
        for (uid, waiting) in self.waiting.iter().filter(|(_, waiting)| whom(waiting)) {
            self.queue.add_at(uid.clone(), waiting.not_before.max(now));
        }
    }

    fn bind(&mut self, context: &mut Context, pod: &Object, node: &str) -> Result<(), Status> {
        let now = context.now();
        let bound = context.edit(MANAGER, (&kinds::PODS, Some("binding")), pod, |pod| {
            pod["spec"]["nodeName"] = json!(node);
            scheduled(
                pod,
                Condition {
                    kind: "PodScheduled",
                    status: "True",
                    reason: "",
                    message: "",
                },
                now,
            );
        });
        bound?;
        self.waiting.remove(Pod(pod).uid());
        let pod_name = format!("{}/{}", Pod(pod).namespace(), Pod(pod).name());
        let message = format!("Successfully assigned {pod_name} to {node}");
        context.record_event(
            &kinds::PODS,
            pod,
            NewEvent {
                component: NAME,
                event_type: "Normal",
                reason: "Scheduled",
                message: &message,
            },
        );
        Ok(())
    }

    fn refuse(&mut self, context: &mut Context, pod: &Object, why: &str) -> Result<(), Status> {
        let uid = Pod(pod).uid().to_owned();
        let now = Instant::now();
        let tries = self.waiting.get(&uid).map_or(0, |waiting| waiting.tries);
        let backoff = FIRST_BACKOFF
            .saturating_mul(1 << tries.min(8))
            .min(LAST_BACKOFF);
        let waiting = Waiting {
            tries: tries + 1,
            not_before: now + backoff,
            is_related: is_related(Pod(pod)),
        };
        self.waiting.insert(uid.clone(), waiting);
        self.queue
            .add_at(uid, now + context.settings.unschedulable_retry.max(backoff));
        context.record_event(
            &kinds::PODS,
            pod,
            NewEvent {
                component: NAME,
                event_type: "Warning",
                reason: "FailedScheduling",
                message: why,
            },
        );
        let says =
            condition(pod, "PodScheduled").map(|c| (text(c, "/reason"), text(c, "/message")));
        if says == Some(("Unschedulable", why)) {
            return Ok(());
        }
        let time = context.now();
        ignore_not_found(
            context.edit(MANAGER, (&kinds::PODS, Some("status")), pod, |pod| {
                scheduled(
                    pod,
                    Condition {
                        kind: "PodScheduled",
                        status: "False",
                        reason: "Unschedulable",
                        message: why,
                    },
                    time,
                );
            }),
        )
    }
}

/// Whether the pod waits for this scheduler.
fn is_ours(pod: Pod<'_>) -> bool {
    let scheduler = text(pod.0, "/spec/schedulerName");
    pod.awaits_node() && !pod.is_gated() && matches!(scheduler, "" | NAME)
}

/// Sets the condition `PodScheduled` in the form of the scheduler.
fn scheduled(pod: &mut serde_json::Value, state: Condition<'_>, now: jiff::Timestamp) {
    set_condition(pod, state, now);
    let generation = pod["metadata"].get("generation").cloned();
    if let Some(condition) = condition_mut(pod, state.kind) {
        condition["lastProbeTime"] = json!(null);
        if let Some(generation) = generation {
            condition["observedGeneration"] = generation;
        }
    }
}

impl Controller for Scheduler {
    type Key = String;
    type Failure = Status;

    fn is_managed(&self) -> bool {
        false
    }

    fn queue(&mut self) -> &mut Queue<String> {
        &mut self.queue
    }

    fn observe(&mut self, change: &Change, _world: &Context) {
        if change.kind == *kinds::PODS {
            self.observe_pod(change.old.as_ref(), change.new.as_ref());
        } else if change.kind == *kinds::NODES {
            self.observe_node(change.old.as_ref(), change.new.as_ref());
        }
    }

    fn sync(&mut self, context: &mut Context, pod_uid: &String) -> Result<(), Status> {
        let Some(entry) = context.index.get(pod_uid) else {
            return Ok(());
        };
        let pod = Object::clone(&entry.object);
        let outcome = match place(Pod(&pod), &self.nodes).map(str::to_owned) {
            Ok(node) => self.bind(context, &pod, &node),
            Err(none) => self.refuse(context, &pod, &none.to_string()),
        };
        ignore_not_found(outcome)
    }
}
