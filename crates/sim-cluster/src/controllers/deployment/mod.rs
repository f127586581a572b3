//! The Deployment controller: rolls out a template by a new ReplicaSet that grows and old ones that shrink.
//!
//! ```text
//! Deployment, ReplicaSet or pod changed -> Deployment is queued -> adopt, release -> plan (pure) -> writes, events
//! ```
//!
//! A Deployment that makes no progress is looked at again at its deadline. The deprecated rollback by an annotation does
//! not exist; `kubectl rollout undo` writes the template itself.

mod act;
mod conditions;
mod limits;
mod plan;
mod progress;
mod revisions;
mod rolling;
mod scaling;
mod status;
mod template;
mod views;

use serde_json::Value;

use super::claim::{adopt, release};
use super::context::Context;
use super::controller::Controller;
use super::pod::Pod;
use super::queue::Queue;
use crate::object::{Object, controller_of, is_terminating, map, namespace, text, uid};
use crate::resources::kinds;
use crate::selectors::object as selector;
use crate::status::Status;
use crate::store::Change;
use act::{MANAGER, carry_out};
use plan::plan;
use views::{Deployment, Set};

/// The controller's queue; keys are the Deployments' uids.
#[derive(Debug)]
pub(crate) struct Deployments {
    queue: Queue<String>,
}

impl Deployments {
    pub(crate) fn new(context: &Context) -> Self {
        Self {
            queue: Queue::new(context.settings.sync_latency),
        }
    }

    /// The Deployment that controls the ReplicaSet, if there is one.
    fn add_controller_of(&mut self, set: &Object, context: &Context) {
        if let Some(deployment) = deployment_of(set, context) {
            self.queue.add(uid(deployment).to_owned());
        }
    }

    fn observe_set(&mut self, old: Option<&Object>, new: Option<&Object>, context: &Context) {
        let controller = |set: &Object| controller_of(set).cloned();
        let has_new_controller = old.map(controller) != new.map(controller);
        if let Some(old) = old.filter(|_| has_new_controller) {
            self.add_controller_of(old, context);
        }
        let Some(new) = new else {
            return;
        };
        if controller_of(new).is_some() {
            return self.add_controller_of(new, context);
        }
        // An orphan: a Deployment might adopt it.
        let labels = map(new, "/metadata/labels");
        if has_new_controller || old.and_then(|old| map(old, "/metadata/labels")) != labels {
            for deployment in context.index.deployments(namespace(new)) {
                if selector::matches(&deployment["spec"]["selector"], labels) {
                    self.queue.add(uid(deployment).to_owned());
                }
            }
        }
    }

    /// A Deployment that recreates its pods waits for the old ones to be removed.
    fn observe_removed_pod(&mut self, pod: &Object, context: &Context) {
        let set = context.index.get(Pod(pod).controller_uid());
        let deployment = set
            .filter(|entry| entry.kind == *kinds::REPLICA_SETS)
            .and_then(|entry| deployment_of(&entry.object, context));
        if let Some(deployment) = deployment.filter(|object| !Deployment(object).is_rolling()) {
            self.queue.add(uid(deployment).to_owned());
        }
    }
}

/// The Deployment that controls the ReplicaSet.
fn deployment_of<'a>(set: &Object, context: &'a Context) -> Option<&'a Object> {
    let controller = controller_of(set)?;
    let entry = context.index.get(text(controller, "/uid"))?;
    (entry.kind == *kinds::DEPLOYMENTS).then_some(&entry.object)
}

impl Controller for Deployments {
    type Key = String;
    type Failure = Status;

    fn queue(&mut self) -> &mut Queue<String> {
        &mut self.queue
    }

    fn observe(&mut self, change: &Change, context: &Context) {
        let (old, new) = (change.old.as_ref(), change.new.as_ref());
        if change.kind == *kinds::DEPLOYMENTS {
            match (new, old) {
                (Some(deployment), _) => self.queue.add(uid(deployment).to_owned()),
                (None, Some(old)) => self.queue.remove(&uid(old).to_owned()),
                (None, None) => {}
            }
        } else if change.kind == *kinds::REPLICA_SETS {
            self.observe_set(old, new, context);
        } else if change.kind == *kinds::PODS
            && let (Some(old), None) = (old, new)
        {
            self.observe_removed_pod(old, context);
        }
    }

    fn sync(&mut self, context: &mut Context, deployment_uid: &String) -> Result<(), Status> {
        let Some(entry) = context.index.get(deployment_uid) else {
            return Ok(());
        };
        let deployment = Object::clone(&entry.object);
        let sets = claim(context, &deployment)?;
        let sets: Vec<Set<'_>> = sets.iter().map(|set| Set(set)).collect();
        let has_running_pods = |set: Set<'_>| {
            let mut pods = context.index.pods_of(set.uid());
            pods.any(|pod| !Pod(pod).is_terminal())
        };
        let deployment = Deployment(&deployment);
        let plan = plan(deployment, &sets, has_running_pods, context.now());
        if let Some(time) = carry_out(context, deployment, plan)? {
            let due = context.instant(time);
            self.queue.add_at(deployment_uid.clone(), due);
        }
        Ok(())
    }
}

/// Adopts and releases ReplicaSets. Returns those of the Deployment.
fn claim(context: &Context, deployment: &Value) -> Result<Vec<Object>, Status> {
    let is_own = |set: &Object| {
        controller_of(set).map(|controller| text(controller, "/uid") == uid(deployment))
    };
    let sets = context.index.sets(namespace(deployment));
    let candidates = sets.filter(|set| is_own(set).unwrap_or(true));
    let candidates: Vec<Object> = candidates.cloned().collect();
    let selector = &deployment["spec"]["selector"];
    let mut claimed = Vec::new();
    for set in candidates {
        let is_orphan = is_own(&set).is_none();
        let matches = selector::matches(selector, map(&set, "/metadata/labels"));
        let target = (&*kinds::REPLICA_SETS, &*set);
        if matches && !is_orphan {
            claimed.push(set);
        } else if is_terminating(deployment) {
            // It neither adopts nor releases anything.
        } else if !is_orphan {
            release(context, MANAGER, target, deployment)?;
        } else if matches && !is_terminating(&set) {
            adopt(context, MANAGER, target, (&kinds::DEPLOYMENTS, deployment))?;
            claimed.push(set);
        }
    }
    Ok(claimed)
}
