//! The owner of a local ReplicaSet at each write: another controller may adopt it while the view of fedrs is old.

#![expect(clippy::unwrap_used, reason = "a test that can't go on ends")]

use std::time::Duration;

use fedrs_tests::{SimFederation, SimFederationSpec, even, frs};
use serde_json::{Value, json};

const WEB: &str = "/apis/apps/v1/namespaces/default/replicasets/web";

/// A Deployment of the member a takes over the local ReplicaSet there, as it is. It is paused, so that it creates none.
async fn take_over(federation: &SimFederation) {
    let set = federation.local_set("a", "web").unwrap();
    let deployment = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": "web", "namespace": "default" },
        "spec": {
            "paused": true,
            "replicas": 3,
            "selector": set["spec"]["selector"],
            "template": set["spec"]["template"],
        },
    });
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    let deployment = federation.on_member("a", "POST", deployments, &deployment);
    let owner = json!([{
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "name": "web",
        "uid": deployment.await.unwrap()["metadata"]["uid"],
        "controller": true,
    }]);
    // A Deployment releases ReplicaSets that its selector does not match.
    let labels = &set["spec"]["selector"]["matchLabels"];
    let patch = json!({ "metadata": { "labels": labels, "ownerReferences": owner } });
    federation
        .on_member("a", "PATCH", WEB, &patch)
        .await
        .unwrap();
}

/// The number of replicas of the local ReplicaSet in a, if it is there and not being deleted.
fn replicas_in_a(federation: &SimFederation) -> Option<Value> {
    let set = federation.local_set("a", "web")?;
    let is_deleted = set["metadata"].get("deletionTimestamp").is_some();
    (!is_deleted).then(|| set["spec"]["replicas"].clone())
}

#[tokio::test(start_paused = true)]
async fn f29_a_local_set_that_a_controller_takes_over_is_not_scaled_on_an_old_view() {
    let federation = SimFederation::running(9).await;
    federation.member("a").faults().set_watches_stalled(true);
    take_over(&federation).await;
    let before = federation.conflicts();
    federation
        .patch("web", &json!({ "spec": { "replicas": 15 } }))
        .await;
    federation
        .wait_until("a write is rejected", 30, async |federation| {
            federation.conflicts() > before
        })
        .await;
    assert_eq!(replicas_in_a(&federation), Some(json!(3)));
    federation.member("a").faults().set_watches_stalled(false);
    federation
        .wait_until("the others run all replicas", 180, async |federation| {
            let layout = federation.layout("web");
            layout["b"] + layout["c"] == 15
        })
        .await;
    assert_eq!(replicas_in_a(&federation), Some(json!(3)));
}

#[tokio::test(start_paused = true)]
async fn f5_a_local_set_that_a_controller_took_over_survives_the_deletion() {
    for (policy, view_is_old) in [("Delete", false), ("Delete", true), ("Orphan", true)] {
        let federation = SimFederation::running(9).await;
        federation
            .patch("web", &json!({ "spec": { "deletionPolicy": policy } }))
            .await;
        tokio::time::sleep(Duration::from_secs(5)).await;
        federation
            .member("a")
            .faults()
            .set_watches_stalled(view_is_old);
        take_over(&federation).await;
        let before = federation.local_set("a", "web").unwrap();
        federation.delete("web").await;
        federation
            .wait_until("the set is deleted", 60, async |federation| {
                let path = "/apis/fedrs.dev/v1alpha1/namespaces/default/federatedreplicasets/web";
                federation.on_host("GET", path, &Value::Null).await.is_err()
            })
            .await;
        tokio::time::sleep(Duration::from_secs(5)).await;
        let after = federation.local_set("a", "web").unwrap_or_default();
        for field in ["/metadata/labels", "/metadata/generation", "/spec"] {
            assert_eq!(
                after.pointer(field),
                before.pointer(field),
                "{policy}, {field}"
            );
        }
        assert_eq!(replicas_in_a(&federation), Some(json!(3)), "{policy}");
    }
}

#[tokio::test(start_paused = true)]
async fn f29_a_selector_with_empty_lists_does_not_replace_the_local_set() {
    let federation = SimFederation::start(SimFederationSpec::default()).await;
    let mut set = frs("web", 9, &even(true));
    set["spec"]["selector"]["matchExpressions"] = json!([]);
    federation.create(&set).await;
    federation
        .wait_until("all replicas run", 60, async |federation| {
            federation.available("web") == 9
        })
        .await;
    let uid = |federation: &SimFederation| {
        federation.local_set("a", "web").unwrap()["metadata"]["uid"].clone()
    };
    let before = uid(&federation);
    let image = "registry.example/main:2";
    let containers = json!([{ "name": "main", "image": image }]);
    let template = json!({ "spec": { "template": { "spec": { "containers": containers } } } });
    federation.patch("web", &template).await;
    federation
        .wait_until("the template is written", 30, async |federation| {
            let set = federation.local_set("a", "web").unwrap_or_default();
            set["spec"]["template"]["spec"]["containers"][0]["image"] == image
        })
        .await;
    assert_eq!(uid(&federation), before);
}
