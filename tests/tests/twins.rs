//! One cluster that is a member under two names, by two kubeconfigs: nothing runs less for it (F20).

#![expect(clippy::unwrap_used, reason = "a test that can't go on ends")]

use fedrs_api::labels;
use fedrs_tests::{Fleet, FleetSpec, ReadyWatcher, even, frs, minutes};
use serde_json::{Value, json};

/// The status of `web` in the member.
async fn told(fleet: &Fleet, member: &str) -> Value {
    let frs = fleet.frs("web").await;
    let clusters = frs["status"]["clusters"].as_array().unwrap();
    let found = clusters.iter().find(|it| it["name"] == member);
    found.cloned().unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn f20_a_second_name_of_a_member_takes_nothing_away() {
    let mut fleet = Fleet::start(FleetSpec::default()).await;
    fleet.run(12).await;
    let watcher = ReadyWatcher::start(&fleet, "web");
    fleet.add_member_as("another", "b").await;
    minutes(5).await;
    assert_eq!(fleet.sorted_layout("web"), [4, 4, 4]);
    watcher.assert_never_below(12);
    let reason = told(&fleet, "another").await["message"].clone();
    assert_eq!(reason, "same cluster as b, which counts its replicas");
    let reasons = fleet.event_reasons("web").await;
    assert!(
        reasons.contains(&"DuplicateMember".to_owned()),
        "{reasons:?}"
    );
    let before = fleet.writes();
    minutes(30).await;
    assert_eq!(fleet.writes(), before, "at rest nothing is written");

    // Renamed: the old kubeconfig goes, and nothing moves.
    let set = fleet.local_set("b", "web").unwrap();
    fleet.remove_member("b").await;
    fleet
        .wait_until("the other name has it", 10, async |it| {
            told(it, "another").await["desiredReplicas"] == 4
        })
        .await;
    minutes(10).await;
    assert_eq!(fleet.sorted_layout("web"), [4, 4, 4]);
    assert_eq!((watcher.lowest(), watcher.highest()), (12, 12));
    let renamed = fleet.local_set("b", "web").unwrap();
    assert_eq!(renamed["metadata"]["uid"], set["metadata"]["uid"]);
    assert_eq!(renamed["spec"]["template"], set["spec"]["template"]);
    assert_eq!(
        renamed["metadata"]["labels"][labels::MEMBER_CLUSTER],
        "another"
    );
}

#[tokio::test(start_paused = true)]
async fn f20_a_new_set_of_a_cluster_with_two_names_runs_whole() {
    let mut fleet = Fleet::start(FleetSpec::default()).await;
    fleet.add_member_as("another", "b").await;
    minutes(1).await;
    fleet.create(&frs("web", 12, &even(true))).await;
    fleet
        .wait_until("all run", 30, async |it| {
            it.available("web") == 12 && it.sorted_layout("web") == [4, 4, 4]
        })
        .await;
    minutes(5).await;
    let before = fleet.writes();
    minutes(30).await;
    assert_eq!(fleet.writes(), before, "two names don't fight over it");
    assert_eq!(fleet.sorted_layout("web"), [4, 4, 4]);
    let watcher = ReadyWatcher::start(&fleet, "web");
    let patch = json!({ "spec": { "placement": { "clusters": { "a": { "weight": 2 }, "*": { "weight": 1 } } } } });
    fleet.patch("web", &patch).await;
    fleet
        .wait_until("twice as many in a", 60, async |it| {
            it.layout("web")["a"] == 6 && it.available("web") == 12
        })
        .await;
    watcher.assert_never_below(12);

    fleet.delete("web").await;
    fleet
        .wait_until("it is gone", 30, async |it| it.frs("web").await.is_null())
        .await;
    let released = fleet.local_set("b", "web").unwrap();
    assert_eq!(
        released["metadata"]["labels"][labels::REPLICA_SET],
        Value::Null
    );
    watcher.assert_never_below(12);
}
