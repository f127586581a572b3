//! The kubelets of all nodes: they start, watch and stop the pods bound to their node, and renew its lease.
//!
//! ```text
//! pod bound, changed, deleted -> stage -> next step (lifecycle, pure) -> report (pure) -> pod's status, or the pod is removed
//! every heartbeat -> the node's lease; the conditions of a new node
//! ```
//!
//! Every Node object has a kubelet. A stopped kubelet does nothing.

mod lifecycle;
mod report;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::object::Object;
use crate::resources::kinds;
use crate::status::Status;
use crate::store::Change;

use super::context::{Context, Deletion, ignore_not_found};
use super::controller::Controller;
use super::node::{LEASE_NAMESPACE, date_conditions, first_report};
use super::pod::Pod;
use super::queue::Queue;
use super::scheduler::Amounts;
use crate::clock::to_micro_time;
use crate::object::{self, condition, map, text, uid};
use lifecycle::{Hold, RESIZE_PENDING, Stage, Step};
use report::{Place, report};

const MANAGER: &str = "kubelet";
/// How often a kubelet reports the status of a node that has not changed: `nodeStatusReportFrequency`.
const STATUS_REPORT: Duration = Duration::from_secs(300);
/// How often a resize that was put off is tried again.
const RESIZE_RETRY: Duration = Duration::from_secs(10);
/// Pods get the addresses of 10.64.0.0/10 in turn.
const POD_ADDRESSES: u32 = 1 << 22;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    Heartbeat(String),
    Pod(String),
}

/// All kubelets.
#[derive(Debug)]
pub(crate) struct Kubelets {
    queue: Queue<Key>,
    /// The stage of each bound pod, and when it began.
    stages: BTreeMap<String, (Stage, Timestamp)>,
    addresses_given: u32,
    /// The nodes about which there is nothing new to report, as they were then, and when their status was last reported.
    reported: BTreeMap<String, (Object, Instant)>,
}

impl Kubelets {
    pub(crate) fn new() -> Self {
        // Kubelets work in parallel: there is no latency between two pods.
        Self {
            queue: Queue::new(Duration::ZERO),
            stages: BTreeMap::new(),
            addresses_given: 0,
            reported: BTreeMap::new(),
        }
    }

    fn observe_pod(&mut self, old: Option<&Object>, new: Option<&Object>, now: Timestamp) {
        let Some(new) = new.filter(|new| !Pod(new).node().is_empty()) else {
            if let Some(old) = old {
                self.stages.remove(uid(old));
                self.queue.remove(&Key::Pod(uid(old).to_owned()));
            }
            return;
        };
        let stage = lifecycle::stage(Pod(new));
        if self
            .stages
            .get(uid(new))
            .is_none_or(|(before, _)| *before != stage)
        {
            self.stages.insert(uid(new).to_owned(), (stage, now));
        }
        self.queue.add(Key::Pod(uid(new).to_owned()));
    }

    fn step(&mut self, context: &Context, uid: &str) -> Result<(), Status> {
        let Some(pod) = context
            .index
            .get(uid)
            .map(|entry| Object::clone(&entry.object))
        else {
            return Ok(());
        };
        let Some((_, since)) = self.stages.get(uid) else {
            return Ok(());
        };
        let view = Pod(&pod);
        // A node that does not exist has no kubelet; the pod collector removes its pods.
        let Ok(node) = context.api.get(&kinds::NODES, "", view.node()) else {
            return Ok(());
        };
        if context.stopped.contains(view.node()) {
            return Ok(());
        }
        let now = context.now();
        let booted = context.stopped.booted(view.node());
        let next = if booted.is_some_and(|booted| lifecycle::runs_since_before(view, booted)) {
            Step::StopForBoot
        } else {
            let resize = lifecycle::next_of_resize(view, || hold_of_resize(context, view, &node));
            resize.unwrap_or_else(|| lifecycle::next(view, *since, &context.settings, now))
        };
        if condition(&pod, RESIZE_PENDING).is_some() {
            let again = Instant::now() + RESIZE_RETRY;
            self.queue.add_at(Key::Pod(uid.to_owned()), again);
        }
        match next {
            Step::Rest => Ok(()),
            Step::Wait(until) => {
                self.queue
                    .add_at(Key::Pod(uid.to_owned()), context.instant(until));
                Ok(())
            }
            Step::Remove => {
                let at_once = Deletion {
                    grace_seconds: Some(0),
                    ..Deletion::default()
                };
                ignore_not_found(context.delete(&kinds::PODS, &pod, at_once))
            }
            step => {
                let place = self.place(&pod, &node);
                ignore_not_found(context.edit(
                    MANAGER,
                    (&kinds::PODS, Some("status")),
                    &pod,
                    |pod| {
                        report(pod, step, &place, now);
                    },
                ))
            }
        }
    }

    /// The addresses of a pod; one that it has stays.
    fn place(&mut self, pod: &Value, node: &Value) -> Place {
        let addresses = object::list(node, "/status/addresses");
        let internal = addresses
            .iter()
            .find(|address| text(address, "/type") == "InternalIP");
        let host_ip = internal
            .map(|address| text(address, "/address"))
            .unwrap_or_default()
            .to_owned();
        let pod_ip = match text(pod, "/status/podIP") {
            "" if object::flag(pod, "/spec/hostNetwork") => host_ip.clone(),
            "" => {
                self.addresses_given = self.addresses_given % (POD_ADDRESSES - 2) + 1;
                let [_, high, middle, low] = self.addresses_given.to_be_bytes();
                format!("10.{}.{middle}.{low}", 64 + high)
            }
            given => given.to_owned(),
        };
        Place { host_ip, pod_ip }
    }

    fn heartbeat(&mut self, context: &Context, node: &str) -> Result<(), Status> {
        let Ok(object) = context.api.get(&kinds::NODES, "", node) else {
            return Ok(());
        };
        if context.stopped.contains(node) {
            return Ok(());
        }
        self.queue.add_at(
            Key::Heartbeat(node.to_owned()),
            Instant::now() + context.settings.heartbeat,
        );
        renew_lease(context, &object)?;
        let now = context.now();
        // Most heartbeats change nothing.
        let reported = self.reported.get(node);
        let is_due = reported.is_some_and(|(_, at)| at.elapsed() >= STATUS_REPORT);
        if !is_due && reported.is_some_and(|(reported, _)| Arc::ptr_eq(reported, &object)) {
            return Ok(());
        }
        let report = |node: &mut Value| {
            first_report(node, now);
            if is_due {
                date_conditions(node, now);
            }
        };
        let mut reports = Value::clone(&object);
        report(&mut reports);
        if reports == *object {
            let at = reported.map_or_else(Instant::now, |(_, at)| *at);
            self.reported.insert(node.to_owned(), (object, at));
            return Ok(());
        }
        self.reported.remove(node);
        let status = (&*kinds::NODES, Some("status"));
        ignore_not_found(context.edit(MANAGER, status, &object, report))
    }
}

/// Why a node can't give a pod the resources of its spec; `None` if it can.
fn hold_of_resize(context: &Context, pod: Pod<'_>, node: &Value) -> Option<Hold> {
    let mut room = Amounts::read(map(node, "/status/allocatable"));
    let needed = Amounts::of_pod(pod);
    if !needed.fits(&room) {
        return Some(Hold::Infeasible);
    }
    let others = context.index.pods_on(pod.node());
    for other in others.filter(|other| uid(other) != pod.uid() && !Pod(other).is_terminal()) {
        room.subtract(&Amounts::of_pod(Pod(other)));
    }
    (!needed.fits(&room)).then_some(Hold::Deferred)
}

fn renew_lease(context: &Context, node: &Value) -> Result<(), Status> {
    let now = to_micro_time(context.now());
    let name = object::name(node);
    let renewed = (context.api).touch(&kinds::LEASES, LEASE_NAMESPACE, name, |lease| {
        lease["spec"]["renewTime"] = json!(now);
    });
    if renewed.as_ref().is_err_and(|status| status.code == 404) {
        let owner = json!({"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid(node)});
        let lease = json!({
            "metadata": {"name": name, "namespace": LEASE_NAMESPACE, "ownerReferences": [owner]},
            "spec": {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": now},
        });
        return context.create(MANAGER, &kinds::LEASES, lease).map(|_| ());
    }
    renewed
}

impl Controller for Kubelets {
    type Key = Key;
    type Failure = Status;

    fn is_managed(&self) -> bool {
        false
    }

    fn queue(&mut self) -> &mut Queue<Key> {
        &mut self.queue
    }

    fn observe(&mut self, change: &Change, context: &Context) {
        if change.kind == *kinds::PODS {
            self.observe_pod(change.old.as_ref(), change.new.as_ref(), context.now());
        } else if change.kind == *kinds::NODES {
            match (&change.old, &change.new) {
                (None, Some(node)) => self.power_changed(object::name(node), context),
                (Some(node), None) => {
                    self.reported.remove(object::name(node));
                    self.queue
                        .remove(&Key::Heartbeat(object::name(node).to_owned()));
                }
                _ => {}
            }
        }
    }

    fn power_changed(&mut self, node: &str, context: &Context) {
        if !context.stopped.contains(node) {
            self.queue.add(Key::Heartbeat(node.to_owned()));
            for pod in context.index.pods_on(node) {
                self.queue.add(Key::Pod(uid(pod).to_owned()));
            }
        }
    }

    fn sync(&mut self, context: &mut Context, key: &Key) -> Result<(), Status> {
        match key {
            Key::Pod(uid) => self.step(context, uid),
            Key::Heartbeat(node) => self.heartbeat(context, node),
        }
    }
}
