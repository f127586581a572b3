//! An API server that plays a script, as the service of a kube client.

use std::{
    convert::Infallible,
    future::pending,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use futures::{Stream, StreamExt};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use kube::{Client, client::Body};
use tokio::time::Instant;

pub(crate) type HttpResponse = Response<UnsyncBoxBody<Bytes, Infallible>>;

/// The requests with the time since the start, as `list` or `watch`.
pub(crate) type Log = Arc<Mutex<Vec<(Duration, &'static str)>>>;

/// The answer to a list or a watch; `None` is silence.
pub(crate) trait Server: Send + Sync + 'static {
    /// The page at `position`, which is the continue token.
    fn list(&self, position: usize) -> Option<HttpResponse>;
    fn watch(&self) -> Option<HttpResponse>;
}

/// A client of `server`, and the requests it makes.
pub(crate) fn client(server: impl Server) -> (Client, Log) {
    let server = Arc::new(server);
    let log = Log::default();
    let requests = Arc::clone(&log);
    let start = Instant::now();
    let service = tower::service_fn(move |request: Request<Body>| {
        let query = request.uri().query().unwrap_or_default().to_owned();
        let is_watch = query.contains("watch=true");
        let verb = if is_watch { "watch" } else { "list" };
        let mut requests = requests.lock().expect("no panic holds the lock");
        requests.push((start.elapsed(), verb));
        let server = Arc::clone(&server);
        async move {
            // A client that repeats a request at once must not stop a paused clock.
            tokio::time::sleep(Duration::from_millis(1)).await;
            let response = if is_watch {
                server.watch()
            } else {
                server.list(position(&query))
            };
            match response {
                Some(response) => Ok::<_, Infallible>(response),
                None => pending().await,
            }
        }
    });
    (Client::new(service, "default"), log)
}

fn position(query: &str) -> usize {
    let mut tokens = query
        .split('&')
        .filter_map(|part| part.strip_prefix("continue="));
    tokens.find_map(|token| token.parse().ok()).unwrap_or(0)
}

/// A response with a whole body.
pub(crate) fn whole(code: u16, body: impl Into<Bytes>) -> HttpResponse {
    let body = Full::new(body.into()).boxed_unsync();
    Response::builder()
        .status(code)
        .body(body)
        .expect("a response")
}

/// A response whose body arrives in chunks.
pub(crate) fn chunks(chunks: impl Stream<Item = Bytes> + Send + 'static) -> HttpResponse {
    let frames = chunks.map(|chunk| Ok(Frame::data(chunk)));
    Response::new(StreamBody::new(frames).boxed_unsync())
}

/// A page of a list.
pub(crate) fn page(version: u64, next: Option<usize>, items: &[String]) -> Bytes {
    let next = next.map(|next| next.to_string()).unwrap_or_default();
    let items = items.join(",");
    Bytes::from(format!(
        r#"{{"kind":"PodList","apiVersion":"v1","metadata":{{"resourceVersion":"{version}","continue":"{next}"}},"items":[{items}]}}"#
    ))
}

/// A line of a watch.
pub(crate) fn event(kind: &str, object: &str) -> Bytes {
    Bytes::from(format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n"))
}
