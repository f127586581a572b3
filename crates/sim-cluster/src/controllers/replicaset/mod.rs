//! The ReplicaSet controller: keeps the number of pods that a set specifies.
//!
//! ```text
//! pod or set changed -> set is queued -> plan (pure) -> adopt, release -> create or delete -> status (pure) -> write
//! ```
//!
//! A set whose pods cannot be created is retried with a growing delay.

mod plan;
mod ranking;
mod status;

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::object::Object;
use crate::resources::kinds;
use crate::status::Status;
use crate::store::Change;

use super::claim::{adopt, release};
use super::context::{Context, Deletion, ignore_not_found, is_namespace_terminating};
use super::controller::Controller;
use super::event_correlator::NewEvent;
use super::index::controller_reference;
use super::pod::Pod;
use super::queue::Queue;
use crate::object::{controller_of, name, namespace, text, uid};
use crate::selectors::object as selector;
use plan::{Manage, Plan, slow_start, sync};

const SOURCE: &str = "replicaset-controller";
const MANAGER: &str = "kube-controller-manager";

/// The controller's queue; keys are the sets' uids.
#[derive(Debug)]
pub(crate) struct ReplicaSets {
    queue: Queue<String>,
}

impl ReplicaSets {
    pub(crate) fn new(context: &Context) -> Self {
        Self {
            queue: Queue::new(context.settings.sync_latency),
        }
    }

    /// The set that controls the pod, otherwise the sets of its namespace that might adopt it.
    fn add_sets_of(&mut self, pod: &Object, context: &Context) {
        let pod = Pod(pod);
        if !pod.controller_uid().is_empty() {
            if context
                .index
                .get(pod.controller_uid())
                .is_some_and(|owner| owner.kind == *kinds::REPLICA_SETS)
            {
                self.queue.add(pod.controller_uid().to_owned());
            }
            return;
        }
        for set in context.index.sets(pod.namespace()) {
            if selector::matches(&set["spec"]["selector"], pod.labels()) {
                self.queue.add(uid(set).to_owned());
            }
        }
    }
}

impl Controller for ReplicaSets {
    type Key = String;
    type Failure = Status;

    fn queue(&mut self) -> &mut Queue<String> {
        &mut self.queue
    }

    fn observe(&mut self, change: &Change, context: &Context) {
        if change.kind == *kinds::REPLICA_SETS {
            match (&change.new, &change.old) {
                (Some(set), _) => self.queue.add(uid(set).to_owned()),
                (None, Some(old)) => self.queue.remove(&uid(old).to_owned()),
                (None, None) => {}
            }
        } else if change.kind == *kinds::PODS {
            let (old, new) = (change.old.as_ref(), change.new.as_ref());
            // A removed or released pod concerns the set that controlled it; a removed orphan concerns no set.
            let owner = |pod: &Object| Pod(pod).controller_uid().to_owned();
            if let Some(old) = old.filter(|old| {
                !owner(old).is_empty() && new.is_none_or(|new| owner(new) != owner(old))
            }) {
                self.add_sets_of(old, context);
            }
            if let Some(new) = new {
                self.add_sets_of(new, context);
            }
        }
    }

    fn sync(&mut self, context: &mut Context, set_uid: &String) -> Result<(), Status> {
        let Some(entry) = context.index.get(set_uid) else {
            return Ok(());
        };
        let set = Object::clone(&entry.object);
        let (outcome, look_again) = carry_out(context, &set);
        if let Some(time) = look_again {
            self.queue.add_at(set_uid.clone(), context.instant(time));
        }
        outcome
    }
}

/// Reconciles one set. Returns when the next pod becomes available.
fn carry_out(context: &mut Context, set: &Object) -> (Result<(), Status>, Option<Timestamp>) {
    let own = context.index.pods_of(uid(set));
    let objects: Vec<Object> = own
        .chain(context.index.orphans(namespace(set)))
        .cloned()
        .collect();
    let pods: Vec<Pod<'_>> = objects.iter().map(|pod| Pod(pod)).collect();
    let related = related_pods(context, set);
    let related: Vec<Pod<'_>> = related.iter().map(|pod| Pod(pod)).collect();
    let now = context.now();
    let plan = sync(set, &pods, &related, now);
    if let Err(status) = claim(context, set, &plan, &pods) {
        return (Err(status), None);
    }
    let managed = match &plan.manage {
        Manage::Nothing => Ok(()),
        Manage::Create(count) => create(context, set, *count),
        Manage::Delete(indexes) => delete(context, set, indexes.iter().map(|&index| pods[index])),
    };
    let claimed: Vec<Pod<'_>> = plan.claimed.iter().map(|&index| pods[index]).collect();
    let failure = managed.as_ref().err().map(|status| status.message.as_str());
    let written = match status::status(set, &claimed, plan.terminating.len(), failure, now) {
        Some(next) => ignore_not_found(context.edit(
            MANAGER,
            (&kinds::REPLICA_SETS, Some("status")),
            set,
            |set| set["status"] = next,
        )),
        None => Ok(()),
    };
    let look_again = status::next_available(set, &claimed, now)
        .and_then(|second| Timestamp::from_second(second).ok());
    (written.and(managed), look_again)
}

/// The pods of all sets with the same controller; none for a set without a controller.
fn related_pods(context: &Context, set: &Value) -> Vec<Object> {
    let Some(controller) = controller_of(set) else {
        return Vec::new();
    };
    let mut seen = BTreeSet::new();
    let sets = context.index.sets_of(text(controller, "/uid"));
    let pods = sets.flat_map(|related| context.index.pods_of(uid(related)));
    pods.filter(|pod| seen.insert(uid(pod).to_owned()))
        .cloned()
        .collect()
}

/// Adopts and releases pods. A pod that no longer exists is not an error.
fn claim(context: &Context, set: &Value, plan: &Plan, pods: &[Pod<'_>]) -> Result<(), Status> {
    for &index in &plan.release {
        release(context, MANAGER, (&kinds::PODS, pods[index].0), set)?;
    }
    for &index in &plan.adopt {
        let pod = (&*kinds::PODS, pods[index].0);
        adopt(context, MANAGER, pod, (&kinds::REPLICA_SETS, set))?;
    }
    Ok(())
}

/// Creates pods in growing batches, up to the first batch with a failure.
fn create(context: &mut Context, set: &Value, count: usize) -> Result<(), Status> {
    for batch in slow_start(count) {
        let mut failure = None;
        for _ in 0..batch {
            match context.create(MANAGER, &kinds::PODS, pod_from(set)) {
                Ok(pod) => {
                    let message = format!("Created pod: {}", name(&pod));
                    note(context, set, "Normal", "SuccessfulCreate", &message);
                }
                // A terminating namespace accepts no pods, which needs no event.
                Err(status) if is_namespace_terminating(&status) => {}
                Err(status) => {
                    note(
                        context,
                        set,
                        "Warning",
                        "FailedCreate",
                        &format!("Error creating: {}", status.message),
                    );
                    failure.get_or_insert(status);
                }
            }
        }
        if let Some(status) = failure {
            return Err(status);
        }
    }
    Ok(())
}

fn delete<'a>(
    context: &mut Context,
    set: &Value,
    pods: impl Iterator<Item = Pod<'a>>,
) -> Result<(), Status> {
    let mut outcome = Ok(());
    for pod in pods {
        match context.delete(&kinds::PODS, pod.0, Deletion::default()) {
            Ok(()) => note(
                context,
                set,
                "Normal",
                "SuccessfulDelete",
                &format!("Deleted pod: {}", pod.name()),
            ),
            Err(status) if status.code == 404 => {}
            Err(status) => {
                note(
                    context,
                    set,
                    "Warning",
                    "FailedDelete",
                    &format!("Error deleting: {}", status.message),
                );
                outcome = outcome.and(Err(status));
            }
        }
    }
    outcome
}

fn note(context: &mut Context, set: &Value, kind: &str, reason: &str, message: &str) {
    context.record_event(
        &kinds::REPLICA_SETS,
        set,
        NewEvent {
            component: SOURCE,
            event_type: kind,
            reason,
            message,
        },
    );
}

/// A pod of the set's template.
fn pod_from(set: &Value) -> Value {
    let template = &set["spec"]["template"];
    let mut metadata = json!({
        "generateName": format!("{}-", name(set)), "namespace": namespace(set),
        "ownerReferences": [controller_reference(&kinds::REPLICA_SETS, set)],
    });
    for field in ["labels", "annotations", "finalizers"] {
        if let Some(value) = template["metadata"]
            .get(field)
            .filter(|value| !value.is_null())
        {
            metadata[field] = value.clone();
        }
    }
    json!({"metadata": metadata, "spec": template["spec"]})
}
