//! Restarts of the controller.

use std::time::Duration;

use fedrs_tests::{
    even, frs,
    test_environment::{TestEnvironment, short_waits},
};
use serde_json::{Value, json};
use tokio::time::Instant;

pub(crate) async fn f20_a_controller_killed_during_a_move_continues(env: &mut TestEnvironment) {
    env.run(&frs("web", 60, &even(true))).await;
    let dips = env.watch("web").await;
    for (favoured, pause) in [("a", 300), ("b", 700), ("c", 1100)] {
        let weight = |name: &str| json!({ "weight": if name == favoured { 8 } else { 1 } });
        let clusters = json!({ "a": weight("a"), "b": weight("b"), "c": weight("c") });
        env.patch(
            "web",
            &json!({ "spec": { "placement": { "clusters": clusters } } }),
        )
        .await;
        tokio::time::sleep(Duration::from_millis(pause)).await;
        env.kill_controller().await;
        env.start_controller().await;
        env.wait_until("moved", 90, async |env| {
            env.layout("web").await[favoured] == 48 && env.available("web").await == 60
        })
        .await;
    }
    dips.assert_never_below(60);
}

pub(crate) async fn a_killed_controller_does_not_wait_for_its_own_lease(env: &mut TestEnvironment) {
    env.run(&frs("web", 12, &even(true))).await;
    env.kill_controller().await;
    env.create(&frs("api", 6, &even(true))).await;
    let started = Instant::now();
    env.start_controller().await;
    env.wait_until("the new set lands", 30, async |env| {
        env.layout("api").await.values().sum::<u64>() == 6
    })
    .await;
    let took = started.elapsed();
    eprintln!("landed {took:.2?} after the start of the killed controller");
    // Another one waits for leaseDuration, 4 s here, before it reads anything else.
    assert!(
        took < short_waits().leader_election.lease_duration,
        "{took:?}"
    );
}

pub(crate) async fn a_restart_writes_nothing(env: &mut TestEnvironment) {
    env.run(&frs("web", 12, &even(true))).await;
    env.wait_until("settled", 30, async |env| env.is_settled("web").await)
        .await;
    tokio::time::sleep(Duration::from_secs(6)).await;
    env.kill_controller().await;
    let before = versions(env).await;
    env.start_controller().await;
    tokio::time::sleep(Duration::from_secs(12)).await;
    assert_eq!(versions(env).await, before);
}

/// The resource versions of everything that the controller writes.
async fn versions(env: &TestEnvironment) -> Vec<(String, Value)> {
    let mut versions = Vec::new();
    for member in env.member_names() {
        let set = env.local_set(&member, "web").await;
        versions.push((member, set["metadata"]["resourceVersion"].clone()));
    }
    let frs = env.frs("web").await;
    versions.push((
        "host".to_owned(),
        frs["metadata"]["resourceVersion"].clone(),
    ));
    let path = "/apis/fedrs.dev/v1alpha1/memberclusters";
    let members = env.on_host("GET", path, &Value::Null).await.unwrap();
    for member in members["items"].as_array().into_iter().flatten() {
        let version = member["metadata"]["resourceVersion"].clone();
        versions.push((member["metadata"]["name"].to_string(), version));
    }
    versions
}
