//! The local ReplicaSet as fedrs writes it: an apps/v1 ReplicaSet of the FederatedReplicaSet's own name and namespace.

use fedrs_api::{PodTemplate, ValidFrs, annotations, labels};
use serde_json::{Map, Value, json};
use xxhash_rust::xxh3::xxh3_64;

/// The local ReplicaSet of `frs` in `member` with `replicas`.
///
/// The pods carry the labels of the set and the federation, so that a member's other pods are never watched; the
/// selector is the user's own, so that pods left behind are adopted (F30).
pub(crate) fn replica_set(frs: &ValidFrs, federation: &str, member: &str, replicas: u32) -> Value {
    let mut labels = string_map(&frs.labels);
    for (key, value) in own_labels(frs, federation) {
        labels.insert(key.to_owned(), value.into());
    }
    labels.insert(labels::MEMBER_CLUSTER.to_owned(), member.into());
    let mut spec = set_spec(frs, federation);
    spec["replicas"] = replicas.into();
    json!({
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": &*frs.key.name,
            "namespace": &*frs.key.namespace,
            "labels": labels,
        },
        "spec": spec,
    })
}

/// Hash of all of [`replica_set`] that is the same in every member: without replicas.
pub(crate) fn spec_hash(frs: &ValidFrs, federation: &str) -> u64 {
    let written = json!({ "labels": frs.labels, "spec": set_spec(frs, federation) });
    xxh3_64(written.to_string().as_bytes())
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

fn set_spec(frs: &ValidFrs, federation: &str) -> Value {
    let mut labels = string_map(&frs.template.metadata.labels);
    for (key, value) in own_labels(frs, federation) {
        labels.insert(key.to_owned(), value.into());
    }
    let mut annotations = string_map(&frs.template.metadata.annotations);
    let template = format!("{:08x}", template_hash(frs));
    annotations.insert(annotations::TEMPLATE_HASH.to_owned(), template.into());
    json!({
        "minReadySeconds": frs.min_ready_seconds,
        "selector": frs.selector,
        "template": {
            "metadata": { "labels": labels, "annotations": annotations },
            "spec": frs.template.spec,
        },
    })
}

/// Hash of the template as the user wrote it, never 0: identifies the pods that were created from it.
pub(crate) fn template_hash(frs: &ValidFrs) -> u32 {
    let PodTemplate { metadata, spec } = &frs.template;
    let written =
        json!({ "labels": metadata.labels, "annotations": metadata.annotations, "spec": spec });
    let hash = xxh3_64(written.to_string().as_bytes()) >> 32;
    u32::try_from(hash).map_or(1, |hash| hash.max(1))
}

fn string_map(map: &std::collections::BTreeMap<String, String>) -> Map<String, Value> {
    map.iter()
        .map(|(key, value)| (key.clone(), Value::from(value.as_str())))
        .collect()
}
