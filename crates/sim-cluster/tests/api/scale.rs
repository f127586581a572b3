//! Many objects: lists and watches stay whole, and quick enough to work with.

use std::time::Instant;

use http::Request;
use http_body_util::BodyExt;
use serde_json::json;
use sim_cluster::WriteOptions;
use sim_cluster::{SimCluster, kinds};

use crate::support::Client;

const PODS: usize = 2_000;
const WATCHES: usize = 10;

/// Prints what it took; run it with `--release -- --nocapture` for numbers that mean something.
#[tokio::test(start_paused = true)]
async fn thousands_of_pods_are_listed_and_watched() {
    let cluster = SimCluster::builder("big").log_capacity(4 * PODS).start();
    let client = Client::new(cluster.service());
    let mut watches = Vec::new();
    for _ in 0..WATCHES {
        let open = client.open(
            Request::get("/api/v1/pods?watch=1&labelSelector=app%3Da"),
            String::new(),
        );
        watches.push(open.await.into_body());
    }
    let started = Instant::now();
    for number in 0..PODS {
        let pod = json!({"metadata": {"name": format!("p-{number}"), "labels": {"app": "a"}},
            "spec": {"containers": [{"name": "c", "image": "i"}], "schedulerName": "nobody"}});
        let options = WriteOptions::default();
        cluster
            .api()
            .create(&kinds::PODS, "default", pod, &options)
            .expect("created");
    }
    println!("{PODS} pods created in {:?}", started.elapsed());

    let started = Instant::now();
    for watch in &mut watches {
        let mut events = 0;
        while events < PODS {
            let frame = watch.frame().await.expect("more").expect("no error");
            events += usize::from(frame.is_data());
        }
    }
    println!("{WATCHES} watches read in {:?}", started.elapsed());

    let started = Instant::now();
    let list = client.get("/api/v1/pods?labelSelector=app%3Da").await;
    println!(
        "{} bytes listed in {:?}",
        list.text.len(),
        started.elapsed()
    );
    let items = list.expect(200)["items"].as_array().map(Vec::len);
    assert_eq!(items, Some(PODS));
}
