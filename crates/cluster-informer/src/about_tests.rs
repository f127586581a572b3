//! What is asked of a member, when, and what is made of the answers.

use std::sync::Arc;

use http::Response;
use jiff::Timestamp;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use tower::service_fn;

use super::*;

fn node(cpu: &str, memory: &str, ready: &str, unschedulable: bool) -> Value {
    json!({
        "metadata": { "name": "n" },
        "spec": if unschedulable { json!({ "unschedulable": true }) } else { json!({}) },
        "status": {
            "allocatable": { "cpu": cpu, "memory": memory, "pods": "110", "hugepages-2Mi": "0" },
            "conditions": [{ "type": "MemoryPressure", "status": "False" }, { "type": "Ready", "status": ready }],
        },
    })
}

#[test]
fn what_ready_nodes_can_give_is_added_up() {
    let nodes = [
        node("3920m", "16311504Ki", "True", false),
        node("4", "16Gi", "True", false),
        node("64", "256Gi", "True", true),
        node("64", "256Gi", "False", false),
        node("64", "256Gi", "Unknown", false),
        json!({ "metadata": { "name": "new" }, "status": null }),
        json!({ "status": { "allocatable": { "cpu": "no number" }, "conditions": [{ "type": "Ready", "status": "True" }] } }),
    ];
    let mut totals = NodeTotals::default();
    for node in nodes {
        totals.add(&serde_json::from_value(node).expect("a node"));
    }
    assert_eq!((totals.total, totals.ready), (7, 4));
    let expected = [("cpu", "7920m"), ("memory", "33088720Ki"), ("pods", "220")];
    let expected = expected.map(|(name, amount)| (name.to_owned(), amount.to_owned()));
    assert_eq!(totals.allocatable(), expected.into());
}

/// A member with three nodes on pages of one, which answers `code` if that is an error. When it was asked for what.
async fn ask_for_a_while(code: u16, minutes: u64) -> (About, Vec<(u64, String)>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let start = Instant::now();
    let log = Arc::clone(&asked);
    let service = service_fn(move |request: http::Request<Body>| {
        let uri = request.uri().to_string();
        let answer = match uri.split_once("continue=").map(|(_, token)| token) {
            _ if uri == "/version" => json!({ "gitVersion": "v1.36.4" }),
            Some("2") => {
                json!({ "metadata": { "resourceVersion": "1" }, "items": [node("1", "1Gi", "True", false)] })
            }
            token => json!({
                "metadata": { "resourceVersion": "1", "continue": if token.is_none() { "1" } else { "2" } },
                "items": [node("1", "1Gi", "True", false)],
            }),
        };
        log.lock().push((start.elapsed().as_secs(), uri));
        let response = Response::builder()
            .status(code)
            .body(Body::from(answer.to_string().into_bytes()));
        async move { response }
    });
    let clock: crate::Clock = Arc::new(|| Timestamp::UNIX_EPOCH);
    let store = MemberStore::new(clock, Duration::from_secs(30));
    let healthy = Notify::new();
    let settings = AboutSettings {
        page_size: 1,
        ..AboutSettings::default()
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
        () = run => unreachable!("it never ends by itself"),
        () = live => {}
    }
    let asked = asked.lock().clone();
    (store.about(), asked)
}

#[tokio::test(start_paused = true)]
async fn a_member_is_asked_once_it_is_healthy_and_now_and_then_by_pages() {
    let (about, asked) = ask_for_a_while(200, 11).await;
    assert_eq!(about.version.as_deref(), Some("v1.36.4"));
    assert!(matches!(
        about.nodes,
        Nodes::Known(NodeTotals {
            total: 3,
            ready: 3,
            ..
        })
    ));
    let first: Vec<_> = asked
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
    let times: Vec<u64> = asked
        .iter()
        .filter(|(_, uri)| uri == "/version")
        .map(|it| it.0)
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
async fn nodes_that_may_not_be_listed_are_not_asked_for_more_often() {
    let (about, asked) = ask_for_a_while(403, 4).await;
    assert_eq!(about.nodes, Nodes::Forbidden);
    assert!(asked.len() <= 2, "{asked:?}");
    let (about, asked) = ask_for_a_while(503, 4).await;
    assert_eq!(about.nodes, Nodes::Unknown);
    assert!(
        asked.len() > 10,
        "a failure is tried again sooner: {asked:?}"
    );
}
