use serde_json::{Value, json};

use super::super::federated::ClusterProgress;
use super::*;
use fedrs_api::FederatedDeployment;

fn condition(type_: &str, status: &str, reason: &str) -> Value {
    json!({
        "type": type_, "status": status, "reason": reason, "message": format!("why {reason}"),
        "lastTransitionTime": "2026-11-01T00:00:00Z",
    })
}

/// The set with 10 replicas at generation 4, and this status over that of a complete rollout.
fn deployment(status: &Value) -> FederatedDeployment {
    let mut whole = json!({
        "observedGeneration": 4, "currentRevision": "web-2", "updateRevision": "web-2",
        "replicas": 10, "updatedReplicas": 10, "availableReplicas": 10,
        "conditions": [condition("Ready", "True", "AllReplicasAvailable")],
    });
    for (field, value) in status.as_object().unwrap() {
        whole[field] = value.clone();
    }
    serde_json::from_value(json!({
        "apiVersion": "fedrs.dev/v1alpha1", "kind": "FederatedDeployment",
        "metadata": { "name": "web", "namespace": "shop", "generation": 4 },
        "spec": { "replicas": 10, "selector": {}, "template": { "spec": {} } },
        "status": whole,
    }))
    .unwrap()
}

#[test]
fn the_state_is_told_in_the_words_of_kubectl() {
    let ready = |reason| json!([condition("Ready", "False", reason)]);
    let progressing = |status, reason| json!([condition("Progressing", status, reason)]);
    let waiting = "Waiting for rollout to finish:";
    for (status, expected) in [
        (json!({}), "successfully rolled out".to_owned()),
        (
            json!({ "observedGeneration": 3 }),
            "Waiting for federateddeployment spec update to be observed...".to_owned(),
        ),
        (
            json!({ "updateRevision": null }),
            "Waiting for federateddeployment spec update to be observed...".to_owned(),
        ),
        // The first spec is rejected: it has no revision.
        (
            json!({ "updateRevision": null, "conditions": [condition("Stalled", "True", "InvalidSpec")] }),
            "why InvalidSpec".to_owned(),
        ),
        (
            json!({ "updatedReplicas": 3, "conditions": progressing("True", "RollingOut") }),
            format!("{waiting} 3 out of 10 new replicas have been updated..."),
        ),
        (
            json!({ "replicas": 12, "conditions": [] }),
            format!("{waiting} 2 old replicas are pending termination..."),
        ),
        (
            json!({ "availableReplicas": 9, "conditions": [] }),
            format!("{waiting} 9 of 10 updated replicas are available..."),
        ),
        (
            json!({ "conditions": ready("InsufficientCapacity") }),
            format!("{waiting} why InsufficientCapacity"),
        ),
        // Each has the replicas that it needs, but the controller has not decided so yet.
        (
            json!({ "currentRevision": "web-1" }),
            format!("{waiting} why AllReplicasAvailable"),
        ),
        // The first spec is rejected: it has no revision.
        (
            json!({ "updateRevision": null, "conditions": [condition("Stalled", "True", "InvalidSpec")] }),
            "why InvalidSpec".to_owned(),
        ),
        (
            json!({ "updatedReplicas": 3, "conditions": progressing("Unknown", "RolloutPaused") }),
            format!("{waiting} why RolloutPaused"),
        ),
        // The first spec is rejected: it has no revision.
        (
            json!({ "updateRevision": null, "conditions": [condition("Stalled", "True", "InvalidSpec")] }),
            "why InvalidSpec".to_owned(),
        ),
        (
            json!({ "updatedReplicas": 3, "conditions": progressing("True", "Soaking") }),
            format!("{waiting} why Soaking"),
        ),
        // The first spec is rejected: it has no revision.
        (
            json!({ "updateRevision": null, "conditions": [condition("Stalled", "True", "InvalidSpec")] }),
            "why InvalidSpec".to_owned(),
        ),
        (
            json!({ "updatedReplicas": 3, "rollout": { "step": "all" }, "conditions": progressing("True", "WaitingForApproval") }),
            format!("{waiting} step all needs an approval..."),
        ),
        // The first spec is rejected: it has no revision.
        (
            json!({ "updateRevision": null, "conditions": [condition("Stalled", "True", "InvalidSpec")] }),
            "why InvalidSpec".to_owned(),
        ),
        (
            json!({ "updatedReplicas": 3, "conditions": [condition("Paused", "True", "Paused")] }),
            format!("{waiting} why Paused"),
        ),
        (
            json!({ "conditions": progressing("False", "ProgressDeadlineExceeded") }),
            "why ProgressDeadlineExceeded".to_owned(),
        ),
        (
            json!({ "conditions": [condition("Ready", "True", "AllReplicasAvailable"), condition("Progressing", "False", "RolledBack")] }),
            "why RolledBack".to_owned(),
        ),
        (
            json!({ "conditions": [condition("Stalled", "True", "TemplateRejected")] }),
            "why TemplateRejected".to_owned(),
        ),
    ] {
        let progress = RolloutProgress::of(&deployment(&status));
        assert_eq!(progress.state.to_string(), expected, "{status}");
        assert_eq!(
            progress.has_ended(),
            !expected.starts_with("Waiting"),
            "{status}"
        );
    }
}

#[test]
fn a_set_without_status_or_that_is_deleted_is_not_complete() {
    let mut set = deployment(&json!({}));
    set.metadata.deletion_timestamp =
        serde_json::from_value(json!("2026-11-01T00:00:00Z")).unwrap();
    let failed = RolloutState::Failed("it is being deleted".to_owned());
    assert_eq!(RolloutProgress::of(&set).state, failed);
    let mut set = deployment(&json!({}));
    set.status = None;
    let progress = RolloutProgress::of(&set);
    assert_eq!(
        progress.state,
        RolloutState::Unobserved {
            kind: "federateddeployment".to_owned()
        }
    );
    assert_eq!((progress.revision, progress.parts), (None, Vec::new()));
}

#[test]
fn each_cluster_says_what_it_waits_for() {
    let wait = |reason, message| json!({ "reason": reason, "message": message });
    let clusters = json!([
        {
            "name": "asia", "desiredReplicas": 4, "replicas": 4, "updatedReplicas": 1, "availableReplicas": 3, "revision": "web-2",
            "waits": [wait("Availability", "1 pod"), wait("Rollout", "updated pods: 1 of 4 are available")],
        },
        {
            "name": "eu", "desiredReplicas": 4, "replicas": 4, "updatedReplicas": 4, "availableReplicas": 4, "revision": "web-2",
            "message": "4 of 10 by weight",
        },
        {
            "name": "full", "desiredReplicas": 2, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 1, "revision": "web-2",
            "message": "cluster full",
        },
        { "name": "idle", "message": "no share" },
    ]);
    let progress = RolloutProgress::of(&deployment(&json!({ "clusters": clusters })));
    let shown: Vec<_> = progress
        .parts
        .iter()
        .map(|cluster| {
            let ClusterProgress {
                name,
                updated,
                desired,
                available,
                waiting,
            } = cluster;
            format!("{name} {updated}/{desired} {available} {waiting}")
        })
        .collect();
    let expected = [
        "asia 1/4 3 for updated pods: 1 of 4 are available",
        "eu 4/4 4 ",
        "full 2/2 1 cluster full",
    ];
    assert_eq!(shown, expected);
}
