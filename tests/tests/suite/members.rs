//! Members that are added, removed, full, or unreachable (F33 to F36, F39).

use std::time::Duration;

use control_plane::ProxyMode;
use fedrs_tests::{even, frs, test_environment::TestEnvironment};
use serde_json::json;

pub(crate) async fn f36_a_member_is_added_and_removed(env: &mut TestEnvironment) {
    env.remove_member("c").await;
    env.run(&frs(
        "web",
        12,
        &json!({ "rebalance": true, "clusters": { "*": { "weight": 1 } } }),
    ))
    .await;
    let dips = env.watch("web").await;
    env.add_member("c").await;
    env.wait_until("three clusters share", 60, async |env| {
        env.sorted_layout("web").await == [4, 4, 4] && env.available("web").await == 12
    })
    .await;
    env.remove_member("c").await;
    env.wait_until(
        "the other clusters run all replicas again",
        60,
        async |env| {
            let layout = env.layout("web").await;
            [layout["a"], layout["b"]] == [6, 6]
        },
    )
    .await;
    dips.assert_never_below(12);
}

pub(crate) async fn f33_an_unreachable_member_is_lost_and_returns(env: &mut TestEnvironment) {
    env.run(&frs("web", 50, &even(true))).await;
    let dips = env.watch("web").await;
    env.set_network("b", ProxyMode::Blackhole);
    env.wait_until("its replicas run in other clusters", 90, async |env| {
        let layout = env.layout("web").await;
        layout["a"] == 25 && layout["c"] == 25 && env.available("web").await >= 66
    })
    .await;
    env.set_network("b", ProxyMode::Forward(Duration::ZERO));
    env.wait_until("the surplus is removed", 90, async |env| {
        env.sorted_layout("web").await == [16, 17, 17] && env.available("web").await == 50
    })
    .await;
    dips.assert_never_below(50);
    let reasons = env.event_reasons("web").await;
    assert!(reasons.contains(&"ClusterLost".to_owned()), "{reasons:?}");
    assert!(
        reasons.contains(&"ClusterReturned".to_owned()),
        "{reasons:?}"
    );
}

pub(crate) async fn f33_a_hanging_member_is_lost_and_returns(env: &mut TestEnvironment) {
    env.run(&frs("web", 12, &even(true))).await;
    let dips = env.watch("web").await;
    env.hang("b", true).await;
    env.wait_until("its replicas run in other clusters", 90, async |env| {
        // The API server of b does not answer.
        for member in ["a", "c"] {
            let set = env.local_set(member, "web").await;
            if set["status"]["availableReplicas"] != 6 {
                return false;
            }
        }
        true
    })
    .await;
    env.hang("b", false).await;
    env.wait_until("the surplus is removed", 90, async |env| {
        env.sorted_layout("web").await == [4, 4, 4] && env.available("web").await == 12
    })
    .await;
    dips.assert_never_below(12);
    let reasons = env.event_reasons("web").await;
    assert!(reasons.contains(&"ClusterLost".to_owned()), "{reasons:?}");
}

pub(crate) async fn f39_a_slow_link_that_breaks_changes_nothing(env: &mut TestEnvironment) {
    env.run(&frs("web", 12, &even(true))).await;
    let dips = env.watch("web").await;
    env.set_network("b", ProxyMode::Forward(Duration::from_millis(300)));
    let scale = async |env: &TestEnvironment, replicas: u64| {
        let spec = json!({ "spec": { "replicas": replicas } });
        env.patch("web", &spec).await;
        env.wait_until(
            "all replicas are available and evenly spread",
            60,
            async |env| {
                env.available("web").await == replicas
                    && env.sorted_layout("web").await == [replicas / 3; 3]
            },
        )
        .await;
    };
    scale(env, 15).await;
    // Shorter than the failure threshold of the liveness probe.
    env.set_network("b", ProxyMode::Reset);
    tokio::time::sleep(Duration::from_secs(1)).await;
    env.set_network("b", ProxyMode::Forward(Duration::ZERO));
    scale(env, 18).await;
    dips.assert_never_below(12);
    let reasons = env.event_reasons("web").await;
    assert!(!reasons.contains(&"ClusterLost".to_owned()), "{reasons:?}");
}

/// Each node has 64 CPUs: three replicas of 20.
pub(crate) async fn f34_full_nodes_keep_two_capacity_probes(env: &mut TestEnvironment) {
    let mut set = frs("web", 24, &even(true));
    let requests = json!({ "requests": { "cpu": "20" } });
    set["spec"]["template"]["spec"]["containers"][0]["resources"] = requests;
    for node in ["c-node-1", "c-node-2"] {
        let cordon = json!({ "spec": { "unschedulable": true } });
        let path = format!("/api/v1/nodes/{node}");
        env.on_member("c", "PATCH", &path, &cordon).await.unwrap();
    }
    // 9 in a, 9 in b, 3 in c: no cluster can run the other three.
    env.create(&set).await;
    env.wait_until(
        "21 replicas are available and three are unplaced",
        90,
        async |env| env.available("web").await == 21,
    )
    .await;
    env.wait_until("the status reports it", 60, async |env| {
        env.condition("web", "Placed").await.as_deref() == Some("False")
    })
    .await;
    for node in ["c-node-1", "c-node-2"] {
        let uncordon = json!({ "spec": { "unschedulable": null } });
        let path = format!("/api/v1/nodes/{node}");
        env.on_member("c", "PATCH", &path, &uncordon).await.unwrap();
    }
    env.wait_until(
        "all replicas are available and evenly spread",
        120,
        async |env| env.available("web").await == 24 && env.sorted_layout("web").await == [8, 8, 8],
    )
    .await;
}

pub(crate) async fn f39_a_member_with_compacted_history_changes_nothing(env: &mut TestEnvironment) {
    env.run(&frs("web", 12, &even(true))).await;
    let dips = env.watch("web").await;
    env.compact_history("b").await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    env.patch("web", &json!({ "spec": { "replicas": 15 } }))
        .await;
    env.wait_until("the set scales up", 60, async |env| {
        env.available("web").await == 15 && env.sorted_layout("web").await == [5, 5, 5]
    })
    .await;
    dips.assert_never_below(12);
}

pub(crate) async fn pods_of_a_failed_node_are_replaced_in_their_cluster(env: &mut TestEnvironment) {
    env.run(&frs("web", 12, &even(true))).await;
    env.lose_node("a", 1, true).await;
    env.wait_until("the pods run on other nodes", 600, async |env| {
        let path = format!("/api/v1/namespaces/{}/pods", env.namespace());
        let pods = env
            .on_member("a", "GET", &path, &serde_json::Value::Null)
            .await
            .unwrap();
        let mut pods = pods["items"].as_array().unwrap().iter();
        let elsewhere = |pod: &serde_json::Value| {
            pod["spec"]["nodeName"] != "a-node-1" || !pod["metadata"]["deletionTimestamp"].is_null()
        };
        pods.all(elsewhere) && env.available("web").await == 12
    })
    .await;
    env.lose_node("a", 1, false).await;
    env.wait_until("balanced", 120, async |env| {
        env.sorted_layout("web").await == [4, 4, 4] && env.available("web").await == 12
    })
    .await;
}

/// `fedrs unjoin` needs no permissions in the member: the controller's account deletes itself.
pub(crate) async fn f36_fedrs_join_adds_a_member_and_fedrs_unjoin_removes_it(
    env: &mut TestEnvironment,
) {
    let placement = json!({ "rebalance": true, "clusters": { "*": { "weight": 1 } } });
    env.run(&frs("web", 12, &placement)).await;
    let dips = env.watch("web").await;
    let output = env.join("c").await;
    assert!(output.contains("c is ready"), "{output}");
    env.wait_until("three clusters share", 60, async |env| {
        env.sorted_layout("web").await == [4, 4, 4] && env.available("web").await == 12
    })
    .await;
    let output = env.unjoin("c").await;
    assert!(output.contains("c is no longer a member"), "{output}");
    let layout = env.layout("web").await;
    assert_eq!([layout["a"], layout["b"]], [6, 6]);
    assert!(
        env.local_set("c", "web").await.is_null(),
        "c had no replicas"
    );
    dips.assert_never_below(12);
}

/// The API server enforces the permissions: the controller watches and writes in these namespaces only.
pub(crate) async fn s1_a_member_joins_for_some_namespaces_and_for_others(
    env: &mut TestEnvironment,
) {
    let placement = json!({ "rebalance": true, "clusters": { "*": { "weight": 1 } } });
    env.run(&frs("web", 12, &placement)).await;
    let dips = env.watch("web").await;
    let other = format!("{}-other", env.namespace());
    let namespaces = format!("{},{other}", env.namespace());
    let output = env.join_with("c", &["--namespaces", &namespaces]).await;
    assert!(output.contains("c is ready"), "{output}");
    env.wait_until("three clusters share", 60, async |env| {
        env.sorted_layout("web").await == [4, 4, 4] && env.available("web").await == 12
    })
    .await;
    let output = env.join_with("c", &["--namespaces", &other]).await;
    let roles = format!(
        "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles",
        env.namespace()
    );
    let left = env
        .on_member("c", "GET", &roles, &serde_json::Value::Null)
        .await;
    assert_eq!(left.unwrap()["items"], json!([]), "{output}");
    let layout = env.layout("web").await;
    assert_eq!([layout["a"], layout["b"], layout["c"]], [6, 6, 0]);
    dips.assert_never_below(12);
    let output = env.unjoin("c").await;
    assert!(output.contains("c is no longer a member"), "{output}");
    // A user without a kubeconfig of the member leaves it.
    let path = format!("/api/v1/namespaces/{other}");
    let deleted = env.on_member("c", "DELETE", &path, &serde_json::Value::Null);
    deleted.await.unwrap();
}

pub(crate) async fn a_token_is_renewed_before_it_expires(env: &mut TestEnvironment) {
    let old = env.join_with_an_old_token("c").await;
    env.wait_until("the Secret has another token", 60, async |env| {
        env.stored_kubeconfig("c").await != old
    })
    .await;
    env.wait_until("the member is used", 30, async |env| {
        env.member_condition("c", "Ready").await.as_deref() == Some("True")
    })
    .await;
    env.run(&frs("web", 6, &even(true))).await;
    assert_eq!(env.sorted_layout("web").await, [2, 2, 2]);
}
