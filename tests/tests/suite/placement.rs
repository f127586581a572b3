//! Edits of the placement, including mistakes: no service loses replicas unless the user asked for it (F3, F20).

use std::time::Duration;

use fedrs_tests::{even, frs, test_environment::TestEnvironment};
use serde_json::{Value, json};

/// Several times as long as the controller waits before it checks a set again.
const SEVERAL_CHECKS: Duration = Duration::from_secs(8);

/// Replaces the placement of `web`, and waits until the controller has decided about it.
async fn place(env: &TestEnvironment, placement: &Value) {
    let before = env.frs("web").await["spec"]["placement"]["clusters"].clone();
    let before = before.as_object().into_iter().flatten();
    // A merge patch removes an entry by null.
    let mut merged = placement.clone();
    for (name, _) in before {
        if merged["clusters"][name].is_null() {
            merged["clusters"][name] = Value::Null;
        }
    }
    env.patch("web", &json!({ "spec": { "placement": merged } }))
        .await;
    env.wait_until("the placement is decided", 30, async |env| {
        let set = env.frs("web").await;
        set["status"]["observedGeneration"] == set["metadata"]["generation"]
    })
    .await;
    assert_eq!(
        env.frs("web").await["spec"]["placement"]["clusters"],
        placement["clusters"]
    );
}

/// Status, reason and message of the condition `Placed`.
async fn placed(env: &TestEnvironment) -> [String; 3] {
    let set = env.frs("web").await;
    let conditions = set["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    let placed = conditions.find(|condition| condition["type"] == "Placed");
    let placed = placed.expect("a set that was checked has the condition");
    ["status", "reason", "message"].map(|field| placed[field].as_str().unwrap().to_owned())
}

pub(crate) async fn f3_f20_a_misspelt_cluster_stops_no_service(env: &mut TestEnvironment) {
    env.run(&frs("web", 12, &even(false))).await;
    let dips = env.watch("web").await;
    let nowhere = "12 of 12 replicas have no cluster: the placement selects no member cluster";
    let misspelt = format!("{nowhere}; no member cluster is named \"aa\"; did you mean \"a\"?");
    let unlike = format!("{nowhere}; no member cluster is named \"production\"");
    let cases = [
        (json!({ "clusters": { "aa": { "weight": 1 } } }), &*misspelt),
        (
            json!({ "rebalance": true, "clusters": { "aa": { "weight": 1, "minReplicas": 12 } } }),
            &*misspelt,
        ),
        (
            json!({ "rebalance": true, "clusters": { "production": { "weight": 1 } } }),
            &*unlike,
        ),
        (
            json!({ "rebalance": true, "clusters": { "a": { "weight": 0 } } }),
            nowhere,
        ),
        (
            json!({ "rebalance": true, "clusters": { "*": { "weight": 0 } } }),
            nowhere,
        ),
    ];
    for (placement, message) in cases {
        place(env, &placement).await;
        tokio::time::sleep(SEVERAL_CHECKS).await;
        assert_eq!(env.sorted_layout("web").await, [4, 4, 4], "{placement}");
        assert_eq!(
            placed(env).await,
            ["False", "NoMatchingCluster", message],
            "{placement}"
        );
        dips.assert_never_below(12);
    }
    // An empty map is the default: an even spread.
    place(env, &json!({ "rebalance": true, "clusters": {} })).await;
    env.wait_until("the set is placed", 30, async |env| {
        env.condition("web", "Placed").await.as_deref() == Some("True")
    })
    .await;
    tokio::time::sleep(SEVERAL_CHECKS).await;
    assert_eq!(env.sorted_layout("web").await, [4, 4, 4]);
    dips.assert_never_below(12);
    assert_eq!(dips.highest(), 12, "nothing moved");
}

pub(crate) async fn f20_a_repaired_name_moves_replicas_without_a_dip(env: &mut TestEnvironment) {
    env.run(&frs("web", 12, &even(true))).await;
    let dips = env.watch("web").await;
    place(env, &json!({ "clusters": { "bb": { "weight": 1 } } })).await;
    assert_eq!(placed(env).await[0], "False");
    place(env, &json!({ "clusters": { "b": { "weight": 1 } } })).await;
    env.wait_until("all replicas run in b", 90, async |env| {
        let layout = env.layout("web").await;
        layout["b"] == 12 && layout["a"] + layout["c"] == 0 && env.available("web").await == 12
    })
    .await;
    env.wait_until("the status reports it", 30, async |env| {
        env.is_settled("web").await
            && env.condition("web", "Ready").await.as_deref() == Some("True")
    })
    .await;
    assert_eq!(placed(env).await[0], "True");
    dips.assert_never_below(12);
}

/// A maximum that the user wrote binds, but it removes replicas of no other cluster.
pub(crate) async fn f3_an_explicit_maximum_removes_replicas_there_alone(env: &mut TestEnvironment) {
    env.run(&frs("web", 12, &even(true))).await;
    let dips = env.watch("web").await;
    place(env, &json!({ "clusters": { "b": { "maxReplicas": 0 } } })).await;
    env.wait_until("b has no replicas", 60, async |env| {
        env.layout("web").await["b"] == 0 && env.available("web").await == 8
    })
    .await;
    tokio::time::sleep(SEVERAL_CHECKS).await;
    let layout = env.layout("web").await;
    assert_eq!([layout["a"], layout["b"], layout["c"]], [4, 0, 4]);
    assert_eq!(placed(env).await[0], "False");
    dips.assert_never_below(8);
}
