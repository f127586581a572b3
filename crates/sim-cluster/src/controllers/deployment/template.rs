//! The ReplicaSet of a Deployment's template: `template -> hash -> ReplicaSet`. Pure.
//!
//! The hash is in the name, the labels and the selector of the ReplicaSet, and in the labels of its pods. Clients compare
//! it but do not compute it: its algorithm is another one than Kubernetes', its alphabet is the same.

use serde_json::{Map, Value, json};
use xxhash_rust::xxh3::xxh3_64;

use super::views::Deployment;
use crate::controllers::index::controller_reference;
use crate::object::{integer, map, namespace};
use crate::resources::kinds;

/// The label with the hash.
const HASH_LABEL: &str = "pod-template-hash";
/// Letters and digits without vowels, so that no hash contains a word.
const SAFE: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
/// The longest name of an object.
const NAME_MAX: usize = 253;

/// Whether two templates are the same but for the label with their hash.
pub(super) fn is_same(one: &Value, other: &Value) -> bool {
    let fields = |template: &Value| {
        let mut metadata = template["metadata"].clone();
        let labels = metadata.get_mut("labels").and_then(Value::as_object_mut);
        if let Some(labels) = labels {
            labels.remove(HASH_LABEL);
            if labels.is_empty() {
                metadata
                    .as_object_mut()
                    .map(|fields| fields.remove("labels"));
            }
        }
        metadata
    };
    one["spec"] == other["spec"] && fields(one) == fields(other)
}

/// The hash of the Deployment's template. After a collision (`status.collisionCount`) it is another one.
fn hash(deployment: Deployment<'_>) -> String {
    let mut hashed = deployment.0["spec"]["template"].to_string();
    if let Some(count) = integer(deployment.0, "/status/collisionCount") {
        hashed.push_str(&count.to_string());
    }
    // As in Kubernetes, the decimal digits of 32 bits are encoded.
    let bits = xxh3_64(hashed.as_bytes()) & u64::from(u32::MAX);
    safe_encode(&bits.to_string())
}

fn safe_encode(text: &str) -> String {
    let encode = |byte: u8| char::from(SAFE[usize::from(byte) % SAFE.len()]);
    text.bytes().map(encode).collect()
}

/// The name of the ReplicaSet, cut where it would be too long.
fn set_name(deployment: &str, hash: &str) -> String {
    let most = NAME_MAX - 1 - hash.len();
    let front = deployment.get(..most).unwrap_or(deployment);
    format!("{front}-{hash}")
}

/// The new ReplicaSet of a Deployment.
pub(super) fn new_set(
    deployment: Deployment<'_>,
    replicas: i64,
    annotations: &Map<String, Value>,
) -> Value {
    let spec = &deployment.0["spec"];
    let hash = hash(deployment);
    let mut labels = map(spec, "/template/metadata/labels")
        .cloned()
        .unwrap_or_default();
    labels.insert(HASH_LABEL.to_owned(), json!(hash));
    let mut template = spec["template"].clone();
    template["metadata"]["labels"] = json!(labels);
    let mut selector = spec["selector"].clone();
    selector["matchLabels"][HASH_LABEL] = json!(hash);
    let mut set_spec = json!({"replicas": replicas, "selector": selector, "template": template});
    if deployment.min_ready_seconds() > 0 {
        set_spec["minReadySeconds"] = json!(deployment.min_ready_seconds());
    }
    json!({
        "metadata": {
            "name": set_name(deployment.name(), &hash), "namespace": namespace(deployment.0),
            "labels": labels, "annotations": annotations,
            "ownerReferences": [controller_reference(&kinds::DEPLOYMENTS, deployment.0)],
        },
        "spec": set_spec,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deployment() -> Value {
        json!({
            "metadata": {"name": "web", "namespace": "a", "uid": "u"},
            "spec": {
                "replicas": 3, "selector": {"matchLabels": {"app": "web"}},
                "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "a", "image": "x:1"}]}},
            },
        })
    }

    #[test]
    fn the_hash_is_in_name_labels_and_selector() {
        let set = new_set(Deployment(&deployment()), 2, &Map::new());
        let hash = set["metadata"]["labels"][HASH_LABEL].as_str().unwrap();
        assert_eq!(set["metadata"]["name"], format!("web-{hash}"));
        assert!(hash.bytes().all(|byte| SAFE.contains(&byte)), "{hash}");
        let labels = json!({"app": "web", HASH_LABEL: hash});
        assert_eq!(set["spec"]["selector"]["matchLabels"], labels);
        assert_eq!(set["spec"]["template"]["metadata"]["labels"], labels);
        assert!(is_same(
            &deployment()["spec"]["template"],
            &set["spec"]["template"]
        ));
    }

    #[test]
    fn the_hash_depends_on_template_and_collisions() {
        let first = deployment();
        let mut changed = first.clone();
        changed["spec"]["template"]["spec"]["containers"][0]["image"] = json!("x:2");
        assert!(!is_same(
            &first["spec"]["template"],
            &changed["spec"]["template"]
        ));
        let mut collided = first.clone();
        collided["status"]["collisionCount"] = json!(1);
        let mut scaled = first.clone();
        scaled["spec"]["replicas"] = json!(9);
        let of = |object: &Value| hash(Deployment(object));
        assert_ne!(of(&first), of(&changed));
        assert_ne!(of(&first), of(&collided));
        assert_eq!(of(&first), of(&scaled));
    }

    #[test]
    fn digits_are_encoded_as_in_kubernetes() {
        assert_eq!(safe_encode("0123456789"), "456789bcdf");
    }

    #[test]
    fn a_long_name_is_cut() {
        let name = set_name(&"d".repeat(253), "4567");
        assert_eq!((name.len(), name.ends_with("d-4567")), (253, true));
    }
}
