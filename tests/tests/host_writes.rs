//! The controller's writes on the host for one FederatedReplicaSet. They must be few: thousands of sets may change at once,
//! and the API server has other users.

#![expect(clippy::unwrap_used, reason = "a test that can't go on ends")]

use std::time::Duration;

use fedrs_tests::{SimFederation, SimFederationSpec, even, frs};
use serde_json::{Value, json};
use sim_cluster::{ChangeEvent, Changes};

async fn seconds(count: u64) {
    tokio::time::sleep(Duration::from_secs(count)).await;
}

/// The writes about the set `web` since the last call, in order: the field, or the reason of an event.
fn writes(changes: &mut Changes) -> Vec<String> {
    let mut writes = Vec::new();
    while let Some(event) = changes.try_next() {
        let ChangeEvent::Change(change) = event else {
            panic!("the log is too short");
        };
        let object = change.new.as_deref().unwrap_or(&Value::Null);
        let old = change.old.as_deref().unwrap_or(&Value::Null);
        match object["kind"].as_str() {
            Some("FederatedReplicaSet" | "FederatedDeployment")
                if object["status"] != old["status"] && !old.is_null() =>
            {
                let ready = &object["status"]["readyReplicas"];
                writes.push(format!("status with {ready} ready"));
            }
            Some("FederatedReplicaSet" | "FederatedDeployment")
                if object["metadata"]["finalizers"] != old["metadata"]["finalizers"] =>
            {
                writes.push("finalizer".to_owned());
            }
            Some("Event") if object["involvedObject"]["name"] == "web" => {
                let reason = object["reason"].as_str().unwrap();
                writes.push(format!("event {reason}"));
            }
            Some("ControllerRevision") => writes.push("revision".to_owned()),
            // The user's, and those about members.
            _ => {}
        }
    }
    writes
}

async fn is_ready(federation: &SimFederation) -> bool {
    let frs = federation.frs("web").await;
    let is_observed = frs["status"]["observedGeneration"] == frs["metadata"]["generation"];
    is_observed && federation.condition("web", "Ready").await.as_deref() == Some("True")
}

#[tokio::test(start_paused = true)]
async fn f38_a_set_costs_few_writes_on_the_host() {
    let federation = SimFederation::start(SimFederationSpec::default()).await;
    seconds(30).await;
    let mut changes = federation.host().api().changes();

    federation.create(&frs("web", 9, &even(true))).await;
    federation.wait_until("ready", 10, is_ready).await;
    seconds(120).await;
    let created = writes(&mut changes);
    assert!(created.len() <= 5, "{created:?}");
    assert_eq!(created[0], "finalizer", "before anything else");
    let events = federation.event_messages("web", "Created").await;
    assert_eq!(events.len(), 1, "{events:?}");
    for member in ["a", "b", "c"] {
        assert!(
            events[0].contains(&format!("{member}: created with 3")),
            "{events:?}"
        );
    }

    federation
        .patch("web", &json!({ "spec": { "replicas": 30 } }))
        .await;
    federation.wait_until("scaled", 10, is_ready).await;
    seconds(120).await;
    let scaled = writes(&mut changes);
    assert!(scaled.len() <= 4, "{scaled:?}");

    federation
        .patch("web", &json!({ "spec": { "replicas": 6 } }))
        .await;
    federation.wait_until("scaled down", 10, is_ready).await;
    seconds(120).await;
    let scaled = writes(&mut changes);
    assert!(scaled.len() <= 4, "{scaled:?}");
}

#[tokio::test(start_paused = true)]
async fn l14_a_rollout_costs_few_writes_on_the_host() {
    let mut federation = SimFederation::start(SimFederationSpec::default()).await;
    federation.deploys("web");
    federation.create(&frs("web", 9, &even(true))).await;
    federation.wait_until("ready", 10, is_ready).await;
    seconds(120).await;
    let mut changes = federation.host().api().changes();
    let image = json!([{ "name": "main", "image": "registry.example/main:2" }]);
    let template = json!({ "spec": { "template": { "spec": { "containers": image } } } });
    federation.patch("web", &template).await;
    seconds(120).await;
    assert!(is_ready(&federation).await);
    let written = writes(&mut changes);
    assert!(written.len() <= 8, "{written:?}");
}

#[tokio::test(start_paused = true)]
async fn f38_a_full_cluster_costs_few_writes_on_the_host() {
    let mut spec = SimFederationSpec::default();
    (spec.members[2].nodes, spec.members[2].pods_per_node) = (1, 6);
    let federation = SimFederation::start(spec).await;
    seconds(30).await;
    let mut changes = federation.host().api().changes();
    federation.create(&frs("web", 48, &even(true))).await;
    federation.wait_until("moved", 120, is_ready).await;
    seconds(30).await;
    let written = writes(&mut changes);
    assert!(written.len() <= 10, "{written:?}");
}

#[tokio::test(start_paused = true)]
async fn f22_what_somebody_has_to_act_on_is_in_the_status_at_once() {
    let federation = SimFederation::running(9).await;
    let millis = |count| tokio::time::sleep(Duration::from_millis(count));
    seconds(10).await;
    let annotation = "federation.kubernetes.io/replica-set-preferences";
    let preferences = |text: Value| json!({ "metadata": { "annotations": { annotation: text } } });
    federation.patch("web", &preferences("{".into())).await;
    millis(100).await;
    let accepted = federation.condition("web", "Accepted").await;
    assert_eq!(accepted.as_deref(), Some("False"));

    federation.patch("web", &preferences(Value::Null)).await;
    let patch = json!({ "spec": { "replicas": 12, "paused": true } });
    federation.patch("web", &patch).await;
    millis(100).await;
    let paused = federation.condition("web", "Paused").await;
    assert_eq!(paused.as_deref(), Some("True"));

    // Replicas on their way are in the status within about a second.
    let patch = json!({ "spec": { "paused": false } });
    federation.patch("web", &patch).await;
    millis(1200).await;
    let frs = federation.frs("web").await;
    assert_eq!(
        frs["status"]["observedGeneration"],
        frs["metadata"]["generation"]
    );
}
