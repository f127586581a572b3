//! Requests in JSON, for what no type is worth having.

use http::{Request, header::CONTENT_TYPE};
use kube::Client;
use serde_json::Value;

/// Sends `method` for `path` (with its query) with `body` as JSON, without one if it is null; a patch is a merge patch.
/// Answers the JSON that came back; a refusal is [`kube::Error::Api`].
pub async fn request(
    client: &Client,
    method: &str,
    path: &str,
    body: &Value,
) -> kube::Result<Value> {
    let content_type = match method {
        "PATCH" => "application/merge-patch+json",
        _ => "application/json",
    };
    let bytes = match body {
        Value::Null => Vec::new(),
        body => body.to_string().into_bytes(),
    };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(CONTENT_TYPE, content_type)
        .body(bytes)
        .expect("a path makes a request");
    client.request(request).await
}
