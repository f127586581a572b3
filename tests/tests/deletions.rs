//! Deletions of FederatedReplicaSets delay nothing else.

use std::time::Duration;

use fedrs_tests::{
    SimFederation, SimFederationSpec, even, frs,
    hostile::{Attack, Switch},
};
use serde_json::{Value, json};
use sim_cluster::{RequestMatcher, Status, Verb};

const WEB: &str = "/apis/apps/v1/namespaces/default/replicasets/web";

/// More than the controller has workers.
const DELETED: u32 = 40;

#[tokio::test(start_paused = true)]
async fn f5_deletions_in_a_slow_member_delay_no_repair() {
    let federation = SimFederation::running(9).await;
    for name in 0..DELETED {
        let mut set = frs(&format!("old-{name}"), 3, &even(true));
        set["spec"]["deletionPolicy"] = "Delete".into();
        federation.create(&set).await;
    }
    federation
        .wait_until("all run", 120, async |federation| {
            (0..DELETED).all(|name| federation.available(&format!("old-{name}")) == 3)
        })
        .await;
    // As with a slow webhook; liveness probes still succeed.
    federation
        .member("a")
        .faults()
        .set_latency(Duration::from_secs(4));
    for name in 0..DELETED {
        federation.delete(&format!("old-{name}")).await;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    federation
        .on_member("b", "DELETE", WEB, &Value::Null)
        .await
        .unwrap();
    federation
        .wait_until("the repair", 2, async |federation| {
            federation
                .local_set("b", "web")
                .is_some_and(|set| set["metadata"].get("deletionTimestamp").is_none())
        })
        .await;
    federation.member("a").faults().set_latency(Duration::ZERO);
    federation
        .wait_until("all are deleted", 120, async |federation| {
            (0..DELETED).all(|name| federation.local_set("a", &format!("old-{name}")).is_none())
        })
        .await;
}

/// A federation whose member `a` can be switched to an attack.
async fn with_switch(spec: SimFederationSpec) -> (SimFederation, Switch) {
    let mut federation = SimFederation::start_clusters(spec).await;
    let switch = Switch::default();
    let of_a = switch.clone();
    federation.intercept("a", move |honest| of_a.client(honest));
    federation.start_controller().await;
    (federation, switch)
}

#[tokio::test(start_paused = true)]
async fn f5_deletions_that_hang_leave_the_member_to_other_writes() {
    let (federation, switch) = with_switch(SimFederationSpec::default()).await;
    federation.run(9).await;
    let names = || (0..100).map(|name| format!("old-{name}"));
    for name in names() {
        let mut set = frs(&name, 1, &json!({ "clusters": { "a": { "weight": 1 } } }));
        set["spec"]["deletionPolicy"] = "Delete".into();
        federation.create(&set).await;
    }
    federation
        .wait_until("all run", 120, async |federation| {
            names().all(|name| federation.available(&name) == 1)
        })
        .await;
    switch.set_attack(Some(Attack::SlowDeletions));
    for name in names() {
        federation.delete(&name).await;
    }
    tokio::time::sleep(Duration::from_secs(15)).await;
    let patch = json!({ "spec": { "replicas": 12 } });
    federation.patch("web", &patch).await;
    federation
        .wait_until("a scales", 2, async |federation| {
            federation
                .local_set("a", "web")
                .is_some_and(|set| set["spec"]["replicas"] == 4)
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn f5_a_release_that_a_member_rejects_is_not_repeated_with_each_change() {
    let federation = SimFederation::running(9).await;
    let releases = RequestMatcher::all()
        .verb(Verb::Patch)
        .resource("replicasets");
    let refusal = Status::new(422, "Invalid", "a webhook says no");
    federation
        .member("c")
        .faults()
        .refuse(releases, 1000, refusal);
    federation.delete("web").await;
    for second in 0..30 {
        let annotations =
            json!({ "metadata": { "annotations": { "second": second.to_string() } } });
        federation.patch("web", &annotations).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let refused = federation.member("c").faults().counts().refused;
    assert!((5..=8).contains(&refused), "{refused} attempts within 30 s");
    federation.member("c").faults().heal();
    federation
        .wait_until("the set is gone", 20, async |federation| {
            federation.frs("web").await.is_null()
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn f5_a_member_whose_responses_are_slow_does_not_hold_a_deletion_up() {
    let mut spec = SimFederationSpec::default();
    spec.config.deletion_deadline = Duration::from_secs(60);
    let (federation, switch) = with_switch(spec).await;
    let of_a = json!({ "clusters": { "a": { "weight": 1 } } });
    federation.create(&frs("web", 200, &of_a)).await;
    federation
        .wait_until("all run", 120, async |federation| {
            federation.available("web") == 200
        })
        .await;
    switch.set_attack(Some(Attack::SlowPods));
    federation.delete("web").await;
    federation
        .wait_until("the set is gone", 100, async |federation| {
            federation.frs("web").await.is_null()
        })
        .await;
    assert_eq!(federation.available("web"), 200, "they keep running");
    let reasons = federation.event_reasons("web").await;
    assert!(reasons.contains(&"LeftBehind".to_owned()), "{reasons:?}");
}
