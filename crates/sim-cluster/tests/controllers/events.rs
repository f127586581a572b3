//! How long events are kept.

use std::time::Duration;

use serde_json::json;
use sim_cluster::kinds;

use crate::cluster::Cluster;

#[tokio::test(start_paused = true)]
async fn an_event_expires_an_hour_after_its_last_write() {
    let cluster = Cluster::new(0, 0).await;
    let involved = json!({"kind": "Pod", "namespace": "default", "name": "a"});
    for name in ["once", "again"] {
        let event =
            json!({"metadata": {"name": name}, "involvedObject": involved, "reason": "Tried"});
        cluster.create(&kinds::EVENTS, event);
    }
    let there = || cluster.api.list(&kinds::EVENTS, Some("default")).len();
    tokio::time::sleep(Duration::from_mins(40)).await;
    cluster.edit(&kinds::EVENTS, "again", |event| event["count"] = json!(2));
    tokio::time::sleep(Duration::from_mins(19)).await;
    assert_eq!(there(), 2);
    tokio::time::sleep(Duration::from_mins(2)).await;
    assert_eq!(there(), 1);
    assert!(cluster.api.get(&kinds::EVENTS, "default", "again").is_ok());
    tokio::time::sleep(Duration::from_mins(40)).await;
    assert_eq!(there(), 0);
}
