//! The federated controller over embedded clusters on paused time.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of a test: what can't go on ends"
)]

use std::time::Duration;

use fedrs_tests::{Fleet, FleetSpec, ReadyWatcher, even, frs};
use serde_json::{Value, json};
use sim_cluster::{RequestMatcher, Status, Verb};

/// The set that the tests of deletions make.
const WEB: &str = "/apis/fedrs.dev/v1alpha1/namespaces/default/federatedreplicasets/web";

#[tokio::test(start_paused = true)]
async fn scenario_1_an_even_spread() {
    let fleet = Fleet::start(FleetSpec::default()).await;
    fleet.create(&frs("web", 50, &even(true))).await;
    fleet
        .wait_until("50 run, evenly", 30, async |it| it.available("web") == 50)
        .await;
    assert_eq!(fleet.sorted_layout("web"), [16, 17, 17]);
    fleet
        .wait_until("the status says so", 2, async |it| {
            it.condition("web", "Ready").await.as_deref() == Some("True")
        })
        .await;
    let status = fleet.frs("web").await["status"].clone();
    assert_eq!(status["readyReplicas"], 50);
    assert_eq!(status["summary"], "3/3");
    assert_eq!(status["selector"], "app=web");
}

#[tokio::test(start_paused = true)]
async fn f34_a_small_member_keeps_six_and_a_couple_waiting() {
    let mut spec = FleetSpec::default();
    (spec.members[2].nodes, spec.members[2].pods_per_node) = (1, 6);
    let fleet = Fleet::start(spec).await;
    fleet.create(&frs("web", 50, &even(true))).await;
    fleet
        .wait_until("50 run", 180, async |it| it.available("web") == 50)
        .await;
    assert_eq!(
        fleet.sorted_layout("web"),
        [8, 22, 22],
        "two of c's eight wait"
    );
}

#[tokio::test(start_paused = true)]
async fn f20_a_move_by_weight_never_dips_and_keeps_to_the_surge() {
    let fleet = Fleet::running(40).await;
    let watcher = ReadyWatcher::start(&fleet, "web");
    let clusters = json!({ "a": { "weight": 8 }, "b": { "weight": 1 }, "c": { "weight": 1 } });
    fleet
        .patch(
            "web",
            &json!({ "spec": { "placement": { "clusters": clusters } } }),
        )
        .await;
    fleet
        .patch(
            "web",
            &json!({ "spec": { "placement": { "clusters": { "*": null } } } }),
        )
        .await;
    fleet
        .wait_until("moved", 30, async |it| {
            it.sorted_layout("web") == [4, 4, 32] && it.available("web") == 40
        })
        .await;
    assert_eq!(watcher.lowest(), 40);
    assert!(watcher.highest() <= 50, "{}", watcher.highest());
}

#[tokio::test(start_paused = true)]
async fn a_move_of_sixty_replicas_wastes_no_write() {
    let fleet = Fleet::running(90).await;
    let watcher = ReadyWatcher::start(&fleet, "web");
    let before = fleet.conflicts();
    let clusters = json!({ "a": { "weight": 1 }, "*": null });
    fleet
        .patch(
            "web",
            &json!({ "spec": { "placement": { "clusters": clusters } } }),
        )
        .await;
    fleet
        .wait_until("moved", 120, async |it| {
            it.layout("web")["a"] == 90 && it.available("web") == 90
        })
        .await;
    assert_eq!(watcher.lowest(), 90);
    assert_eq!(fleet.conflicts(), before);
}

#[tokio::test(start_paused = true)]
async fn f5_the_deletion_policy_deletes_the_local_sets() {
    let fleet = Fleet::start(FleetSpec::default()).await;
    let mut set = frs("web", 9, &even(true));
    set["spec"]["deletionPolicy"] = json!("Delete");
    fleet.create(&set).await;
    fleet
        .wait_until("9 run", 30, async |it| it.available("web") == 9)
        .await;
    fleet.delete("web").await;
    fleet
        .wait_until("it is gone", 30, async |it| it.frs("web").await.is_null())
        .await;
    fleet
        .wait_until("and all its pods", 30, async |it| {
            it.available("web") == 0 && it.local_set("a", "web").is_none()
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_restarted_controller_writes_nothing() {
    let mut fleet = Fleet::running(50).await;
    fleet
        .wait_until("settled", 5, async |it| it.is_settled("web").await)
        .await;
    tokio::time::sleep(Duration::from_secs(120)).await;
    fleet.stop_controller().await;
    let versions = |fleet: &Fleet| -> Vec<Value> {
        let version = |name: &String| {
            fleet
                .local_set(name, "web")
                .map(|it| it["metadata"]["resourceVersion"].clone())
        };
        fleet.member_names().iter().filter_map(version).collect()
    };
    let before = (
        versions(&fleet),
        fleet.frs("web").await["metadata"]["resourceVersion"].clone(),
    );
    fleet.start_controller().await;
    tokio::time::sleep(Duration::from_secs(300)).await;
    let after = (
        versions(&fleet),
        fleet.frs("web").await["metadata"]["resourceVersion"].clone(),
    );
    assert_eq!(before, after);
}

#[tokio::test(start_paused = true)]
async fn c5_overlapping_selectors_are_told_on_both_sets_while_they_last() {
    let fleet = Fleet::start(FleetSpec::default()).await;
    fleet.create(&frs("web", 3, &even(true))).await;
    let mut other = frs("web-2", 3, &even(true));
    other["spec"]["selector"]["matchLabels"] = json!({ "app": "web" });
    other["spec"]["template"]["metadata"]["labels"] = json!({ "app": "web", "track": "canary" });
    fleet.create(&other).await;
    for name in ["web", "web-2"] {
        fleet
            .wait_until("told", 5, async |it| {
                it.condition(name, "SelectorOverlap").await.as_deref() == Some("True")
            })
            .await;
    }
    fleet.delete("web-2").await;
    fleet
        .wait_until("over", 30, async |it| {
            it.condition("web", "SelectorOverlap").await.is_none()
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn f5_pods_that_may_not_be_changed_do_not_hold_a_deletion_up() {
    let fleet = Fleet::running(9).await;
    let patches = RequestMatcher::all().verb(Verb::Patch).resource("pods");
    let forbidden = Status::new(
        403,
        "Forbidden",
        "the account's role is of an earlier version",
    );
    fleet.member("a").faults().refuse(patches, 1000, forbidden);
    fleet.delete("web").await;
    fleet
        .wait_until("it is gone", 30, async |it| it.frs("web").await.is_null())
        .await;
    assert_eq!(fleet.available("web"), 9);
    for member in fleet.member_names() {
        let set = fleet.local_set(&member, "web").unwrap();
        assert!(
            !set.to_string().contains("fedrs.dev/replica-set\""),
            "{set}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn f5_a_set_that_is_made_again_takes_up_what_the_deleted_one_left() {
    let fleet = Fleet::running(9).await;
    let uids = |fleet: &Fleet| {
        let names = fleet.member_names().into_iter();
        let sets = names.map(|it| fleet.local_set(&it, "web").expect("it goes on"));
        sets.map(|it| it["metadata"]["uid"].clone())
            .collect::<Vec<_>>()
    };
    let before = uids(&fleet);
    fleet.delete("web").await;
    fleet
        .wait_until("it is gone", 30, async |it| it.frs("web").await.is_null())
        .await;
    fleet.create(&frs("web", 9, &even(true))).await;
    fleet
        .wait_until("all are counted on again", 30, async |it| {
            it.condition("web", "Ready").await.as_deref() == Some("True")
        })
        .await;
    assert_eq!(uids(&fleet), before, "the same sets");
    fleet
        .wait_until("their pods are marked", 90, async |it| {
            let reasons = it.event_reasons("web").await;
            reasons.iter().filter(|it| *it == "PodsAdopted").count() == 3
        })
        .await;
    // The status follows within a second.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let writes = fleet.writes();
    tokio::time::sleep(Duration::from_secs(180)).await;
    assert_eq!(
        fleet.writes(),
        writes,
        "and nothing is written over and over"
    );
}

#[tokio::test(start_paused = true)]
async fn f5_a_set_of_the_name_of_one_that_went_unseen_gets_its_own_finalizer() {
    deletes_the_local_sets_of_a_successor(frs("web", 9, &even(true))).await;
}

#[tokio::test(start_paused = true)]
async fn f5_a_set_that_is_restored_with_its_finalizer_is_deleted_as_any_other() {
    let mut set = frs("web", 9, &even(true));
    set["metadata"]["finalizers"] = json!(["fedrs.dev/members"]);
    deletes_the_local_sets_of_a_successor(set).await;
}

#[tokio::test(start_paused = true)]
async fn f5_the_deletion_policy_decides_whatever_the_cascade() {
    for policy in ["Orphan", "Delete"] {
        for cascade in ["Foreground", "Background", "Orphan"] {
            let fleet = Fleet::running(9).await;
            let patch = json!({ "spec": { "deletionPolicy": policy } });
            fleet.patch("web", &patch).await;
            let options = json!({ "propagationPolicy": cascade });
            fleet.on_host("DELETE", WEB, &options).await.unwrap();
            let gone = async |fleet: &Fleet| fleet.frs("web").await.is_null();
            fleet.wait_until("the object is gone", 30, gone).await;
            for member in fleet.member_names() {
                let replicas = fleet
                    .local_set(&member, "web")
                    .map(|set| set["spec"]["replicas"].clone());
                let expected = (policy == "Orphan").then(|| json!(3));
                assert_eq!(replicas, expected, "{policy} {cascade} {member}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn f5_a_user_who_removes_the_finalizer_ends_a_deletion_that_waits() {
    for cascade in ["Background", "Foreground"] {
        let fleet = Fleet::running(9).await;
        fleet.member("b").faults().set_unreachable(true);
        let options = json!({ "propagationPolicy": cascade });
        fleet.on_host("DELETE", WEB, &options).await.unwrap();
        fleet
            .wait_until("the deletion waits for b", 30, async |it| {
                let reasons = it.event_reasons("web").await;
                reasons.iter().any(|it| it == "DeletionPending")
            })
            .await;
        let without = json!({ "metadata": { "finalizers": null } });
        fleet.patch("web", &without).await;
        fleet
            .wait_until("it is gone", 30, async |it| it.frs("web").await.is_null())
            .await;
    }
}

#[tokio::test(start_paused = true)]
async fn f5_a_set_that_goes_before_it_has_its_finalizer_leaves_nothing() {
    let fleet = Fleet::start(FleetSpec::default()).await;
    let patches = RequestMatcher::all()
        .verb(Verb::Patch)
        .resource("federatedreplicasets");
    let overloaded = Status::new(500, "InternalError", "it has a bad minute");
    fleet.host().faults().refuse(patches, 1000, overloaded);
    fleet.create(&frs("web", 9, &even(true))).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    fleet.delete("web").await;
    assert!(fleet.frs("web").await.is_null(), "nothing held it");
    for member in fleet.member_names() {
        assert!(fleet.local_set(&member, "web").is_none(), "{member}");
    }
}

/// Replaces a set by `next` while no controller runs; deleting `next` deletes its local sets.
async fn deletes_the_local_sets_of_a_successor(mut next: Value) {
    next["spec"]["deletionPolicy"] = json!("Delete");
    let mut fleet = Fleet::running(9).await;
    fleet.stop_controller().await;
    let uid = async |fleet: &Fleet| fleet.frs("web").await["metadata"]["uid"].clone();
    let earlier = uid(&fleet).await;
    fleet.on_host("DELETE", WEB, &Value::Null).await.unwrap();
    fleet
        .patch("web", &json!({ "metadata": { "finalizers": null } }))
        .await;
    fleet.create(&next).await;
    assert_ne!(uid(&fleet).await, earlier);
    fleet.start_controller().await;
    fleet
        .wait_until("it has the finalizer, and is ready", 30, async |it| {
            let finalizers = it.frs("web").await["metadata"]["finalizers"].clone();
            finalizers == json!(["fedrs.dev/members"])
                && it.condition("web", "Ready").await.as_deref() == Some("True")
        })
        .await;
    fleet.delete("web").await;
    fleet
        .wait_until("it is gone", 30, async |it| it.frs("web").await.is_null())
        .await;
    for member in fleet.member_names() {
        assert!(fleet.local_set(&member, "web").is_none(), "{member}");
    }
}
