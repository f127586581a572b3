//! Draining moves all replicas of a member to others, and removes none without a replacement.

use fedrs_tests::{ReadyWatcher, frs, minutes};
use serde_json::json;

use super::{DAY, joined};

#[tokio::test(start_paused = true)]
async fn f20_draining_reschedules_all_replicas_without_a_dip_and_reports_progress() {
    let federation = joined(30, DAY).await;
    let low =
        json!({ "clusters": { "*": { "weight": 1 }, "b": { "minReplicas": 4, "weight": 1 } } });
    federation.create(&frs("api", 12, &low)).await;
    federation
        .wait_until("both run", 30, async |federation| {
            federation.available("api") == 12
        })
        .await;
    let watchers =
        [("web", 30), ("api", 12)].map(|(name, all)| (ReadyWatcher::start(&federation, name), all));
    assert_eq!(federation.member_condition("b", "Drained").await, "");
    federation
        .patch_member("b", &json!({ "spec": { "drain": true } }))
        .await;
    let mut conditions = Vec::new();
    federation
        .wait_until("drained", 180, async |federation| {
            let condition = federation.member_condition("b", "Drained").await;
            if conditions.last() != Some(&condition) {
                conditions.push(condition.clone());
            }
            condition.starts_with("True Drained: ")
        })
        .await;
    assert_eq!(
        (federation.layout("web")["b"], federation.layout("api")["b"]),
        (0, 0)
    );
    let draining = "False Draining: ";
    assert!(
        conditions
            .iter()
            .any(|message| message.starts_with(draining)
                && message.contains("default/api, default/web")),
        "{conditions:?}"
    );
    for (watcher, all) in &watchers {
        assert_eq!(watcher.lowest(), *all);
        assert!(watcher.highest() <= all + all / 4, "{}", watcher.highest());
    }
    let web = federation.frs("web").await;
    let reason = web["status"]["clusters"][1]["message"].as_str().unwrap();
    assert_eq!(reason, "draining: no replicas");

    federation
        .patch_member("b", &json!({ "spec": { "drain": null } }))
        .await;
    federation
        .wait_until("b has its share again", 60, async |federation| {
            federation.sorted_layout("web") == [10, 10, 10] && federation.available("web") == 30
        })
        .await;
    assert_eq!(federation.member_condition("b", "Drained").await, "");
    assert_eq!(watchers[0].0.lowest(), 30);
}

#[tokio::test(start_paused = true)]
async fn f20_a_drain_without_capacity_elsewhere_removes_nothing_and_reports_why() {
    let federation = joined(30, DAY).await;
    let bound = json!({ "weight": 1, "maxReplicas": 12 });
    let clusters = json!({ "a": bound, "b": { "weight": 1 }, "c": bound });
    federation
        .patch(
            "web",
            &json!({ "spec": { "placement": { "rebalance": true, "clusters": clusters } } }),
        )
        .await;
    let watcher = ReadyWatcher::start(&federation, "web");
    federation
        .patch_member("b", &json!({ "spec": { "drain": true } }))
        .await;
    federation
        .wait_until("the drain has moved what it can", 60, async |federation| {
            let layout = federation.layout("web");
            (layout["a"], layout["b"], layout["c"]) == (12, 6, 12)
        })
        .await;
    minutes(10).await;
    let web = federation.frs("web").await["status"].clone();
    let reason = web["clusters"][1]["message"].as_str().unwrap();
    assert!(
        reason.contains("6 replicas kept: no other cluster can take them"),
        "{reason}"
    );
    assert_eq!(web["unplacedReplicas"], 6);
    let condition = federation.member_condition("b", "Drained").await;
    let expected = "False Draining: 6 replicas of 1 set left: default/web";
    assert_eq!(condition, expected);
    assert_eq!(watcher.lowest(), 30);
}
