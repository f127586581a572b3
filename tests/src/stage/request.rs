//! Requests in JSON.

use http::Request;
use kube::Client;
use serde_json::Value;

/// Sends a request; a patch is a merge patch.
pub(super) async fn send(
    client: &Client,
    method: &str,
    path: &str,
    body: &Value,
) -> kube::Result<Value> {
    let content_type = if method == "PATCH" {
        "application/merge-patch+json"
    } else {
        "application/json"
    };
    let bytes = if body.is_null() {
        Vec::new()
    } else {
        body.to_string().into_bytes()
    };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(http::header::CONTENT_TYPE, content_type)
        .body(bytes)
        .expect("a path makes a request");
    client.request(request).await
}

/// Whether there is no such object.
pub(super) fn is_missing(answer: &kube::Result<Value>) -> bool {
    matches!(answer, Err(kube::Error::Api(status)) if status.code == 404)
}
