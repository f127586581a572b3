//! Reads FederatedReplicaSets, FederatedDeployments, LocalReplicaSets, MemberClusters and preferences from mutated bytes.

use std::{fmt::Debug, path::Path};

use fedrs_api::{
    FederatedDeployment, FederatedReplicaSet, FieldError, LocalReplicaSet, MemberCluster,
    ValidFederatedDeployment, ValidFrs, ValidLocalReplicaSet, preferences,
};
use mutations::fuzz;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

fn corpus(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(name)
}

/// Reads an object, which is the same after it was written and read again.
fn read<T: Serialize + DeserializeOwned + PartialEq + Debug>(bytes: &[u8]) -> Option<T> {
    let object: T = serde_json::from_slice(bytes).ok()?;
    let write = |object: &T| serde_json::to_value(object).expect("what was read can be written");
    let written = write(&object);
    let again: T = serde_json::from_value(written.clone()).expect("what was written can be read");
    assert_eq!(write(&again), written);
    Some(object)
}

/// Each error names a field of the object, and prints as one line.
fn check_errors(errors: &[FieldError], fields: &[&str]) {
    assert!(!errors.is_empty());
    for error in errors {
        let text = error.to_string();
        assert!(
            fields.iter().any(|field| error.field.starts_with(field)),
            "{text}"
        );
        assert!(!error.message.is_empty(), "{text}");
    }
}

#[test]
fn f4_any_set_is_valid_or_its_errors_name_fields() {
    fuzz(&corpus("sets"), |bytes| {
        let Some(object) = read::<FederatedReplicaSet>(bytes) else {
            return;
        };
        match ValidFrs::check(&object) {
            Ok(valid) => {
                assert_eq!(i64::from(valid.replicas), i64::from(object.spec.replicas));
                // What is valid stays so.
                let again = ValidFrs::check(&object).expect("it was valid");
                assert_eq!(format!("{again:?}"), format!("{valid:?}"));
            }
            Err(errors) => check_errors(&errors, &["spec", "metadata"]),
        }
    });
}

#[test]
fn l6_any_deployment_is_valid_or_its_errors_name_fields() {
    fuzz(&corpus("deployments"), |bytes| {
        let Some(object) = read::<FederatedDeployment>(bytes) else {
            return;
        };
        match ValidFederatedDeployment::check(&object) {
            Ok(valid) => {
                let limits = valid.rollout.budget.resolve(valid.set.replicas.into(), 1);
                assert!(limits.unavailable + limits.surge > 0, "{limits:?}");
                let members = valid.rollout.order.step_members(&["m1", "m2"]);
                for step in valid.rollout.order.steps(&members) {
                    assert!(!step.members.contains(&"*"), "{step:?}");
                }
                let seconds = valid
                    .rollout
                    .progress_deadline
                    .map(|deadline| deadline.as_secs());
                assert!(seconds.is_none_or(|seconds| seconds > valid.set.min_ready_seconds.into()));
            }
            Err(errors) => check_errors(&errors, &["spec", "metadata"]),
        }
    });
}

#[test]
fn l1_any_local_set_is_valid_or_its_errors_name_fields() {
    fuzz(&corpus("local_sets"), |bytes| {
        let Some(object) = read::<LocalReplicaSet>(bytes) else {
            return;
        };
        match ValidLocalReplicaSet::check(&object) {
            Ok(valid) => {
                let replicas = valid.replicas.into();
                assert!(valid.strategy.max_unavailable.without_surge(replicas) <= replicas);
                let seconds = valid.progress_deadline.map(|deadline| deadline.as_secs());
                assert!(seconds.is_none_or(|seconds| seconds > valid.min_ready_seconds.into()));
            }
            Err(errors) => check_errors(&errors, &["spec", "metadata"]),
        }
    });
}

#[test]
fn f2_any_preferences_are_read_or_their_errors_name_fields() {
    fuzz(&corpus("preferences"), |bytes| {
        let Ok(text) = std::str::from_utf8(bytes) else {
            return;
        };
        let read = preferences::parse(text, "annotation");
        match (read, serde_json::from_str::<Value>(text)) {
            (Ok(placement), Ok(value)) => {
                let clusters = value["clusters"]
                    .as_object()
                    .map_or(0, serde_json::Map::len);
                assert_eq!(placement.clusters.len(), clusters);
                assert_eq!(placement.rebalance, value["rebalance"] == true);
            }
            (Err(errors), _) => check_errors(&errors, &["annotation"]),
            (Ok(placement), Err(error)) => panic!("{placement:?} of what is no JSON: {error}"),
        }
    });
}

#[test]
fn any_member_cluster_is_read_or_rejected() {
    fuzz(&corpus("members"), |bytes| {
        read::<MemberCluster>(bytes);
    });
}
