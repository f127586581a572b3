//! Requests by HTTP: who may send them, and what anybody may send.

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::http::Request;
use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use proptest::prelude::*;
use rstest::rstest;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tower::ServiceExt;

use super::*;
use crate::{
    access::mock_host::{Host, with_token},
    catalog::Catalog,
    metrics::DiscoveryMetrics,
};

const WEB: &str = "/v1/endpoints/shop/web";

async fn get(service: &Service, path: &str, headers: HeaderMap) -> (u16, String) {
    let mut request = Request::get(path).body(Body::empty()).unwrap();
    *request.headers_mut() = headers;
    let response = router(service.clone()).oneshot(request).await.unwrap();
    let status = response.status().as_u16();
    let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

#[rstest]
#[case::nobody(
    None,
    401,
    "Unauthorized: needs a valid bearer token, or a client certificate\n"
)]
#[case::no_valid_token(
    Some("other"),
    401,
    "Unauthorized: needs a valid bearer token, or a client certificate\n"
)]
#[case::of_another_audience(
    Some("TOKEN-of-another-audience"),
    401,
    "Unauthorized: needs a valid bearer token, or a client certificate\n"
)]
#[case::may_not(
    Some("TOKEN-b"),
    403,
    "endpointsets.fedrs.dev \"web\" is forbidden: User \"b\" cannot get resource \"endpointsets\" in API group \"fedrs.dev\" in the namespace \"shop\"\n"
)]
#[case::may(Some("TOKEN-a"), 200, "{\"namespace\":\"shop\"")]
#[tokio::test]
async fn a_client_gets_what_its_user_may_get_on_the_host(
    #[case] token: Option<&str>,
    #[case] status: u16,
    #[case] text: &str,
) {
    let host = Arc::new(Host::default());
    host.allow("a", "web");
    let service = host.service();
    let headers = token.map(with_token).unwrap_or_default();
    for _ in 0..3 {
        let (found, body) = get(&service, WEB, headers.clone()).await;
        assert_eq!(found, status, "{body}");
        assert!(body.starts_with(text), "{body}");
    }
    let reviews = match (token, status) {
        (None, _) => 0,
        (_, 401) => 1,
        _ => 2,
    };
    assert_eq!(host.reviews(), reviews, "each is asked once");
}

#[tokio::test]
async fn sets_that_do_not_exist_are_told_to_those_who_may_get_them() {
    let host = Arc::new(Host::default());
    host.allow("a", "none");
    let service = host.service();
    let path = "/v1/endpoints/shop/none";
    assert_eq!(get(&service, path, with_token("TOKEN-a")).await.0, 404);
    assert_eq!(get(&service, path, with_token("TOKEN-b")).await.0, 403);
    let before = host.reviews();
    let long = format!("/v1/endpoints/shop/{}", "a".repeat(300));
    assert_eq!(get(&service, &long, with_token("TOKEN-b")).await.0, 404);
    assert_eq!(host.reviews(), before, "nobody has a name that long");
}

#[tokio::test(start_paused = true)]
async fn while_the_host_is_away_what_was_allowed_stays_and_the_rest_waits() {
    let host = Arc::new(Host::default());
    for user in ["a", "c"] {
        host.allow(user, "web");
    }
    let service = host.service();
    let status = async |token| get(&service, WEB, with_token(token)).await;
    assert_eq!(status("TOKEN-a").await.0, 200);
    assert_eq!(status("TOKEN-b").await.0, 403);
    host.set_away(true);
    for hours in [1, 22] {
        tokio::time::advance(Duration::from_secs(hours * 3600)).await;
        assert_eq!(status("TOKEN-a").await.0, 200);
        // Unknown, and refused before.
        for token in ["TOKEN-c", "TOKEN-b"] {
            let (status, text) = status(token).await;
            assert_eq!(
                (status, text),
                (
                    503,
                    "the host does not say who may ask for this: try again\n".to_owned()
                )
            );
        }
    }
    tokio::time::advance(Duration::from_secs(2 * 3600)).await;
    assert_eq!(status("TOKEN-a").await.0, 503, "not forever");
    host.set_away(false);
    tokio::time::advance(Duration::from_secs(5)).await;
    assert_eq!(status("TOKEN-c").await.0, 200);
    assert_eq!(status("TOKEN-b").await.0, 403);
}

#[tokio::test(start_paused = true)]
async fn a_right_that_is_revoked_ends_after_five_minutes_and_a_new_one_begins_after_half_a_minute()
{
    let host = Arc::new(Host::default());
    host.allow("a", "web");
    let service = host.service();
    let status = async || get(&service, WEB, with_token("TOKEN-a")).await.0;
    assert_eq!(status().await, 200);
    host.deny_all();
    tokio::time::advance(Duration::from_secs(300)).await;
    assert_eq!(status().await, 403);
    host.allow("a", "web");
    tokio::time::advance(Duration::from_secs(30)).await;
    assert_eq!(status().await, 200);
}

/// What a connection gets that sends `bytes`, and no more.
async fn sent(bytes: &[u8]) -> Vec<u8> {
    let service = Service::new(Catalog::waiting_for([]), DiscoveryMetrics::default());
    let router = router(service);
    let (mut client, server) = tokio::io::duplex(1 << 20);
    let answer = service_fn(move |request| router.clone().oneshot(request));
    let serving =
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(server), answer));
    client.write_all(bytes).await.unwrap();
    client.shutdown().await.unwrap();
    let mut response = Vec::new();
    client.read_to_end(&mut response).await.unwrap();
    // An error is the end of the connection; a panic would be another one.
    assert!(!serving.await.is_err_and(|error| error.is_panic()));
    response
}

proptest! {
    /// Bytes of anybody lead to a short response, or to none, but not to a panic.
    #[test]
    fn hostile_requests_are_answered_or_ignored(
        mut bytes in prop::collection::vec(any::<u8>(), 0..300),
        is_request in any::<bool>(),
    ) {
        if is_request {
            let mut valid = format!("GET {WEB}?wait=0 HTTP/1.1\r\nhost: a\r\nif-none-match: \"1\"\r\n\r\n").into_bytes();
            for (index, byte) in bytes.iter().enumerate().take(8) {
                let place = index * 37 % valid.len();
                valid[place] ^= byte;
            }
            bytes = valid;
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let response = runtime.block_on(sent(&bytes));
        prop_assert!(response.is_empty() || response.starts_with(b"HTTP/1."));
        prop_assert!(response.len() < 4 << 10, "{} bytes", response.len());
    }

    /// Paths of anybody name a set, or nothing.
    #[test]
    fn hostile_paths_are_answered(path in "/v1/endpoints/[!-~]{0,40}/[!-~]{0,40}") {
        let Ok(request) = Request::get(&path).body(Body::empty()) else { return Ok(()) };
        let service = Service::new(Catalog::waiting_for([]), DiscoveryMetrics::default());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let response = runtime.block_on(router(service).oneshot(request)).unwrap();
        prop_assert!(response.status().is_client_error() || response.status() == StatusCode::SERVICE_UNAVAILABLE);
    }
}
