//! The local ReplicaSet as fedrs writes it: an apps/v1 ReplicaSet of the FederatedReplicaSet's own name and namespace.
//!
//! It borrows from the FederatedReplicaSet, and its template stays a text. The order of the fields is that of their names:
//! the hashes of the texts are stored in members and statuses.

use std::collections::BTreeMap;

use fedrs_api::{JsonText, ValidFrs, ValidTemplate, annotations, labels};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde::Serialize;
use xxhash_rust::xxh3::xxh3_64;

/// Labels or annotations.
type Texts<'a> = BTreeMap<&'a str, &'a str>;

/// A local ReplicaSet.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReplicaSet<'a> {
    api_version: &'static str,
    kind: &'static str,
    metadata: Metadata<'a>,
    pub(crate) spec: Spec<'a>,
}

#[derive(Debug, Serialize)]
struct Metadata<'a> {
    labels: Texts<'a>,
    name: &'a str,
    namespace: &'a str,
}

/// The spec of a local ReplicaSet.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Spec<'a> {
    min_ready_seconds: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    replicas: Option<u32>,
    selector: &'a LabelSelector,
    template: Template<'a>,
}

#[derive(Debug, Serialize)]
struct Template<'a> {
    metadata: TemplateMetadata<'a>,
    spec: &'a JsonText,
}

#[derive(Debug, Serialize)]
struct TemplateMetadata<'a> {
    annotations: BTreeMap<&'a str, String>,
    labels: Texts<'a>,
}

impl<'a> ReplicaSet<'a> {
    /// The local ReplicaSet of `frs` in `member` with `replicas`.
    ///
    /// The pods carry the labels of the set and the federation, so that a member's other pods are never watched; the
    /// selector is the user's own, so that pods left behind are adopted (F30).
    pub(crate) fn of(
        frs: &'a ValidFrs,
        federation: &'a str,
        member: &'a str,
        replicas: u32,
    ) -> Self {
        let mut labels = with_own(&frs.labels, frs, federation);
        labels.insert(labels::MEMBER_CLUSTER, member);
        Self {
            api_version: "apps/v1",
            kind: "ReplicaSet",
            metadata: Metadata {
                labels,
                name: &frs.key.name,
                namespace: &frs.key.namespace,
            },
            spec: Spec {
                replicas: Some(replicas),
                ..spec_of(frs, federation)
            },
        }
    }

    /// The labels of the object.
    pub(crate) fn labels(&self) -> &Texts<'a> {
        &self.metadata.labels
    }
}

/// Hash of all of a [`ReplicaSet`] that is the same in every member: without replicas.
pub(crate) fn spec_hash(frs: &ValidFrs, federation: &str) -> u64 {
    #[derive(Serialize)]
    struct Written<'a> {
        labels: &'a BTreeMap<String, String>,
        spec: Spec<'a>,
    }
    hash(&Written {
        labels: &frs.labels,
        spec: spec_of(frs, federation),
    })
}

/// The labels that a local ReplicaSet and its pods carry.
pub(crate) fn own_labels<'a>(
    frs: &'a ValidFrs,
    federation: &'a str,
) -> [(&'static str, &'a str); 2] {
    [
        (labels::REPLICA_SET, &frs.key.name),
        (labels::FEDERATION, federation),
    ]
}

/// `labels` and those of fedrs.
fn with_own<'a>(
    labels: &'a BTreeMap<String, String>,
    frs: &'a ValidFrs,
    federation: &'a str,
) -> Texts<'a> {
    let labels = labels.iter().map(|(key, value)| (&**key, &**value));
    labels.chain(own_labels(frs, federation)).collect()
}

fn spec_of<'a>(frs: &'a ValidFrs, federation: &'a str) -> Spec<'a> {
    let metadata = &frs.template.metadata;
    let annotations = metadata.annotations.iter();
    let annotations = annotations.map(|(key, value)| (&**key, value.clone()));
    let template = format!("{:08x}", template_hash(frs));
    Spec {
        min_ready_seconds: frs.min_ready_seconds,
        replicas: None,
        selector: &frs.selector,
        template: Template {
            metadata: TemplateMetadata {
                annotations: annotations
                    .chain([(annotations::TEMPLATE_HASH, template)])
                    .collect(),
                labels: with_own(&metadata.labels, frs, federation),
            },
            spec: &frs.template.spec,
        },
    }
}

/// Hash of the template as the user wrote it, never 0: identifies the pods that were created from it.
pub(crate) fn template_hash(frs: &ValidFrs) -> u32 {
    #[derive(Serialize)]
    struct Written<'a> {
        annotations: &'a BTreeMap<String, String>,
        labels: &'a BTreeMap<String, String>,
        spec: &'a JsonText,
    }
    let ValidTemplate { metadata, spec } = &frs.template;
    let hash = hash(&Written {
        annotations: &metadata.annotations,
        labels: &metadata.labels,
        spec,
    });
    u32::try_from(hash >> 32).map_or(1, |hash| hash.max(1))
}

fn hash(written: &impl Serialize) -> u64 {
    let text = serde_json::to_vec(written).expect("maps of texts are JSON");
    xxh3_64(&text)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn the_hashes_are_those_of_the_written_values() {
        let containers =
            json!([{ "name": "web", "image": "web:1", "env": [{ "value": "ä\"", "name": "A" }] }]);
        let template = json!({
            "metadata": { "labels": { "z": "1", "app": "web" }, "annotations": { "zz": "\n", "b": "c" } },
            "spec": { "volumes": [], "containers": containers, "hostNetwork": false },
        });
        let object = json!({
            "apiVersion": "fedrs.dev/v1alpha1",
            "kind": "FederatedReplicaSet",
            "metadata": { "name": "web", "namespace": "default", "labels": { "team": "x" } },
            "spec": {
                "minReadySeconds": 5,
                "selector": {
                    "matchLabels": { "app": "web" },
                    "matchExpressions": [{ "key": "z", "operator": "In", "values": ["1"] }],
                },
                "template": template,
            },
        });
        let frs = ValidFrs::check(&serde_json::from_value(object.clone()).unwrap()).unwrap();
        let hash_of = |value: &Value| xxh3_64(value.to_string().as_bytes());
        let metadata = &template["metadata"];
        let written = json!({ "labels": metadata["labels"], "annotations": metadata["annotations"], "spec": template["spec"] });
        assert_eq!(u64::from(template_hash(&frs)), hash_of(&written) >> 32);
        let replica_set = ReplicaSet::of(&frs, "blue", "eu", 7);
        let mut written = serde_json::to_value(&replica_set).unwrap();
        let ours = json!({ "fedrs.dev/federation": "blue", "fedrs.dev/replica-set": "web" });
        let with_ours = |mut labels: Value| {
            let labels_of_ours = ours.as_object().unwrap().clone();
            labels.as_object_mut().unwrap().extend(labels_of_ours);
            labels
        };
        let mut expected = json!({
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {
                "name": "web",
                "namespace": "default",
                "labels": with_ours(json!({ "team": "x", "fedrs.dev/member-cluster": "eu" })),
            },
            "spec": object["spec"],
        });
        expected["spec"]["replicas"] = json!(7);
        let metadata = &mut expected["spec"]["template"]["metadata"];
        metadata["labels"] = with_ours(metadata["labels"].take());
        metadata["annotations"]["fedrs.dev/template-hash"] =
            json!(format!("{:08x}", template_hash(&frs)));
        assert_eq!(written, expected);
        written["spec"].as_object_mut().unwrap().remove("replicas");
        let written = json!({ "labels": { "team": "x" }, "spec": written["spec"] });
        assert_eq!(spec_hash(&frs, "blue"), hash_of(&written));
    }
}
