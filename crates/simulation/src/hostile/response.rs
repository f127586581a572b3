//! Bodies of hostile responses: complete, endless or slow.

use std::{convert::Infallible, time::Duration};

use bytes::Bytes;
use futures::{Stream, StreamExt, stream};
use http::{Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use tower::BoxError;

/// The body of a hostile response.
pub(super) type ResponseBody = UnsyncBoxBody<Bytes, BoxError>;

/// The pause between two chunks, as in a network, in which other tasks can run.
const PAUSE: Duration = Duration::from_millis(1);

/// A response with a complete body.
pub(super) fn whole(status: StatusCode, body: impl Into<Bytes>) -> Response<ResponseBody> {
    respond(status, body_of(body))
}

/// A complete body.
pub(super) fn body_of(body: impl Into<Bytes>) -> ResponseBody {
    Full::new(body.into()).map_err(never).boxed_unsync()
}

/// A response whose body is `first`, and then `chunk` again and again.
pub(super) fn endless(
    first: &str,
    chunk: Bytes,
    pause: Option<Duration>,
) -> Response<ResponseBody> {
    let first = Bytes::copy_from_slice(first.as_bytes());
    let rest = stream::repeat(chunk);
    streamed(stream::iter([first]).chain(rest), pause)
}

/// A response whose body is `chunks`.
pub(super) fn streamed(
    chunks: impl Stream<Item = Bytes> + Send + 'static,
    pause: Option<Duration>,
) -> Response<ResponseBody> {
    let pause = pause.unwrap_or(PAUSE);
    let frames = chunks.then(move |chunk| async move {
        tokio::time::sleep(pause).await;
        Ok::<_, Infallible>(Frame::data(chunk))
    });
    respond(
        StatusCode::OK,
        StreamBody::new(frames).map_err(never).boxed_unsync(),
    )
}

fn respond(status: StatusCode, body: ResponseBody) -> Response<ResponseBody> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response
}

fn never(error: Infallible) -> BoxError {
    match error {}
}
