//! The controller itself ends and starts.

use std::time::Duration;

use fedrs_tests::{even, frs, stage::Stage};
use serde_json::{Value, json};

pub(crate) async fn killed_in_the_middle_of_moves_it_goes_on(stage: &mut Stage) {
    stage.run(&frs("web", 60, &even(true))).await;
    let dips = stage.watch("web").await;
    for (favoured, pause) in [("a", 300), ("b", 700), ("c", 1100)] {
        let weight = |name: &str| json!({ "weight": if name == favoured { 8 } else { 1 } });
        let clusters = json!({ "a": weight("a"), "b": weight("b"), "c": weight("c") });
        stage
            .patch(
                "web",
                &json!({ "spec": { "placement": { "clusters": clusters } } }),
            )
            .await;
        tokio::time::sleep(Duration::from_millis(pause)).await;
        stage.kill_controller().await;
        stage.start_controller().await;
        stage
            .wait_until("moved", 90, async |it| {
                it.layout("web").await[favoured] == 48 && it.available("web").await == 60
            })
            .await;
    }
    dips.assert_never_below(60);
}

pub(crate) async fn a_restart_writes_nothing(stage: &mut Stage) {
    stage.run(&frs("web", 12, &even(true))).await;
    stage
        .wait_until("settled", 30, async |it| it.is_settled("web").await)
        .await;
    tokio::time::sleep(Duration::from_secs(6)).await;
    stage.kill_controller().await;
    let before = versions(stage).await;
    stage.start_controller().await;
    tokio::time::sleep(Duration::from_secs(12)).await;
    assert_eq!(versions(stage).await, before);
}

/// The resource versions of everything that the controller writes.
async fn versions(stage: &Stage) -> Vec<(String, Value)> {
    let mut versions = Vec::new();
    for member in stage.member_names() {
        let set = stage.local_set(&member, "web").await;
        versions.push((member, set["metadata"]["resourceVersion"].clone()));
    }
    let frs = stage.frs("web").await;
    versions.push((
        "host".to_owned(),
        frs["metadata"]["resourceVersion"].clone(),
    ));
    let path = "/apis/fedrs.dev/v1alpha1/memberclusters";
    let members = stage.on_host("GET", path, &Value::Null).await.unwrap();
    for member in members["items"].as_array().into_iter().flatten() {
        let version = member["metadata"]["resourceVersion"].clone();
        versions.push((member["metadata"]["name"].to_string(), version));
    }
    versions
}
