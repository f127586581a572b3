//! Validation of the counts in the status of ReplicaSets and Deployments.

use serde_json::Value;

use crate::validation::Field;

const OF_REPLICA_SETS: &[&str] = &[
    "replicas",
    "fullyLabeledReplicas",
    "readyReplicas",
    "availableReplicas",
    "observedGeneration",
    "terminatingReplicas",
];
const OF_DEPLOYMENTS: &[&str] = &[
    "observedGeneration",
    "replicas",
    "updatedReplicas",
    "readyReplicas",
    "availableReplicas",
    "unavailableReplicas",
    "terminatingReplicas",
    "collisionCount",
];

/// Validates the counts of a ReplicaSet.
pub(super) fn validate_replica_set_counts(status: &Field<'_>) {
    validate_counts(status, OF_REPLICA_SETS, "fullyLabeledReplicas");
}

/// Validates the counts of a Deployment.
pub(super) fn validate_deployment_counts(old: &Value, status: &Field<'_>) {
    validate_counts(status, OF_DEPLOYMENTS, "updatedReplicas");
    let collisions = status.field("collisionCount");
    let (before, after) = (old["collisionCount"].as_i64(), collisions.number());
    if before.unwrap_or(0) > after.unwrap_or(0) || (before.is_some() && after.is_none()) {
        collisions.invalid_as(after.unwrap_or(0), "cannot be decremented");
    }
}

/// No count is negative, and none is greater than the number of pods that it is about.
fn validate_counts(status: &Field<'_>, counts: &[&str], part: &str) {
    for field in counts {
        status.field(field).require_not_negative();
    }
    for (field, other, shown) in [
        (part, "replicas", "status.replicas"),
        ("readyReplicas", "replicas", "status.replicas"),
        ("availableReplicas", "replicas", "status.replicas"),
        ("availableReplicas", "readyReplicas", "readyReplicas"),
    ] {
        let [count, most] = [field, other].map(|field| status.field(field));
        let number = count.number().unwrap_or(0);
        if number > most.number().unwrap_or(0) {
            count.invalid_as(number, &format!("cannot be greater than {shown}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::validation::errors_of;

    #[rstest]
    #[case(json!({}), &[])]
    #[case(json!({"replicas": 2, "updatedReplicas": 3, "collisionCount": 1}), &["updatedReplicas: Invalid value: 3: cannot be greater than status.replicas"])]
    #[case(json!({"unavailableReplicas": -1, "collisionCount": 2}), &["unavailableReplicas: Invalid value: -1: must be greater than or equal to 0"])]
    #[case(json!({"replicas": 2, "availableReplicas": 1, "collisionCount": 0}), &["availableReplicas: Invalid value: 1: cannot be greater than readyReplicas", "collisionCount: Invalid value: 0: cannot be decremented"])]
    fn counts_of_a_deployment(#[case] status: Value, #[case] expected: &[&str]) {
        let old = if expected.is_empty() {
            json!({})
        } else {
            json!({"collisionCount": 1})
        };
        let errors = errors_of(&status, |status| validate_deployment_counts(&old, status));
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(texts, expected);
    }
}
