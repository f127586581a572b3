//! Requests of users, to any cluster.

use http::{Request, header::CONTENT_TYPE};
use kube::Client;
use serde_json::Value;
use sim_cluster::SimCluster;

/// Sends a request whose response is an object; a PATCH is a merge patch. A null `body` is none.
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
        .expect("a path is a valid URI");
    client.request(request).await
}

/// Sends a request as a user to whom no fault applies.
///
/// # Errors
/// Why it has no effect, for the trace.
pub(crate) async fn user_request(
    cluster: &SimCluster,
    method: &str,
    path: &str,
    body: &Value,
) -> Result<(), String> {
    let client = Client::new(cluster.direct_service(), "default");
    let answer = request(&client, method, path, body).await;
    answer.map(drop).map_err(|error| match error {
        kube::Error::Api(status) => {
            format!("(has no effect: {} {})", status.code, status.reason)
        }
        other => format!("(has no effect: {other})"),
    })
}
