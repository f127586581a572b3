//! Responses: JSON or YAML bodies, `Status` for errors, warnings.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue, RETRY_AFTER, WARNING};
use http::{Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use serde::Serialize;
use serde_json::Value;

use super::negotiate::Format;
use crate::status::Status;

/// An error of the transport.
pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The body of a response: complete, or a stream for watches.
pub type Body = UnsyncBoxBody<Bytes, BoxError>;

/// A complete body.
pub(crate) fn whole(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into())
        .map_err(|never| match never {})
        .boxed_unsync()
}

/// A response in JSON, or in YAML if the client accepts it.
pub(crate) fn answer(code: u16, value: &impl Serialize, format: Option<Format>) -> Response<Body> {
    let code = StatusCode::from_u16(code).expect("status codes of this crate are valid");
    let (bytes, content_type) = if format.is_some_and(|format| format.yaml) {
        let text = serde_saphyr::to_string(value).unwrap_or_else(|error| format!("# {error}\n"));
        (text.into_bytes(), "application/yaml")
    } else {
        let mut bytes = serde_json::to_vec(value).expect("answers can be written as JSON");
        bytes.push(b'\n');
        (bytes, "application/json")
    };
    with_type(code, content_type, whole(bytes))
}

/// A response in plain text, as the health endpoints send it.
pub(crate) fn text(code: u16, text: impl Into<String>) -> Response<Body> {
    let code = StatusCode::from_u16(code).expect("status codes of this crate are valid");
    with_type(
        code,
        "text/plain; charset=utf-8",
        whole(text.into().into_bytes()),
    )
}

pub(crate) fn with_type(
    code: StatusCode,
    content_type: &'static str,
    body: Body,
) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

/// The response for an error of the API.
pub(crate) fn refuse(status: &Status) -> Response<Body> {
    let mut response = answer(status.code, &status.to_value(), None);
    let after = (status.details.as_ref()).map_or(0, |details| details.retry_after_seconds);
    if after > 0 {
        response
            .headers_mut()
            .insert(RETRY_AFTER, HeaderValue::from(after));
    }
    response
}

/// Adds one `Warning` header for each text.
pub(crate) fn warn(response: &mut Response<Body>, warnings: &[String]) {
    for warning in warnings {
        let escaped = warning.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{escaped}\"")) {
            response.headers_mut().append(WARNING, value);
        }
    }
}

/// The `Status` of a success without an object.
pub(crate) fn success(details: &Value) -> Value {
    serde_json::json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details,
    })
}
