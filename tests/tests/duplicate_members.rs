//! One cluster that is registered under two names: no replica stops (F20).

#![expect(clippy::unwrap_used, reason = "a test that can't go on ends")]

use fedrs_api::labels;
use fedrs_tests::{ReadyWatcher, SimFederation, SimFederationSpec, even, frs, minutes};
use serde_json::{Value, json};

/// The status of `web` in the member.
async fn cluster_status(federation: &SimFederation, member: &str) -> Value {
    let frs = federation.frs("web").await;
    let clusters = frs["status"]["clusters"].as_array().unwrap();
    let found = clusters.iter().find(|cluster| cluster["name"] == member);
    found.cloned().unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn f20_a_duplicate_member_removes_no_replicas() {
    let mut federation = SimFederation::start(SimFederationSpec::default()).await;
    federation.run(12).await;
    let watcher = ReadyWatcher::start(&federation, "web");
    federation.add_member_as("another", "b").await;
    minutes(5).await;
    assert_eq!(federation.sorted_layout("web"), [4, 4, 4]);
    watcher.assert_never_below(12);
    let reason = cluster_status(&federation, "another").await["message"].clone();
    assert_eq!(reason, "same cluster as b, which counts its replicas");
    let reasons = federation.event_reasons("web").await;
    assert!(
        reasons.contains(&"DuplicateMember".to_owned()),
        "{reasons:?}"
    );
    let before = federation.writes();
    minutes(30).await;
    assert_eq!(federation.writes(), before, "a settled set causes no write");

    // The member is renamed: the old kubeconfig is removed, and nothing moves.
    let set = federation.local_set("b", "web").unwrap();
    federation.remove_member("b").await;
    federation
        .wait_until(
            "the other member has the replicas",
            10,
            async |federation| cluster_status(federation, "another").await["desiredReplicas"] == 4,
        )
        .await;
    minutes(10).await;
    assert_eq!(federation.sorted_layout("web"), [4, 4, 4]);
    assert_eq!((watcher.lowest(), watcher.highest()), (12, 12));
    let renamed = federation.local_set("b", "web").unwrap();
    assert_eq!(renamed["metadata"]["uid"], set["metadata"]["uid"]);
    assert_eq!(renamed["spec"]["template"], set["spec"]["template"]);
    assert_eq!(
        renamed["metadata"]["labels"][labels::MEMBER_CLUSTER],
        "another"
    );
}

#[tokio::test(start_paused = true)]
async fn f20_a_new_set_runs_completely_with_a_duplicate_member() {
    let mut federation = SimFederation::start(SimFederationSpec::default()).await;
    federation.add_member_as("another", "b").await;
    minutes(1).await;
    federation.create(&frs("web", 12, &even(true))).await;
    federation
        .wait_until("all replicas are available", 30, async |federation| {
            federation.available("web") == 12 && federation.sorted_layout("web") == [4, 4, 4]
        })
        .await;
    minutes(5).await;
    let before = federation.writes();
    minutes(30).await;
    assert_eq!(
        federation.writes(),
        before,
        "the two names do not overwrite each other"
    );
    assert_eq!(federation.sorted_layout("web"), [4, 4, 4]);
    let watcher = ReadyWatcher::start(&federation, "web");
    let patch = json!({ "spec": { "placement": { "clusters": { "a": { "weight": 2 }, "*": { "weight": 1 } } } } });
    federation.patch("web", &patch).await;
    federation
        .wait_until("twice as many in a", 60, async |federation| {
            federation.layout("web")["a"] == 6 && federation.available("web") == 12
        })
        .await;
    watcher.assert_never_below(12);

    federation.delete("web").await;
    federation
        .wait_until("the object is deleted", 30, async |federation| {
            federation.frs("web").await.is_null()
        })
        .await;
    let released = federation.local_set("b", "web").unwrap();
    assert_eq!(
        released["metadata"]["labels"][labels::REPLICA_SET],
        Value::Null
    );
    watcher.assert_never_below(12);
}
