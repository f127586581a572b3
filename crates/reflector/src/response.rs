//! Reads the body of a response within its limit.

use bytes::Bytes;
use futures::TryStreamExt;
use http::Response;
use http_body_util::BodyExt;
use kube::{
    client::Body,
    core::{
        Status,
        response::{StatusCause, StatusDetails},
    },
};

use crate::{
    byte_budget::Reservation, decode, error::ErrorKind, printable::printable, settings::Limits,
};

/// Reads the body of a response to a request for one object, or the error that the response is, within `limits`.
pub async fn read_response(response: Response<Body>, limits: Limits) -> kube::Result<Bytes> {
    let code = response.status();
    if code.is_success() {
        let read = collect(response, limits.object_bytes).await;
        return read.map_err(|error| match error {
            ErrorKind::Connection(source) => *source,
            error => kube::Error::Service(error.into()),
        });
    }
    let status = error_status(response, limits.error_body_bytes).await;
    if !code.is_client_error() && !code.is_server_error() {
        let message = format!("unexpected response: {code}");
        return Err(kube::Error::Service(message.into()));
    }
    let message = Some(&*status.message).filter(|message| !message.is_empty());
    let message = message.unwrap_or(&status.reason);
    let mut of_kube = Status::failure(message, &status.reason).with_code(status.code);
    // Only the first cause: without one, the test of a conditional patch failed; there may be many others.
    of_kube.details = Some(StatusDetails {
        kind: status.details.kind,
        causes: Vec::from_iter(status.details.causes.first.map(cause)),
        name: String::new(),
        group: String::new(),
        uid: String::new(),
        retry_after_seconds: 0,
    });
    Err(kube::Error::Api(of_kube.boxed()))
}

fn cause(message: String) -> StatusCause {
    StatusCause {
        reason: String::new(),
        message,
        field: String::new(),
    }
}

/// The whole body, unless it has more than `limit` bytes. What it takes of the budget is free again when it is returned: it
/// is to be decoded before the next wait.
pub(crate) async fn collect(response: Response<Body>, limit: usize) -> Result<Bytes, ErrorKind> {
    let mut reservation = Reservation::of(&response);
    let mut chunks = response.into_body().into_data_stream();
    let mut bytes = Vec::new();
    while let Some(chunk) = chunks.try_next().await.map_err(connection)? {
        let length = bytes.len() + chunk.len();
        if length > limit {
            return Err(ErrorKind::BodyTooLarge { limit });
        }
        reservation.reserve(length, limit).await?;
        if length > bytes.capacity() {
            // Twice as much as before, as usual, but never more than the limit.
            let capacity = length.max(2 * bytes.capacity()).min(limit);
            bytes.reserve_exact(capacity - bytes.len());
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes.into())
}

/// The error of a response that is not a success, from its body if that is a `Status`.
pub(crate) async fn error_status(response: Response<Body>, limit: usize) -> decode::Status {
    let http_status = response.status();
    let body = collect(response, limit).await.unwrap_or_default();
    // A proxy's response is not a `Status`.
    let mut status = serde_json::from_slice(&body).unwrap_or_else(|_| decode::Status {
        message: printable(String::from_utf8_lossy(&body).trim()),
        ..decode::Status::default()
    });
    status.code = http_status.as_u16();
    if status.reason.is_empty() {
        let reason = http_status.canonical_reason().unwrap_or_default();
        reason.clone_into(&mut status.reason);
    }
    status
}

pub(crate) fn connection(source: kube::Error) -> ErrorKind {
    ErrorKind::Connection(Box::new(source))
}
