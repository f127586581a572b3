//! Watches: what they send, in which order, and how they end.

use std::time::Duration;

use crate::support::Client;
use http::Request;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use sim_cluster::Body;
use sim_cluster::{SimCluster, kinds};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// An open watch.
struct Watch(Body);

impl Watch {
    async fn open(client: &Client, path: &str) -> Self {
        let response = client.open(Request::get(path), String::new()).await;
        assert_eq!(response.status(), 200);
        Self(response.into_body())
    }

    /// The next event; `None` if the watch ended.
    async fn next(&mut self) -> Option<Value> {
        let next = tokio::time::timeout(Duration::from_hours(2), self.0.frame());
        let frame = next.await.expect("an event or the end within two hours")?;
        let data = frame.expect("no error").into_data().expect("data");
        assert!(data.ends_with(b"\n"));
        Some(serde_json::from_slice(&data).expect("one event a frame"))
    }

    /// The next event as its type and the name of its object.
    async fn summary(&mut self) -> (String, String) {
        let event = self.next().await.expect("an event");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        (
            text(&event["type"]),
            text(&event["object"]["metadata"]["name"]),
        )
    }
}

fn seen(kind: &str, name: &str) -> (String, String) {
    (kind.to_owned(), name.to_owned())
}

fn config_map(name: &str, tier: &str) -> Value {
    json!({"metadata": {"name": name, "labels": {"tier": tier}}})
}

fn client() -> (SimCluster, Client) {
    let cluster = SimCluster::builder("test").start();
    let client = Client::new(cluster.service());
    (cluster, client)
}

async fn list_version(client: &Client) -> String {
    let list = client.get(MAPS).await.expect(200);
    list["metadata"]["resourceVersion"]
        .as_str()
        .expect("a version")
        .to_owned()
}

#[tokio::test(start_paused = true)]
async fn selectors_turn_changes_into_additions_and_deletions() {
    let (_cluster, client) = client();
    let version = list_version(&client).await;
    let mut watch = Watch::open(
        &client,
        &format!("{MAPS}?watch=1&labelSelector=tier%3Da&resourceVersion={version}"),
    )
    .await;
    client.post(MAPS, config_map("one", "b")).await.expect(201);
    client.post(MAPS, config_map("two", "a")).await.expect(201);
    let relabel = |tier: &str| json!({"metadata": {"labels": {"tier": tier}}});
    let path = format!("{MAPS}/one");
    client
        .patch(&path, "merge-patch+json", &relabel("a"))
        .await
        .expect(200);
    client
        .patch(&path, "merge-patch+json", &json!({"data": {"k": "v"}}))
        .await
        .expect(200);
    let left = client
        .patch(&path, "merge-patch+json", &relabel("c"))
        .await
        .expect(200);
    client
        .delete(&format!("{MAPS}/two"), None)
        .await
        .expect(200);
    assert_eq!(watch.summary().await, seen("ADDED", "two"));
    assert_eq!(watch.summary().await, seen("ADDED", "one"));
    assert_eq!(watch.summary().await, seen("MODIFIED", "one"));
    let deleted = watch.next().await.unwrap();
    assert_eq!(deleted["type"], "DELETED");
    assert_eq!(
        deleted["object"]["metadata"]["labels"]["tier"], "a",
        "the last state selected"
    );
    assert_eq!(
        deleted["object"]["metadata"]["resourceVersion"], left["metadata"]["resourceVersion"],
        "with the version of the change"
    );
    assert_eq!(watch.summary().await, seen("DELETED", "two"));
}

#[tokio::test(start_paused = true)]
async fn initial_events_end_with_a_bookmark() {
    let (_cluster, client) = client();
    client.post(MAPS, config_map("a", "x")).await.expect(201);
    let query =
        "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut watch = Watch::open(&client, &format!("{MAPS}?{query}&labelSelector=tier")).await;
    assert_eq!(watch.summary().await, seen("ADDED", "a"));
    let bookmark = watch.next().await.unwrap();
    assert_eq!(bookmark["type"], "BOOKMARK");
    assert_eq!(
        bookmark["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"],
        "true"
    );
    assert_eq!(bookmark["object"]["kind"], "ConfigMap");
    assert_eq!(
        watch.next().await.unwrap()["type"],
        "BOOKMARK",
        "then one a minute"
    );
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_after_its_timeout() {
    let (_cluster, client) = client();
    let version = list_version(&client).await;
    let path = format!("{MAPS}?watch=1&timeoutSeconds=30&resourceVersion={version}");
    let mut watch = Watch::open(&client, &path).await;
    let started = tokio::time::Instant::now();
    assert_eq!(watch.next().await, None);
    assert_eq!(started.elapsed(), Duration::from_secs(30));
}

#[tokio::test(start_paused = true)]
async fn too_old_a_version_is_an_error_event() {
    let (cluster, client) = client();
    let version = list_version(&client).await;
    client.post(MAPS, config_map("a", "x")).await.expect(201);
    cluster.faults().compact();
    let mut watch = Watch::open(
        &client,
        &format!("{MAPS}?watch=1&resourceVersion={version}"),
    )
    .await;
    let event = watch.next().await.unwrap();
    assert_eq!(event["type"], "ERROR");
    assert_eq!(
        (&event["object"]["code"], &event["object"]["reason"]),
        (&json!(410), &json!("Expired"))
    );
    assert_eq!(watch.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_stalled_watch_catches_up_and_a_cut_one_ends() {
    let (cluster, client) = client();
    let version = list_version(&client).await;
    let mut watch = Watch::open(
        &client,
        &format!("{MAPS}?watch=1&resourceVersion={version}"),
    )
    .await;
    cluster.faults().set_watches_stalled(true);
    client.post(MAPS, config_map("a", "x")).await.expect(201);
    let silent = tokio::time::timeout(Duration::from_mins(5), watch.0.frame()).await;
    assert!(silent.is_err());
    cluster.faults().set_watches_stalled(false);
    assert_eq!(watch.summary().await, seen("ADDED", "a"));
    cluster.faults().cut_watches();
    assert_eq!(watch.next().await, None);
    let counts = cluster.faults().counts();
    assert_eq!((counts.watches_stalled, counts.watches_cut), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_removed_finalizer_is_seen_in_the_last_state() {
    let (_cluster, client) = client();
    let mut held = config_map("a", "x");
    held["metadata"]["finalizers"] = json!(["x.org/wait"]);
    client.post(MAPS, held).await.expect(201);
    let version = list_version(&client).await;
    let mut watch = Watch::open(
        &client,
        &format!("{MAPS}?watch=1&resourceVersion={version}"),
    )
    .await;
    client.delete(&format!("{MAPS}/a"), None).await.expect(200);
    let release = json!({"metadata": {"finalizers": []}});
    client
        .patch(&format!("{MAPS}/a"), "merge-patch+json", &release)
        .await
        .expect(200);
    assert_eq!(watch.summary().await, seen("MODIFIED", "a"));
    let last = watch.next().await.unwrap();
    assert_eq!(
        (&last["type"], &last["object"]["metadata"]["finalizers"]),
        (&json!("DELETED"), &json!(["x.org/wait"]))
    );
}

#[tokio::test(start_paused = true)]
async fn tables_are_watched_row_by_row() {
    let (_cluster, client) = client();
    client.post(MAPS, config_map("a", "x")).await.expect(201);
    let accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let request =
        Request::get(format!("{MAPS}?watch=1&labelSelector=tier")).header("accept", accept);
    let mut watch = Watch(client.open(request, String::new()).await.into_body());
    client.post(MAPS, config_map("b", "x")).await.expect(201);
    let (first, second) = (watch.next().await.unwrap(), watch.next().await.unwrap());
    assert_eq!(first["object"]["columnDefinitions"][0]["name"], "Name");
    assert_eq!(
        second["object"]["columnDefinitions"],
        Value::Null,
        "once is enough"
    );
    assert_eq!(second["object"]["rows"][0]["cells"], json!(["b", 0, "0s"]));
}

#[tokio::test(start_paused = true)]
async fn changes_of_the_api_arrive_in_order() {
    let (cluster, client) = client();
    let mut changes = cluster.api().changes();
    client.post(MAPS, config_map("a", "x")).await.expect(201);
    client.delete(&format!("{MAPS}/a"), None).await.expect(200);
    let mut of_a = Vec::new();
    while of_a.len() < 2 {
        if let sim_cluster::ChangeEvent::Change(change) = changes.next().await
            && change.kind == *kinds::CONFIG_MAPS
            && change.name == "a"
        {
            of_a.push((change.old.is_some(), change.new.is_some()));
        }
    }
    assert_eq!(of_a, [(false, true), (true, false)]);
}
