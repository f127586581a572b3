//! What an API server makes of a set, or why it rejects it, without storing it.

use fedrs_tests::test_environment::TestEnvironment;
use serde_json::{Value, json};

/// A set of `kind` with `fields` in its spec.
pub(crate) fn set(kind: &str, fields: Value) -> Value {
    let mut object = json!({
        "apiVersion": "fedrs.dev/v1alpha1",
        "kind": kind,
        "metadata": { "name": "web" },
        "spec": {
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "web", "image": "web:1" }] },
            },
        },
    });
    let Value::Object(fields) = fields else {
        panic!("not an object: {fields}")
    };
    object["spec"].as_object_mut().unwrap().extend(fields);
    object
}

/// The object that the API server would store.
pub(crate) async fn create(
    env: &TestEnvironment,
    (kind, plural): (&str, &str),
    fields: Value,
) -> kube::Result<Value> {
    let namespace = env.namespace();
    let path = format!(
        "/apis/fedrs.dev/v1alpha1/namespaces/{namespace}/{plural}?dryRun=All&fieldValidation=Strict"
    );
    env.on_host("POST", &path, &set(kind, fields)).await
}

/// The errors of a rejected request, without the name of the object.
pub(crate) fn errors(kind: &str, result: kube::Result<Value>) -> String {
    let Err(kube::Error::Api(status)) = result else {
        panic!("not rejected: {result:?}");
    };
    assert_eq!(status.code, 422, "{}", status.message);
    let prefix = format!("{kind}.fedrs.dev \"web\" is invalid: ");
    let errors = status.message.strip_prefix(&prefix);
    errors.unwrap_or(&status.message).to_owned()
}
