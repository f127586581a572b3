//! Single calls to an API server, whose responses are decoded into what the caller expects, within limits. They do not
//! retry: the caller decides on retries and deadlines.

use std::time::Duration;

use http::Request;
use kube::{Client, client::Body, core::response::StatusDetails};
use reflector::{Limits, printable};
use serde::{
    Serialize,
    de::{DeserializeOwned, IgnoredAny},
};
use serde_json::{Value, json};

use fedrs_api::names::FIELD_MANAGER;

use crate::error_text::format_api_error;

const JSON: &str = "application/json";

/// The method and the content type of a request.
pub type Method = (&'static str, &'static str);

/// Creates an object in a collection.
pub const POST: Method = ("POST", JSON);

/// Changes an object by operations; conditional on the `test` operations among them.
pub const JSON_PATCH: Method = ("PATCH", "application/json-patch+json");

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The API server rejected the request, or could not be reached.
    #[error("{}", format_api_error(.0))]
    Api(#[from] kube::Error),
    /// No response in time: the call may or may not have taken effect.
    #[error("no answer within {0:?}")]
    Deadline(Duration),
    /// A list failed.
    #[error(transparent)]
    List(reflector::Error),
    /// The controller does not send the request.
    #[error("{0}")]
    NotSent(String),
}

impl CallError {
    /// The HTTP status of a rejection.
    pub fn code(&self) -> Option<u16> {
        match self {
            Self::Api(kube::Error::Api(status)) => Some(status.code),
            Self::List(error) => error.code(),
            _ => None,
        }
    }

    /// Whether the API server rejected the request, and a retry would not help.
    pub fn is_rejection(&self) -> bool {
        matches!(self.code(), Some(400..500)) && self.code() != Some(429)
    }

    /// Whether a JSON patch does not fit its object; what is invalid has causes.
    pub fn is_failed_test(&self) -> bool {
        let Self::Api(kube::Error::Api(status)) = self else {
            return false;
        };
        let is_bare =
            |details: &StatusDetails| details.causes.is_empty() && details.kind.is_empty();
        status.code == 422 && status.details.as_ref().is_none_or(is_bare)
    }
}

/// Waits for the response to `call`, for `limit` at most.
pub async fn within<T>(
    limit: Duration,
    call: impl Future<Output = kube::Result<T>>,
) -> Result<T, CallError> {
    match tokio::time::timeout(limit, call).await {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(CallError::Deadline(limit)),
    }
}

/// Reads the object at `path`.
pub async fn get<T: DeserializeOwned>(client: &Client, path: &str) -> kube::Result<T> {
    send(client, "GET", path, JSON, None::<&Value>).await
}

/// Creates `object` in the collection at `path`.
pub async fn post<T: DeserializeOwned>(
    client: &Client,
    path: &str,
    object: &impl Serialize,
) -> kube::Result<T> {
    write(client, POST, path, object).await
}

/// Replaces the object at `path`; conditional on the resourceVersion in `object`.
pub async fn put(client: &Client, path: &str, object: &Value) -> kube::Result<Value> {
    write(client, ("PUT", JSON), path, object).await
}

/// Changes the object at `path`; conditional on uid and resourceVersion where `patch` names them.
pub async fn merge_patch<T: DeserializeOwned>(
    client: &Client,
    path: &str,
    patch: &Value,
) -> kube::Result<T> {
    let method = ("PATCH", "application/merge-patch+json");
    write(client, method, path, patch).await
}

/// Changes the object at `path` by the operations in `patch`; conditional on its `test` operations.
pub async fn json_patch<T: DeserializeOwned>(
    client: &Client,
    path: &str,
    patch: &impl Serialize,
) -> kube::Result<T> {
    write(client, JSON_PATCH, path, patch).await
}

/// The object at `path` as [`json_patch`] would make it. Changes nothing.
pub async fn dry_json_patch<T: DeserializeOwned>(
    client: &Client,
    path: &str,
    patch: &impl Serialize,
) -> kube::Result<T> {
    let path = format!("{path}?fieldManager={FIELD_MANAGER}&dryRun=All");
    let (method, content_type) = JSON_PATCH;
    send(client, method, &path, content_type, Some(patch)).await
}

/// Replaces the status of the object at `path`, its subresource, if the object has this uid and this version.
pub async fn put_status<T: DeserializeOwned>(
    client: &Client,
    path: &str,
    (uid, version): (Option<&str>, Option<&str>),
    status: &impl Serialize,
) -> kube::Result<T> {
    let patch = json!([
        { "op": "test", "path": "/metadata/uid", "value": uid },
        { "op": "test", "path": "/metadata/resourceVersion", "value": version },
        { "op": "add", "path": "/status", "value": status },
    ]);
    json_patch(client, &format!("{path}/status"), &patch).await
}

/// Deletes the object at `path` with DeleteOptions.
pub async fn delete(client: &Client, path: &str, options: &Value) -> kube::Result<IgnoredAny> {
    send(client, "DELETE", path, JSON, Some(options)).await
}

/// Sends one request that creates or changes an object: fedrs's name is recorded in its managed fields.
pub async fn write<T: DeserializeOwned>(
    client: &Client,
    (method, content_type): Method,
    path: &str,
    body: &impl Serialize,
) -> kube::Result<T> {
    let path = format!("{path}?fieldManager={FIELD_MANAGER}");
    send(client, method, &path, content_type, Some(body)).await
}

/// Sends one request and decodes the response, which has at most [`Limits::object_bytes`]. An unexpected response is not
/// logged, because it may hold a token; the client's own decoder would log it.
pub async fn send<T: DeserializeOwned>(
    client: &Client,
    method: &str,
    path: &str,
    content_type: &str,
    body: Option<&impl Serialize>,
) -> kube::Result<T> {
    let bytes = body
        .map(serde_json::to_vec)
        .transpose()
        .map_err(kube::Error::SerdeError)?
        .unwrap_or_default();
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(http::header::ACCEPT, "application/json")
        .header(http::header::CONTENT_TYPE, content_type)
        .body(Body::from(bytes))
        .map_err(kube::Error::HttpError)?;
    let response = client.send(request).await?;
    // Boxed, as callers hold several calls in their futures.
    let bytes = Box::pin(reflector::read_response(response, Limits::default())).await?;
    let mut json = serde_json::Deserializer::from_slice(&bytes);
    serde_path_to_error::deserialize(&mut json).map_err(|error| unexpected(method, path, &error))
}

/// The error of a response to a request for `path` that is not what was expected.
fn unexpected(
    method: &str,
    path: &str,
    error: &serde_path_to_error::Error<serde_json::Error>,
) -> kube::Error {
    let path = path.split('?').next().unwrap_or_default();
    let error = printable(&error.to_string());
    kube::Error::Service(format!("unexpected response to {method} {path}: {error}").into())
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, path::Path};

    use cluster_informer::WorkloadState;
    use http::{Response, StatusCode};
    use mutations::fuzz;
    use tower::service_fn;

    use super::*;

    #[test]
    fn s2_any_response_to_a_write_is_read_or_an_error_that_names_the_object() {
        const PATH: &str = "/apis/apps/v1/namespaces/default/replicasets/web";
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/responses");
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let _entered = runtime.enter();
        fuzz(&corpus, |bytes| {
            for code in [
                StatusCode::OK,
                StatusCode::CONFLICT,
                StatusCode::UNPROCESSABLE_ENTITY,
            ] {
                let bytes = bytes.to_vec();
                let service = service_fn(move |_: Request<Body>| {
                    let mut response = Response::new(Body::from(bytes.clone()));
                    *response.status_mut() = code;
                    async move { Ok::<_, Infallible>(response) }
                });
                let client = Client::new(service, "default");
                let patch = json!({});
                let call = json_patch::<WorkloadState>(&client, PATH, &patch);
                let Err(error) = runtime.block_on(call) else {
                    assert_eq!(code, StatusCode::OK);
                    continue;
                };
                let error = CallError::from(error);
                let text = error.to_string();
                assert!(!text.is_empty());
                assert!(!text.contains(|c: char| c.is_control()), "{text:?}");
                assert!(text.len() < 4_000, "{} bytes", text.len());
                if code == StatusCode::OK {
                    assert!(text.contains(PATH), "{text}");
                } else {
                    assert_eq!(error.code(), Some(code.as_u16()), "{text}");
                }
            }
        });
    }
}
