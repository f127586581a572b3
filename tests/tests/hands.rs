//! People and controllers that write the local sets too: put right, told, and never fought in a loop (F29, F31).

#![expect(clippy::unwrap_used, reason = "a test that can't go on ends")]

use std::time::Duration;

use fedrs_tests::{Fleet, FleetSpec, ReadyWatcher, even, frs};
use serde_json::{Value, json};
use sim_cluster::kinds::REPLICA_SETS;

const SETS: &str = "/apis/apps/v1/namespaces/default/replicasets";
const WEB: &str = "/apis/apps/v1/namespaces/default/replicasets/web";

/// A plain ReplicaSet that somebody made in a member.
fn foreign(replicas: u32, image: &str, label: &str) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": { "name": "web", "namespace": "default", "labels": { "team": "blue" } },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": { "app": label } },
            "template": {
                "metadata": { "labels": { "app": label } },
                "spec": { "containers": [{ "name": "main", "image": image }] },
            },
        },
    })
}

/// A ReplicaSet that a Deployment of the member controls.
async fn owned_by_a_deployment(fleet: &Fleet, member: &str) -> Value {
    let mut deployment = foreign(2, "old:1", "web");
    deployment["kind"] = json!("Deployment");
    let path = "/apis/apps/v1/namespaces/default/deployments";
    let deployment = fleet
        .on_member(member, "POST", path, &deployment)
        .await
        .unwrap();
    let mut set = foreign(2, "old:1", "web");
    set["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "name": "web",
        "uid": deployment["metadata"]["uid"],
        "controller": true,
    }]);
    set
}

#[tokio::test(start_paused = true)]
async fn f29_a_set_with_another_selector_is_replaced_without_its_pods() {
    let fleet = Fleet::start(FleetSpec::default()).await;
    fleet
        .on_member("a", "POST", SETS, &foreign(2, "old:1", "old"))
        .await
        .unwrap();
    fleet
        .wait_until("2 run in a", 30, async |it| it.available("web") == 2)
        .await;
    fleet.create(&frs("web", 9, &even(true))).await;
    fleet
        .wait_until("shared out", 90, async |it| {
            let set = it.local_set("a", "web").unwrap_or_default();
            set["spec"]["selector"]["matchLabels"]["app"] == "web" && it.available("web") == 9
        })
        .await;
    let pods = fleet.on_member(
        "a",
        "GET",
        "/api/v1/namespaces/default/pods?labelSelector=app%3Dold",
        &Value::Null,
    );
    assert_eq!(
        pods.await.unwrap()["items"].as_array().unwrap().len(),
        2,
        "its pods go on"
    );
    let told = fleet.event_messages("web", "Overwritten").await;
    let words = "a: existing ReplicaSet (replicas 2, images old:1, selector app=old) deleted without its pods: its selector is \
                 immutable";
    assert_eq!(told, [words]);
}

#[tokio::test(start_paused = true)]
async fn f40_a_set_of_another_federation_is_left_alone() {
    let mut other = foreign(2, "old:1", "web");
    other["metadata"]["labels"]["fedrs.dev/federation"] = json!("another");
    let fleet = Fleet::start(FleetSpec::default()).await;
    let made = fleet.on_member("a", "POST", SETS, &other).await.unwrap();
    fleet.create(&frs("web", 9, &even(true))).await;
    fleet
        .wait_until("told", 30, async |it| {
            it.condition("web", "NameConflict").await.as_deref() == Some("True")
        })
        .await;
    let set = fleet.local_set("a", "web").unwrap();
    assert_eq!(set["spec"], made["spec"]);
    fleet
        .wait_until("the others have it all", 180, async |it| {
            let layout = it.layout("web");
            layout["b"] + layout["c"] == 9
        })
        .await;
}

/// What another writer does to the set `web` of member a, again and again.
async fn meddle(fleet: &Fleet, change: &Value) {
    let path = format!("{WEB}?fieldManager=other-controller");
    // The set may be away for a moment.
    let _ = fleet.on_member("a", "PATCH", &path, change).await;
}

/// Writes of fedrs to the set in member a so far, as its generation tells: all others are `others`.
fn our_writes(fleet: &Fleet, others: i64) -> i64 {
    let set = fleet.local_set("a", "web").unwrap();
    set["metadata"]["generation"].as_i64().unwrap() - others
}

#[tokio::test(start_paused = true)]
async fn two_hands_on_one_set_do_not_swing() {
    let image = json!([{ "name": "main", "image": "registry.example/other:1" }]);
    let template = json!({ "spec": { "template": { "spec": { "containers": image } } } });
    for (change, is_undone) in [
        (
            json!({ "spec": { "replicas": 7 } }),
            (|set| set["spec"]["replicas"] == 3) as fn(&Value) -> bool,
        ),
        (template, |set| {
            let containers = &set["spec"]["template"]["spec"]["containers"];
            containers[0]["image"] == "registry.example/main:1"
        }),
    ] {
        let fleet = Fleet::running(9).await;
        let watcher = ReadyWatcher::start(&fleet, "web");
        let before = our_writes(&fleet, 0);
        let (mut changes, mut undone) = (0, Vec::new());
        let started = tokio::time::Instant::now();
        // Five minutes of another hand that is quicker than ours.
        while started.elapsed() < Duration::from_secs(300) {
            let set = fleet.local_set("a", "web").unwrap();
            if is_undone(&set) {
                undone.push(started.elapsed().as_secs());
                meddle(&fleet, &change).await;
                changes += 1;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert_eq!(
            undone,
            [0, 0, 10, 30, 70, 130, 190, 250],
            "put right at once, then after pauses that double up to a minute"
        );
        assert_eq!(
            our_writes(&fleet, changes) - before,
            7,
            "one write for each"
        );
        assert_eq!(watcher.lowest(), 9, "nothing is lost by the fight");
        drop(watcher);
        let told = fleet.condition_message("web", "Contended").await.unwrap();
        assert!(
            told.contains("the ReplicaSet in a") && told.contains("other-controller"),
            "{told}"
        );
        let reasons = fleet.event_reasons("web").await;
        for reason in ["DriftRepaired", "Contended"] {
            assert!(reasons.contains(&reason.to_owned()), "{reasons:?}");
        }
        fleet
            .wait_until("put right for good", 61, async |it| {
                is_undone(&it.local_set("a", "web").unwrap())
            })
            .await;
        the_fight_is_forgotten(&fleet).await;
    }
}

/// After ten minutes of quiet, and then nothing is left to write.
async fn the_fight_is_forgotten(fleet: &Fleet) {
    tokio::time::sleep(Duration::from_secs(590)).await;
    assert!(fleet.condition("web", "Contended").await.is_some());
    fleet
        .wait_until("the fight is forgotten", 12, async |it| {
            it.condition("web", "Contended").await.is_none()
        })
        .await;
    let writes = fleet.writes();
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(fleet.writes(), writes);
}

#[tokio::test(start_paused = true)]
async fn f31_a_set_that_is_deleted_again_and_again_is_not_made_in_a_loop() {
    let fleet = Fleet::running(9).await;
    let orphan = json!({ "propagationPolicy": "Orphan" });
    let (started, mut made) = (tokio::time::Instant::now(), Vec::new());
    while started.elapsed() < Duration::from_secs(200) {
        if fleet.local_set("a", "web").is_some() {
            made.push(started.elapsed().as_secs());
            fleet.on_member("a", "DELETE", WEB, &orphan).await.unwrap();
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(made, [0, 0, 10, 30, 70, 130, 190]);
    assert_eq!(
        fleet.condition("web", "Contended").await.as_deref(),
        Some("True")
    );
    fleet
        .wait_until("made again, its pods adopted", 70, async |it| {
            it.sorted_layout("web") == [3, 3, 3] && it.available("web") == 9
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_write_meets_the_spec_that_it_was_meant_for_or_fails() {
    let spec = |set: &mut Value| set["spec"]["replicas"] = json!(7);
    let mark = |set: &mut Value| set["metadata"]["labels"]["fedrs.dev/federation"] = json!("other");
    let note = |set: &mut Value| set["metadata"]["annotations"] = json!({ "note": "by hand" });
    let status = |set: &mut Value| set["status"]["terminatingReplicas"] = json!(1);
    for (what, subresource, change, conflicts) in [
        ("spec", None, spec as fn(&mut Value), 1),
        ("federation", None, mark, 1),
        ("annotation", None, note, 0),
        ("status", Some("status"), status, 0),
    ] {
        let fleet = Fleet::running(9).await;
        fleet
            .member("a")
            .faults()
            .set_latency(Duration::from_secs(5));
        let before = fleet.conflicts();
        fleet
            .patch("web", &json!({ "spec": { "replicas": 15 } }))
            .await;
        tokio::time::sleep(Duration::from_secs(2)).await;
        // Our write is on its way.
        let api = fleet.member("a").api();
        api.modify(&REPLICA_SETS, subresource, "default", "web", change)
            .unwrap();
        tokio::time::sleep(Duration::from_secs(6)).await;
        assert_eq!(fleet.conflicts() - before, conflicts, "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn f29_a_set_that_gets_a_controller_is_somebody_elses_from_then_on() {
    let fleet = Fleet::running(9).await;
    let owned = owned_by_a_deployment(&fleet, "a").await;
    let adopt = |set: &mut Value| {
        set["metadata"]["ownerReferences"] = owned["metadata"]["ownerReferences"].clone();
        set["spec"]["replicas"] = json!(1);
    };
    let api = fleet.member("a").api();
    api.modify(&REPLICA_SETS, None, "default", "web", adopt)
        .unwrap();
    fleet
        .wait_until("told", 10, async |it| {
            it.condition("web", "NameConflict").await.as_deref() == Some("True")
        })
        .await;
    fleet
        .wait_until("the others have it all", 180, async |it| {
            let layout = it.layout("web");
            layout["a"] == 1 && layout["b"] + layout["c"] == 9
        })
        .await;
}
