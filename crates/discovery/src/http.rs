//! `GET /v1/endpoints/NAMESPACE/SET`: the endpoints of a set as JSON.
//!
//! The version is the `ETag`. With `If-None-Match` and `?wait=SECONDS` the response comes when there is another version, or with 304
//! when the time is over. Whatever is not known is an error, never an empty set: who asks keeps the last answer.

use std::time::Duration;

use axum::{
    Extension, Router,
    extract::{Path, Query, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    middleware::map_response,
    response::{IntoResponse, Response},
    routing::get,
};
use jiff::Timestamp;
use serde::Deserialize;
use tokio::{net::TcpListener, time::timeout};
use tokio_util::sync::CancellationToken;

use crate::{
    access::Refusal,
    answer::Answer,
    catalog::{Catalog, Lookup},
    peer::Peer,
    problem::{Problem, Reason},
    service::Service,
    serving::{Protocol, accept},
    set::SetKey,
    snapshot::EndpointSnapshot,
};

/// The longest that a request waits for a change.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// Answers on `listener` until `cancel`.
pub async fn serve_http(listener: TcpListener, service: Service, cancel: CancellationToken) {
    let connections = service.connections(Protocol::Http1);
    accept(listener, connections, router(service), cancel).await;
}

/// The routes of the service.
pub fn router(service: Service) -> Router {
    let metrics = service.metrics.clone();
    Router::new()
        .route("/v1/endpoints/{namespace}/{name}", get(endpoints))
        .with_state(service)
        .layer(map_response(move |response: Response| {
            metrics.count_http(response.status().as_u16());
            async { response }
        }))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Options {
    /// For how many seconds the response may wait for a change.
    #[serde(default)]
    wait: u64,
}

async fn endpoints(
    State(service): State<Service>,
    Path((namespace, name)): Path<(String, String)>,
    Query(options): Query<Options>,
    peer: Option<Extension<Peer>>,
    headers: HeaderMap,
) -> Response {
    let peer = peer.map_or_else(Peer::default, |Extension(peer)| peer);
    let caller = match service.access.caller(&headers, &peer).await {
        Ok(caller) => caller,
        Err(refusal) => return refused(refusal),
    };
    let key = SetKey::new(namespace, name);
    if let Err(problem) = caller.check(&key).await {
        return not_known(&problem);
    }
    let catalog = &service.catalog;
    let known = headers.get(header::IF_NONE_MATCH);
    let wait = Duration::from_secs(options.wait).min(LONGEST_WAIT);
    let is_new = |snapshot: &EndpointSnapshot| known != Some(&etag(snapshot));
    let changes = catalog.changes(&key);
    let mut lookup = catalog.lookup(&key);
    if let (Lookup::Found(snapshot), Some(mut changes)) = (&lookup, changes)
        && !is_new(snapshot)
    {
        let another = async {
            // Ends when the set is deleted, too.
            while changes.changed().await.is_ok() {
                match catalog.lookup(&key) {
                    Lookup::Found(snapshot) if !is_new(&snapshot) => {}
                    _ => return,
                }
            }
        };
        let _ = timeout(wait, another).await;
        lookup = catalog.lookup(&key);
    }
    // Again: the wait may have been long.
    let permitted = caller.check(&key).await;
    match permitted.and_then(|()| Problem::check(&key, lookup)) {
        Ok(snapshot) if is_new(&snapshot) => found(catalog, &key, &snapshot),
        Ok(snapshot) => {
            (StatusCode::NOT_MODIFIED, [(header::ETAG, etag(&snapshot))]).into_response()
        }
        Err(problem) => not_known(&problem),
    }
}

fn etag(snapshot: &EndpointSnapshot) -> HeaderValue {
    let text = format!("\"{}\"", snapshot.version);
    HeaderValue::from_str(&text).expect("digits and quotes are valid")
}

fn found(catalog: &Catalog, key: &SetKey, snapshot: &EndpointSnapshot) -> Response {
    let answer = Answer::new(key, snapshot, &catalog.members(), Timestamp::now());
    let body = serde_json::to_string(&answer).expect("it is made of texts and numbers");
    let json = HeaderValue::from_static("application/json");
    let headers = [(header::CONTENT_TYPE, json), (header::ETAG, etag(snapshot))];
    (headers, body).into_response()
}

fn refused(refusal: Refusal) -> Response {
    let text = format!("{refusal}\n");
    match refusal {
        Refusal::NotAuthenticated => {
            let scheme = HeaderValue::from_static("Bearer");
            let headers = [(header::WWW_AUTHENTICATE, scheme)];
            (StatusCode::UNAUTHORIZED, headers, text).into_response()
        }
        Refusal::HostAway(_) => (StatusCode::SERVICE_UNAVAILABLE, text).into_response(),
    }
}

fn not_known(problem: &Problem) -> Response {
    let status = match problem.reason {
        Reason::NotFound => StatusCode::NOT_FOUND,
        Reason::Invalid => StatusCode::CONFLICT,
        Reason::Waiting => StatusCode::SERVICE_UNAVAILABLE,
        Reason::Forbidden => StatusCode::FORBIDDEN,
    };
    (status, format!("{problem}\n")).into_response()
}

#[cfg(test)]
#[path = "http_tests.rs"]
mod tests;
