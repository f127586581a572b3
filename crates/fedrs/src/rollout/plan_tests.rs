use std::collections::BTreeMap;

use fedrs_api::{FederatedDeployment, ValidFederatedDeployment};
use serde_json::json;

use super::*;

/// A rollout with a canary, an approval and a speed.
fn plan() -> RolloutPlan {
    let object = json!({
        "apiVersion": "fedrs.dev/v1alpha1", "kind": "FederatedDeployment",
        "metadata": { "namespace": "shop", "name": "web" },
        "spec": {
            "replicas": 30, "minReadySeconds": 30, "selector": { "matchLabels": { "app": "web" } },
            "strategy": { "rollingUpdate": { "maxUnavailable": "10%", "maxSurge": "10%" } },
            "rollout": {
                "speed": { "updatePortion": 5, "minDelaySeconds": 60 },
                "steps": [
                    { "name": "canary", "clusters": ["asia"], "soakSeconds": 3600 },
                    { "name": "europe", "clusters": ["eu-north", "eu-west"], "approval": "Before", "maxConcurrentClusters": 1 },
                ],
            },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "main", "image": "main" }] },
            },
        },
    });
    let deployment: FederatedDeployment = serde_json::from_value(object).unwrap();
    let valid = ValidFederatedDeployment::check(&deployment).unwrap();
    let replicas = [
        ("asia", 2),
        ("eu-north", 8),
        ("eu-west", 10),
        ("idle", 0),
        ("us", 10),
    ];
    let replicas = replicas.map(|(name, count)| (name.to_owned(), count));
    let replicas = BTreeMap::from(replicas);
    let pod_start = Duration::from_secs(20);
    RolloutPlan::without_host(&valid.set, &valid.rollout, &replicas, pod_start)
}

#[test]
fn a_plan_shows_steps_parts_of_the_budget_and_times() {
    let mut plan = plan();
    plan.clusters[3].message = "cordoned: it is updated when it is uncordoned".to_owned();
    plan.warnings = vec!["spec.paused is true: the rollout begins when it is false".to_owned()];
    insta::assert_snapshot!(text(&plan));
}

#[test]
fn a_plan_is_printed_for_programs() {
    insta::assert_snapshot!(Format::Json.serialize(&plan()));
}

#[test]
fn a_rollout_without_a_known_end_says_so() {
    let mut plan = plan();
    plan.at_least_seconds = None;
    assert!(summary(&plan).ends_with("The end of the rollout is not known.\n"));
}

#[test]
fn a_length_has_hours_minutes_and_seconds() {
    for (seconds, expected) in [
        (0, "0s"),
        (59, "59s"),
        (690, "11m30s"),
        (3720, "1h2m"),
        (90_000, "25h"),
    ] {
        assert_eq!(length(seconds), expected);
    }
}
