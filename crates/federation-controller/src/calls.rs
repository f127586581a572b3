//! Single calls to an API server, as JSON. No retry and no deadline of their own: that is the caller's.

use http::Request;
use kube::Client;
use serde::Serialize;
use serde_json::{Value, json};

use fedrs_api::marks::FIELD_MANAGER;

/// Reads the object at `path`.
pub(crate) async fn get(client: &Client, path: &str) -> kube::Result<Value> {
    send(client, "GET", path, "application/json", None).await
}

/// Creates `object` in the collection at `path`.
pub(crate) async fn post(client: &Client, path: &str, object: &Value) -> kube::Result<Value> {
    send(
        client,
        "POST",
        &managed(path),
        "application/json",
        Some(object),
    )
    .await
}

/// Replaces the object at `path`; conditional on the resourceVersion in `object`.
pub(crate) async fn put(client: &Client, path: &str, object: &Value) -> kube::Result<Value> {
    send(
        client,
        "PUT",
        &managed(path),
        "application/json",
        Some(object),
    )
    .await
}

/// Changes the object at `path`; conditional on uid and resourceVersion where `patch` names them.
pub(crate) async fn merge_patch(client: &Client, path: &str, patch: &Value) -> kube::Result<Value> {
    send(
        client,
        "PATCH",
        &managed(path),
        "application/merge-patch+json",
        Some(patch),
    )
    .await
}

/// Changes the object at `path` by the operations in `patch`; conditional on its `test` operations.
pub(crate) async fn json_patch(client: &Client, path: &str, patch: &Value) -> kube::Result<Value> {
    send(
        client,
        "PATCH",
        &managed(path),
        "application/json-patch+json",
        Some(patch),
    )
    .await
}

/// Replaces the status of the object at `path`, its subresource, if the object has this uid and this version.
pub(crate) async fn put_status(
    client: &Client,
    path: &str,
    (uid, version): (Option<&str>, Option<&str>),
    status: &impl Serialize,
) -> kube::Result<Value> {
    let patch = json!([
        { "op": "test", "path": "/metadata/uid", "value": uid },
        { "op": "test", "path": "/metadata/resourceVersion", "value": version },
        { "op": "add", "path": "/status", "value": status },
    ]);
    json_patch(client, &format!("{path}/status"), &patch).await
}

/// Deletes the object at `path` with DeleteOptions.
pub(crate) async fn delete(client: &Client, path: &str, options: &Value) -> kube::Result<Value> {
    send(client, "DELETE", path, "application/json", Some(options)).await
}

fn managed(path: &str) -> String {
    format!("{path}?fieldManager={FIELD_MANAGER}")
}

/// One request with `body`, or without one. An answer that makes no sense is not told: it may hold a token, and the
/// client's own way of reading it would log it.
pub async fn send(
    client: &Client,
    method: &str,
    path: &str,
    content_type: &str,
    body: Option<&Value>,
) -> kube::Result<Value> {
    let bytes = body
        .map(|body| body.to_string().into_bytes())
        .unwrap_or_default();
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(http::header::ACCEPT, "application/json")
        .header(http::header::CONTENT_TYPE, content_type)
        .body(bytes)
        .map_err(kube::Error::HttpError)?;
    let answer = client.request_text(request).await?;
    serde_json::from_str(&answer).map_err(kube::Error::SerdeError)
}
