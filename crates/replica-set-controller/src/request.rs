//! The requests that carry out the actions of a plan. Each is conditional: on the uid of the pod, and on its version where a pod that
//! has changed must be left alone.

use std::collections::BTreeMap;

use fedrs_api::{ValidLocalReplicaSet, annotations, labels, names};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::{
    change::Patch,
    in_place::InPlaceRecord,
    observed_pod::ObservedPod,
    plan::Action,
    pod::Pod,
    pod_template::{CompleteTemplate, hash_text, owner_reference},
};

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
    pub pods: &'a BTreeMap<String, ObservedPod>,
    /// The time by the controller's clock.
    pub now: Timestamp,
}

impl Requests<'_> {
    /// The request for `action`; `None` if its pod is not known any more.
    #[must_use]
    pub fn of(&self, action: &Action<'_>) -> Option<Request> {
        let needs_version = action.needs_version();
        match action {
            Action::Create { name, prefers, .. } => Some(self.create(name, prefers.as_deref())),
            Action::Remove { pod, .. } => self.delete(pod, needs_version, &json!({})),
            Action::ForceRemove { pod, .. } => {
                self.delete(pod, needs_version, &json!({ "gracePeriodSeconds": 0 }))
            }
            Action::Adopt { pod } => {
                let owners = json!({ "ownerReferences": [owner_reference(self.set)] });
                self.patch(pod, "", &owners, Map::new())
            }
            Action::Release { pod } => {
                let owner = json!({ "$patch": "delete", "uid": self.set.uid });
                self.patch(pod, "", &json!({ "ownerReferences": [owner] }), Map::new())
            }
            Action::CloseGate { pod } => self.gate(pod, "False", "Updating"),
            Action::OpenGate { pod } => self.gate(pod, "True", "UpToDate"),
            Action::Patch { pod, patch } => self.update(pod, patch),
        }
    }

    fn create(&self, name: &str, prefers: Option<&str>) -> Request {
        let peers: Vec<_> = self.pods.values().filter_map(ObservedPod::labels).collect();
        Request {
            verb: Verb::Create,
            path: self.collection(),
            body: self.template.pod(self.set, (name, prefers), &peers),
        }
    }

    fn delete(&self, pod: &Pod<'_>, needs_version: bool, options: &Value) -> Option<Request> {
        let observed = self.pods.get(pod.uid)?;
        let mut preconditions = json!({ "uid": pod.uid });
        if needs_version {
            preconditions["resourceVersion"] = observed.resource_version().into();
        }
        let mut body = options.clone();
        body["preconditions"] = preconditions;
        Some(Request {
            verb: Verb::Delete,
            path: format!("{}/{}", self.collection(), pod.name),
            body,
        })
    }

    fn gate(&self, pod: &Pod<'_>, status: &str, reason: &str) -> Option<Request> {
        let condition = json!({
            "type": names::IN_PLACE_UPDATE,
            "status": status,
            "reason": reason,
            "lastTransitionTime": format!("{:.0}", self.now),
        });
        let status = json!({ "conditions": [condition] });
        let fields = Map::from_iter([("status".to_owned(), status)]);
        self.patch(pod, "/status", &json!({}), fields)
    }

    /// Updates a pod in place, and records which restarts are waited for.
    fn update(&self, pod: &Pod<'_>, patch: &Patch) -> Option<Request> {
        let observed = self.pods.get(pod.uid)?;
        let record = InPlaceRecord::new(patch, &observed.containers(), self.now);
        let record = serde_json::to_string(&record).unwrap_or_default();
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
            let all = observed.tolerations().iter().chain(&patch.tolerations);
            spec.insert("tolerations".to_owned(), all.cloned().collect());
        }
        let metadata = json!({ "labels": new_labels, "annotations": new_annotations });
        let fields = Map::from_iter([("spec".to_owned(), Value::Object(spec))]);
        self.patch(pod, "", &metadata, fields)
    }

    /// Changes a pod that still has the version that was decided from.
    fn patch(
        &self,
        pod: &Pod<'_>,
        subresource: &str,
        metadata: &Value,
        mut fields: Map<String, Value>,
    ) -> Option<Request> {
        let observed = self.pods.get(pod.uid)?;
        let mut metadata = metadata.clone();
        metadata["uid"] = pod.uid.into();
        metadata["resourceVersion"] = observed.resource_version().into();
        fields.insert("metadata".to_owned(), metadata);
        Some(Request {
            verb: Verb::Patch,
            path: format!("{}/{}{subresource}", self.collection(), pod.name),
            body: Value::Object(fields),
        })
    }

    fn collection(&self) -> String {
        format!("/api/v1/namespaces/{}/pods", self.set.namespace)
    }
}
