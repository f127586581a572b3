//! What the controller reads of objects in members, as decoded from their JSON, and what it has read of one member.

use std::collections::{BTreeMap, BTreeSet};

use fedrs_api::{
    LocalReplicaSet, MaintenanceMark, MigrationPhase, annotations, selector,
    selector::LabelSelector,
};
use k8s_openapi::{
    Resource as _, api::apps::v1::ReplicaSet, apimachinery::pkg::apis::meta::v1::Time,
};
use kube::Resource;
use reflector::partial::{for_each_entry, name, null_as_default, printable_text};
use serde::{Deserialize, Deserializer};

/// A node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct Node {
    pub(crate) metadata: NodeMeta,
    #[serde(deserialize_with = "null_as_default")]
    pub(crate) spec: NodeSpec,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct NodeMeta {
    #[serde(deserialize_with = "name")]
    pub(crate) name: String,
    #[serde(deserialize_with = "name")]
    pub(crate) uid: String,
    #[serde(deserialize_with = "name")]
    pub(crate) resource_version: String,
    #[serde(deserialize_with = "null_as_default")]
    pub(crate) labels: BTreeMap<String, String>,
    /// The annotation of a Maintenance.
    #[serde(deserialize_with = "annotation_of_maintenance", rename = "annotations")]
    pub(crate) annotation: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct NodeSpec {
    #[serde(deserialize_with = "null_as_default")]
    pub(crate) unschedulable: bool,
}

fn annotation_of_maintenance<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<String>, D::Error> {
    let mut annotation = None;
    for_each_entry(from, &[annotations::MAINTENANCE], |_, value| {
        // A longer one is no mark.
        let is_short = value.len() <= MaintenanceMark::BYTES_MAX;
        annotation = Some(if is_short { value } else { "" }.to_owned());
    })?;
    Ok(annotation)
}

/// The longest value of a label.
const LABEL_BYTES_MAX: usize = 63;

impl Node {
    /// Forgets the labels that neither `selector` nor a mark is about: a member may send any number.
    pub(crate) fn keep_labels(&mut self, selector: &LabelSelector) {
        let keys = selector::keys(selector).chain([annotations::EVICT]);
        let keys: BTreeSet<_> = keys.collect();
        let labels = &mut self.metadata.labels;
        labels.retain(|key, value| keys.contains(&**key) && value.len() <= LABEL_BYTES_MAX);
    }

    pub(crate) fn name(&self) -> &str {
        &self.metadata.name
    }

    /// Whether `selector`, which is valid, selects it.
    pub(crate) fn is_selected(&self, selector: &LabelSelector) -> bool {
        selector::matches(selector, &self.metadata.labels)
    }

    /// The mark that it has. An annotation that is no mark counts as none.
    pub(crate) fn mark(&self) -> Option<MaintenanceMark> {
        MaintenanceMark::parse(self.metadata.annotation.as_deref()?)
    }

    /// The mark of the Maintenance with this uid.
    pub(crate) fn mark_of(&self, uid: &str) -> Option<MaintenanceMark> {
        self.mark().filter(|mark| mark.uid == uid)
    }

    /// The value of the label that asks its pods to leave.
    pub(crate) fn evicts(&self) -> Option<&str> {
        let label = self.metadata.labels.get(annotations::EVICT);
        label.map(String::as_str).filter(|value| *value != "false")
    }
}

/// A pod on a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct Pod {
    metadata: PodMeta,
    #[serde(deserialize_with = "null_as_default")]
    status: PodStatus,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PodMeta {
    #[serde(deserialize_with = "name")]
    namespace: String,
    #[serde(deserialize_with = "name")]
    name: String,
    #[serde(deserialize_with = "null_as_default")]
    owner_references: Vec<Owner>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Owner {
    #[serde(deserialize_with = "null_as_default")]
    api_version: String,
    #[serde(deserialize_with = "null_as_default")]
    kind: String,
    #[serde(deserialize_with = "null_as_default")]
    controller: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct PodStatus {
    #[serde(deserialize_with = "null_as_default")]
    phase: String,
}

impl Pod {
    /// Its namespace and name, if it is of a LocalReplicaSet or a ReplicaSet and has not ended. Others are moved by nobody here.
    pub(crate) fn left(self) -> Option<PodId> {
        let local = (
            LocalReplicaSet::api_version(&()),
            LocalReplicaSet::kind(&()),
        );
        let kinds = [
            (&*local.0, &*local.1),
            (ReplicaSet::API_VERSION, ReplicaSet::KIND),
        ];
        let is_set = |owner: &Owner| {
            owner.controller && kinds.contains(&(&*owner.api_version, &*owner.kind))
        };
        let has_ended = matches!(&*self.status.phase, "Succeeded" | "Failed");
        let is_left = !has_ended && self.metadata.owner_references.iter().any(is_set);
        is_left.then_some((self.metadata.namespace, self.metadata.name))
    }
}

/// A MigrationRequest.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Request {
    pub(crate) metadata: RequestMeta,
    pub(crate) spec: RequestSpec,
    #[serde(deserialize_with = "null_as_default")]
    pub(crate) status: RequestStatus,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct RequestMeta {
    #[serde(deserialize_with = "name")]
    pub(crate) namespace: String,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct RequestSpec {
    #[serde(deserialize_with = "name")]
    pub(crate) pod_name: String,
    pub(crate) deadline: Option<Time>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct RequestStatus {
    /// A phase that only a later version knows is shown as none.
    #[serde(deserialize_with = "known_phase")]
    pub(crate) phase: Option<MigrationPhase>,
    #[serde(deserialize_with = "short_text")]
    pub(crate) message: String,
    pub(crate) until: Option<Time>,
    pub(crate) deadline: Option<Time>,
}

/// The most characters of a message that the status shows.
const MESSAGE_CHARS_MAX: usize = 512;

fn short_text<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let mut text = printable_text(from)?;
    if let Some((end, _)) = text.char_indices().nth(MESSAGE_CHARS_MAX) {
        text.truncate(end);
        text.shrink_to_fit();
    }
    Ok(text)
}

fn known_phase<'de, D: Deserializer<'de>>(from: D) -> Result<Option<MigrationPhase>, D::Error> {
    let phase = Option::<String>::deserialize(from)?;
    Ok(phase.as_deref().and_then(MigrationPhase::parse))
}

impl Request {
    /// The pod that it is about.
    pub(crate) fn pod(&self) -> PodId {
        (self.metadata.namespace.clone(), self.spec.pod_name.clone())
    }
}

/// A namespace and the name of a pod.
pub(crate) type PodId = (String, String);

/// What was read of one member.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Observed {
    /// Nodes that match, have the label of a mark, or are cordoned, by name.
    pub(crate) nodes: BTreeMap<String, Node>,
    /// The pods of LocalReplicaSets and ReplicaSets on the nodes that were asked for, by node.
    pub(crate) pods: BTreeMap<String, BTreeSet<PodId>>,
    /// All MigrationRequests, if pods are left.
    pub(crate) requests: Vec<Request>,
    /// Whether it has no MigrationRequests, although pods are left: nobody there moves them.
    pub(crate) lacks_requests: bool,
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn node(metadata: &Value) -> Node {
        serde_json::from_value(json!({ "metadata": metadata, "spec": null })).unwrap()
    }

    #[test]
    fn s5_of_a_node_only_what_matters_is_kept() {
        let long = "a".repeat(20_000);
        let selector = LabelSelector {
            match_labels: Some([("rack".to_owned(), "r7".to_owned())].into()),
            ..LabelSelector::default()
        };
        let mut node = node(&json!({
            "name": "n1", "uid": "u", "resourceVersion": "1",
            "labels": { "rack": "r7", "fedrs.dev/evict": "true", "other": long },
            "annotations": { annotations::MAINTENANCE: long, "other": long },
        }));
        assert!(node.is_selected(&selector));
        assert_eq!(node.metadata.annotation.as_deref(), Some(""));
        node.keep_labels(&selector);
        assert!(node.is_selected(&selector));
        assert_eq!(node.evicts(), Some("true"));
        assert_eq!(node.metadata.labels.len(), 2);
    }

    #[test]
    fn s2_absent_and_null_fields_are_read() {
        for metadata in [json!({}), json!({ "labels": null, "annotations": {} })] {
            let node = node(&metadata);
            assert_eq!((node.mark(), node.evicts()), (None, None));
            assert!(!node.spec.unschedulable);
        }
        let request =
            json!({ "metadata": {}, "spec": { "podName": "web" }, "status": { "phase": "Later" } });
        let request: Request = serde_json::from_value(request).unwrap();
        assert_eq!(request.status.phase, None);
    }

    #[test]
    fn m15_only_running_pods_of_replica_sets_of_both_kinds_are_left() {
        const LOCAL: &str = "fedrs.dev/v1alpha1";
        let of = |api: &str, kind: &str, phase: &str| {
            let owner = json!({ "apiVersion": api, "kind": kind, "controller": true });
            let metadata =
                json!({ "namespace": "shop", "name": "web", "ownerReferences": [owner] });
            let pod = json!({ "metadata": metadata, "status": { "phase": phase } });
            serde_json::from_value::<Pod>(pod).unwrap().left()
        };
        let id = Some(("shop".to_owned(), "web".to_owned()));
        for (api, kind, phase, expected) in [
            (LOCAL, "LocalReplicaSet", "Running", &id),
            (LOCAL, "LocalReplicaSet", "Pending", &id),
            (LOCAL, "LocalReplicaSet", "Failed", &None),
            ("apps/v1", "ReplicaSet", "Running", &id),
            ("apps/v1", "ReplicaSet", "Succeeded", &None),
            (LOCAL, "ReplicaSet", "Running", &None),
            ("apps/v1", "DaemonSet", "Running", &None),
            ("apps/v1", "StatefulSet", "Running", &None),
            ("batch/v1", "Job", "Running", &None),
        ] {
            assert_eq!(&of(api, kind, phase), expected, "{api} {kind} {phase}");
        }
    }
}
