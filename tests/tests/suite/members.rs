//! Members that come, go, are full, or can't be reached (F33 to F36, F39).

use std::time::Duration;

use control_plane::ProxyMode;
use fedrs_tests::{even, frs, stage::Stage};
use serde_json::json;

pub(crate) async fn f36_a_member_is_added_and_removed(stage: &mut Stage) {
    stage.remove_member("c").await;
    stage
        .run(&frs(
            "web",
            12,
            &json!({ "rebalance": true, "clusters": { "*": { "weight": 1 } } }),
        ))
        .await;
    let dips = stage.watch("web").await;
    stage.add_member("c").await;
    stage
        .wait_until("three clusters share", 60, async |it| {
            it.sorted_layout("web").await == [4, 4, 4] && it.available("web").await == 12
        })
        .await;
    stage.remove_member("c").await;
    stage
        .wait_until("the others have it all again", 60, async |it| {
            let layout = it.layout("web").await;
            [layout["a"], layout["b"]] == [6, 6]
        })
        .await;
    dips.assert_never_below(12);
}

pub(crate) async fn f33_a_member_goes_dark_and_returns(stage: &mut Stage) {
    stage.run(&frs("web", 50, &even(true))).await;
    let dips = stage.watch("web").await;
    stage.set_link("b", ProxyMode::Blackhole);
    stage
        .wait_until("its replicas run elsewhere", 90, async |it| {
            let layout = it.layout("web").await;
            layout["a"] == 25 && layout["c"] == 25 && it.available("web").await >= 66
        })
        .await;
    stage.set_link("b", ProxyMode::Forward(Duration::ZERO));
    stage
        .wait_until("the surplus is gone", 90, async |it| {
            it.sorted_layout("web").await == [16, 17, 17] && it.available("web").await == 50
        })
        .await;
    dips.assert_never_below(50);
    let reasons = stage.event_reasons("web").await;
    assert!(reasons.contains(&"ClusterLost".to_owned()), "{reasons:?}");
    assert!(
        reasons.contains(&"ClusterReturned".to_owned()),
        "{reasons:?}"
    );
}

pub(crate) async fn f33_a_member_that_hangs_is_lost_and_returns(stage: &mut Stage) {
    stage.run(&frs("web", 12, &even(true))).await;
    let dips = stage.watch("web").await;
    stage.hang("b", true).await;
    stage
        .wait_until("its replicas run elsewhere", 90, async |it| {
            // Nobody can ask b.
            for member in ["a", "c"] {
                let set = it.local_set(member, "web").await;
                if set["status"]["availableReplicas"] != 6 {
                    return false;
                }
            }
            true
        })
        .await;
    stage.hang("b", false).await;
    stage
        .wait_until("the surplus is gone", 90, async |it| {
            it.sorted_layout("web").await == [4, 4, 4] && it.available("web").await == 12
        })
        .await;
    dips.assert_never_below(12);
    let reasons = stage.event_reasons("web").await;
    assert!(reasons.contains(&"ClusterLost".to_owned()), "{reasons:?}");
}

pub(crate) async fn f39_a_slow_link_that_breaks_changes_nothing(stage: &mut Stage) {
    stage.run(&frs("web", 12, &even(true))).await;
    let dips = stage.watch("web").await;
    stage.set_link("b", ProxyMode::Forward(Duration::from_millis(300)));
    let scale = async |stage: &Stage, replicas: u64| {
        let spec = json!({ "spec": { "replicas": replicas } });
        stage.patch("web", &spec).await;
        stage
            .wait_until("all run, evenly", 60, async |it| {
                it.available("web").await == replicas
                    && it.sorted_layout("web").await == [replicas / 3; 3]
            })
            .await;
    };
    scale(stage, 15).await;
    // For less time than makes it unreachable.
    stage.set_link("b", ProxyMode::Reset);
    tokio::time::sleep(Duration::from_secs(1)).await;
    stage.set_link("b", ProxyMode::Forward(Duration::ZERO));
    scale(stage, 18).await;
    dips.assert_never_below(12);
    let reasons = stage.event_reasons("web").await;
    assert!(!reasons.contains(&"ClusterLost".to_owned()), "{reasons:?}");
}

/// Each node has 64 CPUs: three replicas of 20.
pub(crate) async fn f34_full_nodes_keep_a_couple_waiting(stage: &mut Stage) {
    let mut set = frs("web", 24, &even(true));
    let requests = json!({ "requests": { "cpu": "20" } });
    set["spec"]["template"]["spec"]["containers"][0]["resources"] = requests;
    for node in ["c-node-1", "c-node-2"] {
        let cordon = json!({ "spec": { "unschedulable": true } });
        let path = format!("/api/v1/nodes/{node}");
        stage.on_member("c", "PATCH", &path, &cordon).await.unwrap();
    }
    // 9 in a, 9 in b, 3 in c: three can run nowhere.
    stage.create(&set).await;
    stage
        .wait_until("21 run and three wait", 90, async |it| {
            it.available("web").await == 21
        })
        .await;
    stage
        .wait_until("the status says so", 60, async |it| {
            it.condition("web", "Placed").await.as_deref() == Some("False")
        })
        .await;
    for node in ["c-node-1", "c-node-2"] {
        let uncordon = json!({ "spec": { "unschedulable": null } });
        let path = format!("/api/v1/nodes/{node}");
        stage
            .on_member("c", "PATCH", &path, &uncordon)
            .await
            .unwrap();
    }
    stage
        .wait_until("all run, evenly", 120, async |it| {
            it.available("web").await == 24 && it.sorted_layout("web").await == [8, 8, 8]
        })
        .await;
}

pub(crate) async fn f39_a_member_that_forgot_its_history_changes_nothing(stage: &mut Stage) {
    stage.run(&frs("web", 12, &even(true))).await;
    let dips = stage.watch("web").await;
    stage.forget_history("b").await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    stage
        .patch("web", &json!({ "spec": { "replicas": 15 } }))
        .await;
    stage
        .wait_until("it goes on", 60, async |it| {
            it.available("web").await == 15 && it.sorted_layout("web").await == [5, 5, 5]
        })
        .await;
    dips.assert_never_below(12);
}

pub(crate) async fn a_lost_node_is_replaced_by_its_own_cluster(stage: &mut Stage) {
    stage.run(&frs("web", 12, &even(true))).await;
    stage.lose_node("a", 1, true).await;
    stage
        .wait_until("its pods run on other nodes", 600, async |it| {
            let path = format!("/api/v1/namespaces/{}/pods", it.namespace());
            let pods = it
                .on_member("a", "GET", &path, &serde_json::Value::Null)
                .await
                .unwrap();
            let mut pods = pods["items"].as_array().unwrap().iter();
            let elsewhere = |pod: &serde_json::Value| {
                pod["spec"]["nodeName"] != "a-node-1"
                    || !pod["metadata"]["deletionTimestamp"].is_null()
            };
            pods.all(elsewhere) && it.available("web").await == 12
        })
        .await;
    stage.lose_node("a", 1, false).await;
    stage
        .wait_until("balanced", 120, async |it| {
            it.sorted_layout("web").await == [4, 4, 4] && it.available("web").await == 12
        })
        .await;
}

/// Whoever lets a member go needs no right there: the controller's own account takes itself away.
pub(crate) async fn one_is_joined_and_leaves_by_command(stage: &mut Stage) {
    let placement = json!({ "rebalance": true, "clusters": { "*": { "weight": 1 } } });
    stage.run(&frs("web", 12, &placement)).await;
    let dips = stage.watch("web").await;
    let said = stage.join("c").await;
    assert!(said.contains("c is ready"), "{said}");
    stage
        .wait_until("three clusters share", 60, async |it| {
            it.sorted_layout("web").await == [4, 4, 4] && it.available("web").await == 12
        })
        .await;
    let said = stage.unjoin("c").await;
    assert!(said.contains("c is no longer a member"), "{said}");
    let layout = stage.layout("web").await;
    assert_eq!([layout["a"], layout["b"]], [6, 6]);
    assert!(stage.local_set("c", "web").await.is_null(), "it was empty");
    dips.assert_never_below(12);
}

pub(crate) async fn a_token_is_renewed_before_it_ends(stage: &mut Stage) {
    let old = stage.join_with_an_old_token("c").await;
    stage
        .wait_until("the Secret has another token", 60, async |it| {
            it.stored_kubeconfig("c").await != old
        })
        .await;
    stage
        .wait_until("the member is used", 30, async |it| {
            it.member_condition("c", "Ready").await.as_deref() == Some("True")
        })
        .await;
    stage.run(&frs("web", 6, &even(true))).await;
    assert_eq!(stage.sorted_layout("web").await, [2, 2, 2]);
}
