//! When the version of a member cluster is read.

use std::sync::Arc;

use http::Response;
use jiff::Timestamp;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::{Instant, sleep};
use tower::service_fn;

use super::*;

/// A member that responds with the HTTP status `code`. Returns its version, and the seconds at which it was read.
async fn run_for(code: u16, minutes: u64) -> (Option<String>, Vec<u64>) {
    let requests = Arc::new(Mutex::new(Vec::new()));
    let start = Instant::now();
    let log = Arc::clone(&requests);
    let service = service_fn(move |request: http::Request<Body>| {
        assert_eq!(request.uri().path(), "/version");
        log.lock().push(start.elapsed().as_secs());
        let version = json!({ "gitVersion": "v1.36.4" });
        let response = Response::builder()
            .status(code)
            .body(Body::from(version.to_string().into_bytes()));
        async move { response }
    });
    let clock: crate::Clock = Arc::new(|| Timestamp::UNIX_EPOCH);
    let store = ClusterStore::new(clock, Duration::from_secs(30));
    let healthy = Notify::new();
    let settings = ClusterVersionSettings::default();
    let client = Client::new(service, "default");
    let run = run(client.into(), settings, &store, &healthy, 1);
    let live = async {
        sleep(Duration::from_secs(10)).await;
        store.set_health(&Health::Healthy);
        healthy.notify_one();
        sleep(Duration::from_secs(60 * minutes)).await;
    };
    tokio::select! {
        () = run => unreachable!("it runs for ever"),
        () = live => {}
    }
    let requests = requests.lock().clone();
    (store.cluster_info().version, requests)
}

#[tokio::test(start_paused = true)]
async fn the_version_of_a_healthy_member_is_read_at_once_and_periodically() {
    let (version, times) = run_for(200, 11).await;
    assert_eq!(version.as_deref(), Some("v1.36.4"));
    assert!(
        matches!(
            times[..],
            [10, 250..310, 490..610] | [10, 250..310, 490..610, _]
        ),
        "{times:?}"
    );
    let (version, times) = run_for(503, 4).await;
    assert_eq!(version, None);
    assert!(times.len() > 7, "a failure is retried sooner: {times:?}");
}
