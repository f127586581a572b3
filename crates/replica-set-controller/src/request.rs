//! The requests that carry out the actions of a plan. Each is conditional: on the uid of the pod, and on its version where a pod that
//! has changed must be left alone.

use std::{collections::BTreeMap, sync::Arc};

use fedrs_api::{ValidLocalReplicaSet, annotations, finalizers, labels, names};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::{
    change::Patch,
    in_place::InPlaceRecord,
    observed_pod::ObservedPod,
    plan::{Action, Start},
    pod::{DRAINING, Gate, Guard, Pod},
    pod_template::{CompleteTemplate, SlotUse, hash_text, owner_reference},
    resize,
};

/// Status and reason of the gate's condition.
const OPEN: (&str, &str) = ("True", "UpToDate");
const CLOSED: (&str, &str) = ("False", "Updating");
const DRAINED: (&str, &str) = ("False", DRAINING);

/// The directive of strategic merge patches that takes finalizers off the list.
const DELETE_FINALIZERS: &str = "$deleteFromPrimitiveList/finalizers";

/// A request to the API server.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// What it does.
    pub verb: Verb,
    /// The path of the object, of its subresource, or of the collection to create it in.
    pub path: String,
    /// The object, the DeleteOptions, or the patch.
    pub body: Value,
}

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Creates the object.
    Create,
    /// Deletes it.
    Delete,
    /// Changes it by a strategic merge patch, which adds to lists by their keys.
    Patch,
}

/// What requests are made from.
#[derive(Clone, Copy)]
pub struct Requests<'a> {
    /// The set.
    pub set: &'a ValidLocalReplicaSet,
    /// The complete template of its pods.
    pub template: &'a CompleteTemplate,
    /// Its pods, by uid.
    pub pods: &'a BTreeMap<String, Arc<ObservedPod>>,
    /// The key of the label that pods of one shard have in common (M6).
    pub shard_label: Option<&'a str>,
    /// Whether new pods stay until their containers have stopped when they are removed (M11).
    pub adds_finalizer: bool,
    /// The time by the controller's clock.
    pub now: Timestamp,
}

impl Requests<'_> {
    /// The requests for the actions of one plan, in their order. None for a pod that is not known any more.
    #[must_use]
    pub fn of<'a>(
        &self,
        actions: impl IntoIterator<Item = &'a Action<'a>>,
    ) -> Vec<Option<Request>> {
        let pods = self.pods.values();
        let labels = pods.filter_map(|pod| pod.labels_with_slots(self.set));
        let mut slots_in_use = self.template.slots_of(labels);
        let requests = actions.into_iter();
        let requests = requests.map(|action| self.request(action, &mut slots_in_use));
        requests.collect()
    }

    fn request(&self, action: &Action<'_>, slots_in_use: &mut SlotUse) -> Option<Request> {
        match action {
            Action::Create {
                name,
                prefers,
                shard,
                start,
                ..
            } => {
                let name = (&**name, prefers.as_deref());
                let mut body = self.template.pod(self.set, name, slots_in_use);
                if let (Some(label), Some(shard)) = (self.shard_label, shard) {
                    body["metadata"]["labels"][label] = shard.as_str().into();
                }
                if *start == Start::Gated {
                    body["spec"]["schedulingGates"] = json!([{ "name": names::START }]);
                }
                if self.adds_finalizer {
                    body["metadata"]["finalizers"] = json!([finalizers::SHUTDOWN]);
                }
                Some(Request {
                    verb: Verb::Create,
                    path: self.collection(),
                    body,
                })
            }
            Action::Remove { pod, .. } => self.delete(action, pod, json!({})),
            Action::ForceRemove { pod, .. } => {
                self.delete(action, pod, json!({ "gracePeriodSeconds": 0 }))
            }
            Action::Adopt { pod } => {
                let owner = owner_reference(self.set);
                self.patch(
                    pod,
                    "",
                    json!({ "metadata": { "ownerReferences": [owner] } }),
                )
            }
            Action::Release { pod } => {
                let owner = json!({ "$patch": "delete", "uid": self.set.uid });
                let mut metadata = json!({ "ownerReferences": [owner] });
                if pod.guard != Guard::Absent {
                    metadata[DELETE_FINALIZERS] = json!([finalizers::SHUTDOWN]);
                }
                self.patch(pod, "", json!({ "metadata": metadata }))
            }
            Action::AddFinalizer { pod } => {
                let metadata = json!({ "finalizers": [finalizers::SHUTDOWN] });
                self.patch(pod, "", json!({ "metadata": metadata }))
            }
            Action::RemoveFinalizer { pod } => {
                self.pods.get(pod.uid).map(|pod| remove_finalizer(pod))
            }
            Action::CloseGate { pod } => self.gate(action, pod, CLOSED),
            Action::Drain { pod } => self.gate(action, pod, DRAINED),
            Action::OpenGate { pod } => self.gate(action, pod, OPEN),
            Action::Patch { pod, patch } => self.update(pod, patch),
            Action::Resize { pod } => {
                let record = self.pods.get(pod.uid)?.in_place_record()?;
                self.patch(pod, "/resize", resize::patch(&record.resizes))
            }
        }
    }

    /// Deletes a pod with these DeleteOptions.
    fn delete(&self, action: &Action<'_>, pod: &Pod<'_>, mut options: Value) -> Option<Request> {
        let observed = self.pods.get(pod.uid)?;
        options["preconditions"]["uid"] = pod.uid.into();
        if action.needs_version() {
            options["preconditions"]["resourceVersion"] = observed.resource_version().into();
        }
        Some(Request {
            verb: Verb::Delete,
            path: format!("{}/{}", self.collection(), pod.name),
            body: options,
        })
    }

    fn gate(&self, action: &Action<'_>, pod: &Pod<'_>, state: (&str, &str)) -> Option<Request> {
        let patch = gate_patch(state, self.now);
        if action.needs_version() {
            return self.patch(pod, "/status", patch);
        }
        Some(patch_any(self.pod_ref(pod), "/status", patch))
    }

    /// Updates a pod in place, and records which restarts are waited for.
    fn update(&self, pod: &Pod<'_>, patch: &Patch) -> Option<Request> {
        let observed = self.pods.get(pod.uid)?;
        let before = (&*observed.containers(), observed.generation());
        let record = InPlaceRecord {
            drained: match pod.gate {
                Gate::Draining { since } => Some(since),
                _ => None,
            },
            ..InPlaceRecord::new(patch, before, self.now)
        };
        let record = serde_json::to_string(&record).expect("a record is JSON");
        let mut new_labels = json!(patch.labels);
        new_labels[labels::REVISION_HASH] = hash_text(self.template.hash).into();
        let mut new_annotations = json!(patch.annotations);
        new_annotations[annotations::IN_PLACE_UPDATE] = record.into();
        let mut spec = Map::new();
        for (list, images) in [
            ("containers", &patch.images),
            ("initContainers", &patch.sidecar_images),
        ] {
            if !images.is_empty() {
                let containers = images.iter();
                let containers =
                    containers.map(|(name, image)| json!({ "name": name, "image": image }));
                spec.insert(list.to_owned(), containers.collect());
            }
        }
        if !patch.tolerations.is_empty() {
            // Not merged by a key: what the pod has is written again.
            let mut all = observed.tolerations();
            all.extend(patch.tolerations.iter().cloned());
            spec.insert("tolerations".to_owned(), all.into());
        }
        let metadata = json!({ "labels": new_labels, "annotations": new_annotations });
        self.patch(pod, "", json!({ "metadata": metadata, "spec": spec }))
    }

    /// Changes a pod that still has the version that was decided from.
    fn patch(&self, pod: &Pod<'_>, subresource: &str, mut patch: Value) -> Option<Request> {
        let observed = self.pods.get(pod.uid)?;
        patch["metadata"]["resourceVersion"] = observed.resource_version().into();
        Some(patch_any(self.pod_ref(pod), subresource, patch))
    }

    fn pod_ref<'p>(&'p self, pod: &Pod<'p>) -> PodRef<'p> {
        (&self.set.namespace, pod.name, pod.uid)
    }

    fn collection(&self) -> String {
        collection(&self.set.namespace)
    }
}

/// The request that opens the gate of a pod that has just been created, so that its kubelet finds it open; none if it has no such gate.
#[must_use]
pub fn open_gate(pod: &ObservedPod, now: Timestamp) -> Option<Request> {
    let of = (pod.namespace(), pod.name(), pod.uid());
    let is_new = pod.gate() == Gate::Unset;
    is_new.then(|| patch_any(of, "/status", gate_patch(OPEN, now)))
}

/// The request that removes the finalizer of a pod that still has the version that was decided from.
#[must_use]
pub fn remove_finalizer(pod: &ObservedPod) -> Request {
    let of = (pod.namespace(), pod.name(), pod.uid());
    let version = pod.resource_version();
    let metadata = json!({ "resourceVersion": version, DELETE_FINALIZERS: [finalizers::SHUTDOWN] });
    patch_any(of, "", json!({ "metadata": metadata }))
}

/// Namespace, name and uid.
type PodRef<'p> = (&'p str, &'p str, &'p str);

/// Changes a pod, whatever version it has: not another one of its name.
fn patch_any((namespace, name, uid): PodRef<'_>, subresource: &str, mut patch: Value) -> Request {
    patch["metadata"]["uid"] = uid.into();
    Request {
        verb: Verb::Patch,
        path: format!("{}/{name}{subresource}", collection(namespace)),
        body: patch,
    }
}

/// Merges the one condition into those of others.
fn gate_patch((status, reason): (&str, &str), now: Timestamp) -> Value {
    let condition = json!({
        "type": names::IN_PLACE_UPDATE,
        "status": status,
        "reason": reason,
        "lastTransitionTime": format!("{now:.0}"),
    });
    json!({ "status": { "conditions": [condition] } })
}

fn collection(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/pods")
}
