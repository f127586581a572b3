//! Objects that an honest API server would not store.

use fedrs_api::labels;
use mutations::ESCAPES;
use serde_json::{Value, json};

/// The `number`th pod or local ReplicaSet that nobody created; its texts have `length` bytes.
pub(super) fn fabricated_object(resource: &str, number: u64, length: usize) -> Value {
    let text: String = format!("s{number}-").chars().cycle().take(length).collect();
    let kind = if resource == "pods" {
        "Pod"
    } else {
        "ReplicaSet"
    };
    json!({
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {
            "name": text,
            "namespace": "default",
            "uid": format!("{number}-{text}"),
            "resourceVersion": format!("9{number}"),
            "generation": i64::MAX,
            "labels": {
                labels::REPLICA_SET: text,
                labels::FEDERATION: text,
                labels::MEMBER_CLUSTER: text,
            },
            "ownerReferences": [{ "uid": format!("owner-{number}"), "controller": true, "kind": text, "name": text }],
        },
        "spec": { "replicas": 1, "selector": {}, "template": {} },
        "status": { "phase": "Pending", "conditions": [
            { "type": "PodScheduled", "status": "False", "message": text.repeat(20) },
            { "type": "ReplicaFailure", "status": "True", "message": text.repeat(20) },
        ] },
    })
}

/// The `number`th set that nobody created, being deleted, whose texts have as many bytes as their characters may.
pub(super) fn large_set(number: u64) -> Value {
    let mut set = fabricated_object("replicasets", number, 60);
    let text = "\u{10348}".repeat(600);
    set["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    set["metadata"]["finalizers"] = json!([text, text, text, text]);
    set["status"]["conditions"][1]["message"] = text.into();
    set
}

/// The uid of each set in [`with_unlabeled_pods`].
pub(super) const SET_UID: &str = "set-with-unlabeled-pods";

/// Gives each set of a list more replicas than labeled pods.
pub(super) fn with_unlabeled_pods(list: &mut Value) {
    for set in list["items"].as_array_mut().into_iter().flatten() {
        set["metadata"]["uid"] = SET_UID.into();
        set["status"]["replicas"] = 1000.into();
        set["status"]["fullyLabeledReplicas"] = 0.into();
    }
}

/// Replaces each number in `value` by `number`.
pub(super) fn with_gigantic_numbers(value: &mut Value, number: &Value) {
    match value {
        Value::Number(_) => *value = number.clone(),
        Value::Array(items) => items
            .iter_mut()
            .for_each(|item| with_gigantic_numbers(item, number)),
        Value::Object(members) => members
            .values_mut()
            .for_each(|member| with_gigantic_numbers(member, number)),
        _ => {}
    }
}

/// Puts escape sequences into each text of `value` that is for people.
pub(super) fn with_escapes(value: &mut Value) {
    const FOR_PEOPLE: [&str; 5] = ["message", "gitVersion", "manager", "image", "reason"];
    match value {
        Value::Array(items) => items.iter_mut().for_each(with_escapes),
        Value::Object(members) => {
            for (key, member) in members {
                if member.is_string() && FOR_PEOPLE.contains(&key.as_str()) {
                    *member = ESCAPES.into();
                } else {
                    with_escapes(member);
                }
            }
        }
        _ => {}
    }
}
