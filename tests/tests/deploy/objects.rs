//! Rendered objects, normalized for comparison.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// Labels that only helm sets: they do not change what the objects do.
const OF_HELM: [&str; 4] = [
    "app.kubernetes.io/managed-by",
    "app.kubernetes.io/version",
    "helm.sh/chart",
    "helm.sh/resource-policy",
];
/// The length of the content hash in a name, for kustomize and for the chart.
const HASH: usize = 10;

/// Objects by kind and name.
pub(crate) type Objects = BTreeMap<String, Value>;

/// The objects in a YAML stream.
pub(crate) fn read(yaml: &str) -> Objects {
    let mut objects = Objects::new();
    for document in format!("\n{yaml}").split("\n---") {
        let object: Value = serde_saphyr::from_str(document).unwrap();
        if !object.is_null() {
            let before = objects.insert(key(&object), object);
            assert!(before.is_none(), "two objects have the same name");
        }
    }
    objects
}

/// `ClusterKind/name`: no two kinds here have one name.
fn key(object: &Value) -> String {
    let name = object["metadata"]["name"].as_str().unwrap();
    format!("{}/{name}", object["kind"].as_str().unwrap())
}

/// The objects without helm's labels and without hashes in names, with parsed configuration, and without the
/// namespace, which helm creates by itself.
pub(crate) fn comparable(objects: Objects) -> Objects {
    let kept = objects
        .into_values()
        .filter(|object| object["kind"] != "Namespace");
    kept.map(|mut object| {
        for kind in ["labels", "annotations"] {
            let metadata = object["metadata"].as_object_mut().unwrap();
            if let Some(Value::Object(words)) = metadata.get_mut(kind) {
                words.retain(|key, _| !OF_HELM.contains(&key.as_str()));
                if words.is_empty() {
                    metadata.remove(kind);
                }
            }
        }
        if object["kind"] == "ConfigMap" {
            unhash(&mut object["metadata"]["name"]);
            let text = object["data"]["controller.yaml"].as_str().unwrap();
            let meant: Value = serde_saphyr::from_str(text).unwrap();
            object["data"]["controller.yaml"] = meant;
        }
        if object["kind"] == "Deployment" {
            let config = object.pointer_mut("/spec/template/spec/volumes/0/configMap/name");
            config.map(unhash);
        }
        (key(&object), object)
    })
    .collect()
}

fn unhash(name: &mut Value) {
    let (rest, hash) = name.as_str().unwrap().rsplit_once('-').unwrap();
    assert_eq!(hash.len(), HASH, "{name}");
    *name = rest.into();
}

/// Fails with the first object that differs.
pub(crate) fn assert_same(left: &Objects, right: &Objects) {
    let names = |objects: &Objects| objects.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(left), names(right));
    for (name, object) in left {
        assert_eq!(object, &right[name], "{name}");
    }
}

/// A pod as a Deployment creates it.
pub(crate) fn pod_of(deployment: &Value) -> Value {
    let mut pod = deployment["spec"]["template"].clone();
    pod["apiVersion"] = json!("v1");
    pod["kind"] = json!("Pod");
    pod["metadata"]["generateName"] = json!("fedrs-controller-");
    pod["metadata"]["namespace"] = deployment["metadata"]["namespace"].clone();
    pod
}
