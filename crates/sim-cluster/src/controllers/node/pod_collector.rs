//! The pod collector: removes the pods of nodes that no longer exist, some time after the node.

use serde_json::json;
use tokio::time::Instant;

use crate::object::Object;
use crate::resources::kinds;
use crate::status::Status;
use crate::store::Change;

use crate::controllers::context::{Context, Deletion, ignore_not_found};
use crate::controllers::controller::Controller;
use crate::controllers::pod::Pod;
use crate::controllers::queue::Queue;
use crate::object::{self, Condition, set_condition, uid};

const MANAGER: &str = "kube-controller-manager";

/// Pods, by uid, whose node may no longer exist.
#[derive(Debug)]
pub(crate) struct PodCollector {
    queue: Queue<String>,
}

impl PodCollector {
    pub(crate) fn new(context: &Context) -> Self {
        Self {
            queue: Queue::new(context.settings.sync_latency),
        }
    }

    fn suspect(&mut self, pod: &Object, context: &Context) {
        self.queue.add_at(
            uid(pod).to_owned(),
            Instant::now() + context.settings.pod_collection_delay,
        );
    }
}

fn collect(context: &Context, pod_uid: &str) -> Result<(), Status> {
    let Some(pod) = context
        .index
        .get(pod_uid)
        .map(|entry| Object::clone(&entry.object))
    else {
        return Ok(());
    };
    let node = Pod(&pod).node();
    if node.is_empty() || context.api.get(&kinds::NODES, "", node).is_ok() {
        return Ok(());
    }
    let time = context.now();
    if !Pod(&pod).is_terminal() {
        let target = Condition {
            kind: "DisruptionTarget",
            status: "True",
            reason: "DeletionByPodGC",
            message: "PodGC: node no longer exists",
        };
        ignore_not_found(
            context.edit(MANAGER, (&kinds::PODS, Some("status")), &pod, |pod| {
                pod["status"]["phase"] = json!("Failed");
                set_condition(pod, target, time);
            }),
        )?;
    }
    let at_once = Deletion {
        grace_seconds: Some(0),
        ..Deletion::default()
    };
    ignore_not_found(context.delete(&kinds::PODS, &pod, at_once))
}

impl Controller for PodCollector {
    type Key = String;
    type Failure = Status;

    fn queue(&mut self) -> &mut Queue<String> {
        &mut self.queue
    }

    fn observe(&mut self, change: &Change, context: &Context) {
        let (old, new) = (change.old.as_ref(), change.new.as_ref());
        if change.kind == *kinds::NODES {
            if let (Some(old), None) = (old, new) {
                for pod in context.index.pods_on(object::name(old)) {
                    self.suspect(pod, context);
                }
            }
        } else if change.kind == *kinds::PODS
            && let Some(pod) = new.filter(|pod| !Pod(pod).node().is_empty())
            && old.is_none_or(|old| Pod(old).node().is_empty())
            && context.api.get(&kinds::NODES, "", Pod(pod).node()).is_err()
        {
            self.suspect(pod, context);
        }
    }

    fn sync(&mut self, context: &mut Context, pod: &String) -> Result<(), Status> {
        collect(context, pod)
    }
}
