//! What is written to a host in the process.

mod host;

use fedrs_api::{ObjectKey, SetKind, ValidFrs};
use serde_json::{Value, json};

/// The valid FederatedDeployment `default/web` with this uid, whose pods run this image.
fn set(uid: &str, image: &str) -> ValidFrs {
    let object = json!({
        "apiVersion": "fedrs.dev/v1alpha1",
        "kind": "FederatedReplicaSet",
        "metadata": { "name": "web", "namespace": "default", "uid": uid },
        "spec": { "selector": { "matchLabels": { "app": "web" } }, "template": template(image) },
    });
    let mut set = ValidFrs::check(&serde_json::from_value(object).unwrap()).unwrap();
    set.key = ObjectKey::of_kind(SetKind::FederatedDeployment, "default", "web");
    set
}

/// A template as a user writes it.
fn template(image: &str) -> Value {
    json!({
        "metadata": { "annotations": { "note": "x" }, "labels": { "app": "web" } },
        "spec": { "containers": [{ "image": image, "name": "web" }] },
    })
}

/// The reference of a revision to its owner.
fn owner(kind: &str, name: &str, uid: &str) -> Value {
    json!({ "apiVersion": "x/v1", "kind": kind, "name": name, "uid": uid, "controller": true })
}
