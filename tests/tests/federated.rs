//! The federation controller on embedded clusters and paused time.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of a test: what can't go on ends"
)]

use std::time::Duration;

use fedrs_tests::{ReadyWatcher, SimFederation, SimFederationSpec, even, frs};
use serde_json::{Value, json};
use sim_cluster::{RequestMatcher, Status, Verb};

/// The set that deletion tests create.
const WEB: &str = "/apis/fedrs.dev/v1alpha1/namespaces/default/federatedreplicasets/web";

#[tokio::test(start_paused = true)]
async fn f2_scenario_1_an_even_spread() {
    let federation = SimFederation::start(SimFederationSpec::default()).await;
    federation.create(&frs("web", 50, &even(true))).await;
    federation
        .wait_until("50 run, evenly", 30, async |federation| {
            federation.available("web") == 50
        })
        .await;
    assert_eq!(federation.sorted_layout("web"), [16, 17, 17]);
    federation
        .wait_until("the status reports it", 2, async |federation| {
            federation.condition("web", "Ready").await.as_deref() == Some("True")
        })
        .await;
    let status = federation.frs("web").await["status"].clone();
    assert_eq!(status["readyReplicas"], 50);
    assert_eq!(status["summary"], "3/3");
    assert_eq!(status["selector"], "app=web");
}

#[tokio::test(start_paused = true)]
async fn f34_a_full_member_keeps_its_six_replicas_and_two_capacity_probes() {
    let mut spec = SimFederationSpec::default();
    (spec.members[2].nodes, spec.members[2].pods_per_node) = (1, 6);
    let federation = SimFederation::start(spec).await;
    federation.create(&frs("web", 50, &even(true))).await;
    federation
        .wait_until("50 run", 180, async |federation| {
            federation.available("web") == 50
        })
        .await;
    assert_eq!(
        federation.sorted_layout("web"),
        [8, 22, 22],
        "two of c's eight wait"
    );
}

#[tokio::test(start_paused = true)]
async fn f20_a_move_by_weight_never_dips_and_stays_within_the_surge() {
    let federation = SimFederation::running(40).await;
    let watcher = ReadyWatcher::start(&federation, "web");
    let clusters = json!({ "a": { "weight": 8 }, "b": { "weight": 1 }, "c": { "weight": 1 } });
    federation
        .patch(
            "web",
            &json!({ "spec": { "placement": { "clusters": clusters } } }),
        )
        .await;
    federation
        .patch(
            "web",
            &json!({ "spec": { "placement": { "clusters": { "*": null } } } }),
        )
        .await;
    federation
        .wait_until("moved", 30, async |federation| {
            federation.sorted_layout("web") == [4, 4, 32] && federation.available("web") == 40
        })
        .await;
    assert_eq!(watcher.lowest(), 40);
    assert!(watcher.highest() <= 50, "{}", watcher.highest());
}

#[tokio::test(start_paused = true)]
async fn a_move_of_sixty_replicas_causes_no_conflicting_write() {
    let federation = SimFederation::running(90).await;
    let watcher = ReadyWatcher::start(&federation, "web");
    let before = federation.conflicts();
    let clusters = json!({ "a": { "weight": 1 }, "*": null });
    federation
        .patch(
            "web",
            &json!({ "spec": { "placement": { "clusters": clusters } } }),
        )
        .await;
    federation
        .wait_until("moved", 120, async |federation| {
            federation.layout("web")["a"] == 90 && federation.available("web") == 90
        })
        .await;
    assert_eq!(watcher.lowest(), 90);
    assert_eq!(federation.conflicts(), before);
}

#[tokio::test(start_paused = true)]
async fn f5_the_deletion_policy_deletes_the_local_sets() {
    let federation = SimFederation::start(SimFederationSpec::default()).await;
    let mut set = frs("web", 9, &even(true));
    set["spec"]["deletionPolicy"] = json!("Delete");
    federation.create(&set).await;
    federation
        .wait_until("9 run", 30, async |federation| {
            federation.available("web") == 9
        })
        .await;
    federation.delete("web").await;
    federation
        .wait_until("the object is deleted", 30, async |federation| {
            federation.frs("web").await.is_null()
        })
        .await;
    federation
        .wait_until("all its pods are deleted", 30, async |federation| {
            federation.available("web") == 0 && federation.local_set("a", "web").is_none()
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_restarted_controller_writes_nothing() {
    let mut federation = SimFederation::running(50).await;
    federation
        .wait_until("settled", 5, async |federation| {
            federation.is_settled("web").await
        })
        .await;
    tokio::time::sleep(Duration::from_secs(120)).await;
    federation.stop_controller().await;
    let versions = |federation: &SimFederation| -> Vec<Value> {
        let version = |name: &String| {
            federation
                .local_set(name, "web")
                .map(|set| set["metadata"]["resourceVersion"].clone())
        };
        federation
            .member_names()
            .iter()
            .filter_map(version)
            .collect()
    };
    let before = (
        versions(&federation),
        federation.frs("web").await["metadata"]["resourceVersion"].clone(),
    );
    federation.start_controller().await;
    tokio::time::sleep(Duration::from_secs(300)).await;
    let after = (
        versions(&federation),
        federation.frs("web").await["metadata"]["resourceVersion"].clone(),
    );
    assert_eq!(before, after);
}

#[tokio::test(start_paused = true)]
async fn c5_overlapping_selectors_are_a_condition_of_both_sets() {
    let federation = SimFederation::start(SimFederationSpec::default()).await;
    federation.create(&frs("web", 3, &even(true))).await;
    let mut other = frs("web-2", 3, &even(true));
    other["spec"]["selector"]["matchLabels"] = json!({ "app": "web" });
    other["spec"]["template"]["metadata"]["labels"] = json!({ "app": "web", "track": "canary" });
    federation.create(&other).await;
    for name in ["web", "web-2"] {
        federation
            .wait_until("the condition is reported", 5, async |federation| {
                federation
                    .condition(name, "SelectorOverlap")
                    .await
                    .as_deref()
                    == Some("True")
            })
            .await;
    }
    federation.delete("web-2").await;
    federation
        .wait_until("over", 30, async |federation| {
            federation
                .condition("web", "SelectorOverlap")
                .await
                .is_none()
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn f5_pods_that_can_not_be_patched_do_not_block_a_deletion() {
    let federation = SimFederation::running(9).await;
    let patches = RequestMatcher::all().verb(Verb::Patch).resource("pods");
    let forbidden = Status::new(
        403,
        "Forbidden",
        "the account's role is of an earlier version",
    );
    federation
        .member("a")
        .faults()
        .refuse(patches, 1000, forbidden);
    federation.delete("web").await;
    federation
        .wait_until("the object is deleted", 30, async |federation| {
            federation.frs("web").await.is_null()
        })
        .await;
    assert_eq!(federation.available("web"), 9);
    for member in federation.member_names() {
        let set = federation.local_set(&member, "web").unwrap();
        assert!(
            !set.to_string().contains("fedrs.dev/replica-set\""),
            "{set}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn f5_a_recreated_set_adopts_the_local_sets_of_the_deleted_one() {
    let federation = SimFederation::running(9).await;
    let uids = |federation: &SimFederation| {
        let names = federation.member_names().into_iter();
        let sets = names.map(|member| {
            federation
                .local_set(&member, "web")
                .expect("the set scales up")
        });
        sets.map(|set| set["metadata"]["uid"].clone())
            .collect::<Vec<_>>()
    };
    let before = uids(&federation);
    federation.delete("web").await;
    federation
        .wait_until("the object is deleted", 30, async |federation| {
            federation.frs("web").await.is_null()
        })
        .await;
    federation.create(&frs("web", 9, &even(true))).await;
    federation
        .wait_until("all replicas count again", 30, async |federation| {
            federation.condition("web", "Ready").await.as_deref() == Some("True")
        })
        .await;
    assert_eq!(uids(&federation), before, "the same sets");
    federation
        .wait_until("their pods are marked", 90, async |federation| {
            let events = federation.event_messages("web", "PodsAdopted").await;
            let events = events.join("; ");
            ["a", "b", "c"]
                .iter()
                .all(|member| events.contains(&format!("{member}: adopted")))
        })
        .await;
    // The status is updated within a second.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let writes = federation.writes();
    tokio::time::sleep(Duration::from_secs(180)).await;
    assert_eq!(federation.writes(), writes, "nothing is written repeatedly");
}

#[tokio::test(start_paused = true)]
async fn f5_a_recreated_set_whose_deletion_was_missed_gets_its_own_finalizer() {
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
            let federation = SimFederation::running(9).await;
            let patch = json!({ "spec": { "deletionPolicy": policy } });
            federation.patch("web", &patch).await;
            let options = json!({ "propagationPolicy": cascade });
            federation.on_host("DELETE", WEB, &options).await.unwrap();
            let gone = async |federation: &SimFederation| federation.frs("web").await.is_null();
            federation.wait_until("the object is gone", 30, gone).await;
            for member in federation.member_names() {
                let replicas = federation
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
        let federation = SimFederation::running(9).await;
        federation.member("b").faults().set_unreachable(true);
        let options = json!({ "propagationPolicy": cascade });
        federation.on_host("DELETE", WEB, &options).await.unwrap();
        federation
            .wait_until("the deletion waits for b", 30, async |federation| {
                let reasons = federation.event_reasons("web").await;
                reasons.iter().any(|reason| reason == "DeletionPending")
            })
            .await;
        let without = json!({ "metadata": { "finalizers": null } });
        federation.patch("web", &without).await;
        federation
            .wait_until("the object is deleted", 30, async |federation| {
                federation.frs("web").await.is_null()
            })
            .await;
    }
}

#[tokio::test(start_paused = true)]
async fn f5_a_set_that_is_deleted_before_it_has_its_finalizer_leaves_nothing() {
    let federation = SimFederation::start(SimFederationSpec::default()).await;
    let patches = RequestMatcher::all()
        .verb(Verb::Patch)
        .resource("federatedreplicasets");
    let overloaded = Status::new(500, "InternalError", "it has a bad minute");
    federation.host().faults().refuse(patches, 1000, overloaded);
    federation.create(&frs("web", 9, &even(true))).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    federation.delete("web").await;
    assert!(federation.frs("web").await.is_null(), "nothing held it");
    for member in federation.member_names() {
        assert!(federation.local_set(&member, "web").is_none(), "{member}");
    }
}

/// Replaces a set by `next` while no controller runs; deleting `next` deletes its local ReplicaSets.
async fn deletes_the_local_sets_of_a_successor(mut next: Value) {
    next["spec"]["deletionPolicy"] = json!("Delete");
    let mut federation = SimFederation::running(9).await;
    federation.stop_controller().await;
    let uid =
        async |federation: &SimFederation| federation.frs("web").await["metadata"]["uid"].clone();
    let earlier = uid(&federation).await;
    federation
        .on_host("DELETE", WEB, &Value::Null)
        .await
        .unwrap();
    federation
        .patch("web", &json!({ "metadata": { "finalizers": null } }))
        .await;
    federation.create(&next).await;
    assert_ne!(uid(&federation).await, earlier);
    federation.start_controller().await;
    federation
        .wait_until(
            "it has the finalizer, and is ready",
            30,
            async |federation| {
                let finalizers = federation.frs("web").await["metadata"]["finalizers"].clone();
                finalizers == json!(["fedrs.dev/members"])
                    && federation.condition("web", "Ready").await.as_deref() == Some("True")
            },
        )
        .await;
    federation.delete("web").await;
    federation
        .wait_until("the object is deleted", 30, async |federation| {
            federation.frs("web").await.is_null()
        })
        .await;
    for member in federation.member_names() {
        assert!(federation.local_set(&member, "web").is_none(), "{member}");
    }
}
