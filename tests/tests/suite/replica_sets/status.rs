//! The status (C1), `minReadySeconds`, and specs that are rejected (C2, C5).

use fedrs_tests::{scenario, scenario::Scenario, test_environment::TestEnvironment};
use serde_json::{Value, json};

use super::{Difference, compare};
use crate::member_set::MemberSet;

pub(super) fn scenarios() -> Vec<Scenario> {
    use super::status;
    vec![
        scenario!(status::c1_the_status_counts_pods, LocalReplicaSets),
        scenario!(
            status::c1_a_pod_is_available_after_it_was_ready_for_a_time,
            LocalReplicaSets
        ),
        scenario!(status::c2_c5_invalid_specs_are_rejected, LocalReplicaSets),
    ]
}

async fn c1_the_status_counts_pods(env: &mut TestEnvironment) {
    let expected = [
        "observedGeneration: 1",
        "replicas: 3",
        "readyReplicas: 2",
        "availableReplicas: 2",
        "fullyLabeledReplicas: 3",
        "observedGeneration: 2",
        "replicas: 0",
        "readyReplicas: 0",
        "availableReplicas: 0",
        "fullyLabeledReplicas: 0",
    ];
    let differences = [Difference {
        native: "fullyLabeledReplicas: 3",
        local: "fullyLabeledReplicas: 0",
        why: "there is no such field: labels are part of the template, which pods are brought to, and updatedReplicas counts those that have it",
    }];
    compare(env, &expected, &differences, async |set: &MemberSet<'_>| {
        let never = json!([{ "conditionType": "example.com/never" }]);
        set.create_pod("never", json!({ "spec": { "readinessGates": never } }))
            .await;
        set.create(3, json!({})).await;
        let mut seen = Vec::new();
        for (generation, replicas, ready) in [(1, 3, 2), (2, 0, 0)] {
            set.until("the status follows", async || {
                set.count("observedGeneration").await == generation
                    && set.count("replicas").await == replicas
                    && set.count("availableReplicas").await == ready
            })
            .await;
            for field in [
                "observedGeneration",
                "replicas",
                "readyReplicas",
                "availableReplicas",
                "fullyLabeledReplicas",
            ] {
                seen.push(format!("{field}: {}", set.count(field).await));
            }
            set.scale(0).await;
        }
        seen
    })
    .await;
}

async fn c1_a_pod_is_available_after_it_was_ready_for_a_time(env: &mut TestEnvironment) {
    let expected = ["2 ready, 0 available", "2 ready, 2 available"];
    compare(env, &expected, &[], async |set: &MemberSet<'_>| {
        set.create(2, json!({ "minReadySeconds": 10 })).await;
        let mut seen = Vec::new();
        for count in ["readyReplicas", "availableReplicas"] {
            set.until("the pods count", async || set.count(count).await == 2)
                .await;
            let set = set.get().await;
            let counts = ["readyReplicas", "availableReplicas"]
                .map(|field| set["status"][field].as_u64().unwrap_or(0));
            seen.push(format!("{} ready, {} available", counts[0], counts[1]));
        }
        seen
    })
    .await;
}

async fn c2_c5_invalid_specs_are_rejected(env: &mut TestEnvironment) {
    let expected = [
        "restartPolicy Never: rejected",
        "restartPolicy OnFailure: rejected",
        "labels that do not match: rejected",
        "no selector: rejected",
        "negative replicas: rejected",
        "a change of the selector: rejected",
    ];
    let differences = [Difference {
        native: "labels that do not match: rejected",
        local: "labels that do not match: Accepted False InvalidSpec, 0 pods",
        why: "the schema of a CRD can't compare a selector with labels: the controller does, and runs no pod",
    }];
    compare(env, &expected, &differences, async |set: &MemberSet<'_>| {
        let policy = |policy| json!({ "template": { "spec": { "restartPolicy": policy } } });
        let labels = json!({ "metadata": { "labels": { "app": "other" } } });
        let mut seen = Vec::new();
        for (what, fields) in [
            ("restartPolicy Never", policy("Never")),
            ("restartPolicy OnFailure", policy("OnFailure")),
            ("labels that do not match", json!({ "template": labels })),
            ("no selector", json!({ "selector": null })),
            ("negative replicas", json!({ "replicas": -1 })),
        ] {
            let answer = set.try_create(1, fields).await;
            let is_stored = answer.is_ok();
            seen.push(format!("{what}: {}", verdict(set, answer).await));
            if is_stored {
                set.delete("Background").await;
            }
        }
        set.create(0, json!({})).await;
        let selector = json!({ "matchLabels": { "tier": "front" } });
        let changed = set
            .try_patch(&json!({ "spec": { "selector": selector } }))
            .await;
        seen.push(format!(
            "a change of the selector: {}",
            verdict(set, changed).await
        ));
        seen
    })
    .await;
}

async fn verdict(set: &MemberSet<'_>, answer: kube::Result<Value>) -> String {
    match answer {
        Err(kube::Error::Api(status)) if status.code == 422 => return "rejected".to_owned(),
        answer => _ = answer.expect("it is stored, or invalid"),
    }
    set.until("the controller has looked at it", async || {
        set.condition("Accepted").await != "none"
    })
    .await;
    let condition = set.condition("Accepted").await;
    format!("Accepted {condition}, {} pods", set.owned().await.len())
}
