//! Objects of another version: the controller leaves what it cannot read as it is, and the status of the object says so.

#![expect(clippy::unwrap_used, reason = "a test that can't go on ends")]

use std::time::Duration;

use fedrs_tests::{ReadyWatcher, SimFederation};
use serde_json::{Value, json};

const CRD: &str =
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/federatedreplicasets.fedrs.dev";
const POLICIES: &str =
    "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/deletionPolicy/enum/-";

/// The API server accepts a value that a later version of fedrs may know.
async fn install_a_later_crd(federation: &SimFederation) {
    let mut crd = federation.on_host("GET", CRD, &Value::Null).await.unwrap();
    let policies = POLICIES.trim_end_matches("/-");
    let policies = crd.pointer_mut(policies).and_then(Value::as_array_mut);
    policies.unwrap().push(json!("Archive"));
    federation.on_host("PUT", CRD, &crd).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn f4_a_set_that_cannot_be_read_stays_as_it_is_and_says_so() {
    let mut federation = SimFederation::running(9).await;
    let watcher = ReadyWatcher::start(&federation, "web");
    install_a_later_crd(&federation).await;
    let later = json!({ "spec": { "deletionPolicy": "Archive", "replicas": 3 } });
    federation.patch("web", &later).await;
    federation
        .wait_until("it is rejected", 10, async |federation| {
            federation.condition("web", "Accepted").await.as_deref() == Some("False")
        })
        .await;
    let message = federation
        .condition_message("web", "Stalled")
        .await
        .unwrap();
    assert!(message.contains("unknown variant `Archive`"), "{message}");
    // A new controller lists it, and must not take it for deleted.
    federation.stop_controller().await;
    federation.start_controller().await;
    federation.delete("web").await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(federation.available("web"), 9);
    assert!(
        federation.condition("web", "Stalled").await.is_some(),
        "it waits for a controller that can read it"
    );
    federation
        .patch("web", &json!({ "spec": { "deletionPolicy": "Orphan" } }))
        .await;
    federation
        .wait_until("it is released", 30, async |federation| {
            let path = "/apis/fedrs.dev/v1alpha1/namespaces/default/federatedreplicasets/web";
            federation.on_host("GET", path, &Value::Null).await.is_err()
        })
        .await;
    assert_eq!(watcher.lowest(), 9);
}
