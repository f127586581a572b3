//! What is read from a member cluster, when, and what the store then knows.

use std::sync::Arc;

use http::Response;
use jiff::Timestamp;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::{Instant, sleep};
use tower::service_fn;

use super::*;

/// A member with three nodes on pages of one, which responds with the HTTP status `code`. Returns its requests with their
/// seconds.
async fn run_for(code: u16, minutes: u64) -> (ClusterInfo, Vec<(u64, String)>) {
    let node = json!({ "status": { "conditions": [{ "type": "Ready", "status": "True" }] } });
    let requests = Arc::new(Mutex::new(Vec::new()));
    let start = Instant::now();
    let log = Arc::clone(&requests);
    let service = service_fn(move |request: http::Request<Body>| {
        let uri = request.uri().to_string();
        let response = match uri.split_once("continue=").map(|(_, token)| token) {
            _ if uri == "/version" => json!({ "gitVersion": "v1.36.4" }),
            Some("2") => {
                json!({ "metadata": { "resourceVersion": "1" }, "items": [node] })
            }
            token => json!({
                "metadata": { "resourceVersion": "1", "continue": if token.is_none() { "1" } else { "2" } },
                "items": [node],
            }),
        };
        log.lock().push((start.elapsed().as_secs(), uri));
        let response = Response::builder()
            .status(code)
            .body(Body::from(response.to_string().into_bytes()));
        async move { response }
    });
    let clock: crate::Clock = Arc::new(|| Timestamp::UNIX_EPOCH);
    let store = MemberStore::new(clock, Duration::from_secs(30));
    let healthy = Notify::new();
    let settings = ClusterInfoSettings {
        page_size: 1,
        ..ClusterInfoSettings::default()
    };
    let client = Client::new(service, "default");
    let run = run(client.into(), settings, &store, &healthy, 1);
    let live = async {
        sleep(Duration::from_secs(10)).await;
        store.set_health(Health::Healthy);
        healthy.notify_one();
        sleep(Duration::from_secs(60 * minutes)).await;
    };
    tokio::select! {
        () = run => unreachable!("it runs for ever"),
        () = live => {}
    }
    let requests = requests.lock().clone();
    (store.cluster_info(), requests)
}

#[tokio::test(start_paused = true)]
async fn a_healthy_member_is_read_at_once_and_periodically_by_pages() {
    let (info, requests) = run_for(200, 11).await;
    assert_eq!(info.version.as_deref(), Some("v1.36.4"));
    assert!(matches!(
        info.nodes,
        NodeInfo::Known(NodeTotals {
            total: 3,
            ready: 3,
            ..
        })
    ));
    let first: Vec<_> = requests
        .iter()
        .take(4)
        .map(|(second, uri)| (*second, &**uri))
        .collect();
    let pages = [
        "/version",
        "/api/v1/nodes?limit=1",
        "/api/v1/nodes?limit=1&continue=1",
        "/api/v1/nodes?limit=1&continue=2",
    ];
    assert_eq!(first, pages.map(|uri| (10, uri)), "at once");
    let times: Vec<u64> = requests
        .iter()
        .filter(|(_, uri)| uri == "/version")
        .map(|(second, _)| *second)
        .collect();
    assert!(
        matches!(
            times[..],
            [10, 250..310, 490..610] | [10, 250..310, 490..610, _]
        ),
        "{times:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn forbidden_nodes_are_not_read_more_often_but_failures_are_retried() {
    let (info, requests) = run_for(403, 4).await;
    assert_eq!(info.nodes, NodeInfo::Forbidden);
    assert!(requests.len() <= 2, "{requests:?}");
    let (info, requests) = run_for(503, 4).await;
    assert_eq!(info.nodes, NodeInfo::Unknown);
    assert!(
        requests.len() > 10,
        "a failure is retried sooner: {requests:?}"
    );
}
