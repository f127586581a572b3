//! A local `ReplicaSet` (apps/v1), decoded into the fields that a check needs. Of its template it keeps a hash.

use fedrs_api::ObjectKey;
use jiff::Timestamp;
use reflector::{
    Versioned, limited_value,
    partial::{Text, for_each_item, name, null_as_default},
    printable,
};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::{
    metadata::{FedrsLabels, Finalizers, Owners},
    spec_hash::spec_hash,
    workload::{Deletion, ReplicaFailure, WorkloadState},
};

/// The values that a template of a member may have: a large one has some thousands.
const MAX_VALUES: usize = 100_000;

/// The fields of a `ReplicaSet` that a check needs.
#[derive(Debug, Deserialize)]
pub struct ReplicaSetObject {
    pub(crate) metadata: ReplicaSetMetadata,
    spec: ReplicaSetSpec,
    #[serde(default, deserialize_with = "null_as_default")]
    status: ReplicaSetStatus,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReplicaSetMetadata {
    #[serde(deserialize_with = "name")]
    name: Box<str>,
    #[serde(deserialize_with = "name")]
    namespace: Box<str>,
    #[serde(deserialize_with = "name")]
    pub(crate) uid: String,
    #[serde(deserialize_with = "name")]
    pub(crate) resource_version: String,
    #[serde(default)]
    generation: i64,
    deletion_timestamp: Option<Timestamp>,
    #[serde(default, deserialize_with = "null_as_default")]
    finalizers: Finalizers,
    #[serde(default, deserialize_with = "null_as_default")]
    labels: FedrsLabels,
    #[serde(default, deserialize_with = "null_as_default")]
    owner_references: Owners,
}

/// The template of one object of a page is in memory at a time: it takes a multiple of its bytes.
#[derive(Debug, Deserialize)]
#[serde(from = "WholeSpec")]
struct ReplicaSetSpec {
    replicas: u32,
    hash: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WholeSpec {
    /// The API server's own default.
    #[serde(default = "one")]
    replicas: u32,
    #[serde(default)]
    min_ready_seconds: i32,
    #[serde(default, deserialize_with = "limited_value::<MAX_VALUES, _>")]
    selector: Value,
    #[serde(default, deserialize_with = "limited_value::<MAX_VALUES, _>")]
    template: Value,
}

fn one() -> u32 {
    1
}

impl From<WholeSpec> for ReplicaSetSpec {
    fn from(spec: WholeSpec) -> Self {
        Self {
            replicas: spec.replicas,
            hash: spec_hash(&spec.template, spec.min_ready_seconds, &spec.selector),
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ReplicaSetStatus {
    observed_generation: i64,
    replicas: u32,
    ready_replicas: u32,
    available_replicas: u32,
    fully_labeled_replicas: u32,
    #[serde(rename = "conditions", deserialize_with = "null_as_default")]
    failure: FailureCondition,
}

/// The condition `ReplicaFailure`, while it is true (F32).
#[derive(Debug, Default)]
struct FailureCondition(Option<Box<ReplicaFailure>>);

impl<'de> Deserialize<'de> for FailureCondition {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Condition<'a> {
            #[serde(borrow)]
            r#type: Text<'a>,
            #[serde(borrow)]
            status: Text<'a>,
            last_transition_time: Option<Timestamp>,
            #[serde(default, borrow)]
            message: Option<Text<'a>>,
        }
        let mut failure = None;
        for_each_item(deserializer, |condition: Condition<'_>| {
            if condition.r#type.0 == "ReplicaFailure" && condition.status.0 == "True" {
                let message = condition.message.map(|message| printable(&message.0));
                failure.get_or_insert(Box::new(ReplicaFailure {
                    since: condition.last_transition_time,
                    message: message.unwrap_or_default(),
                }));
            }
        })?;
        Ok(Self(failure))
    }
}

impl Versioned for ReplicaSetObject {
    fn resource_version(&self) -> Option<&str> {
        Some(&self.metadata.resource_version)
    }
}

/// From the bytes of an apps/v1 `ReplicaSet`.
impl<'de> Deserialize<'de> for WorkloadState {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        ReplicaSetObject::deserialize(deserializer).map(Self::from)
    }
}

impl From<ReplicaSetObject> for WorkloadState {
    /// `lowest_replicas` is the object's own `spec.replicas`: only the table knows earlier ones.
    fn from(object: ReplicaSetObject) -> Self {
        let ReplicaSetObject {
            metadata,
            spec,
            status,
        } = object;
        let labels = metadata.labels;
        Self {
            key: ObjectKey::new(metadata.namespace, metadata.name),
            uid: metadata.uid,
            resource_version: metadata.resource_version,
            generation: metadata.generation,
            observed_generation: status.observed_generation,
            replicas: spec.replicas,
            status_replicas: status.replicas,
            ready_replicas: status.ready_replicas,
            available_replicas: status.available_replicas,
            fully_labeled_replicas: status.fully_labeled_replicas,
            replica_failure: status.failure.0,
            spec_hash: spec.hash,
            lowest_replicas: spec.replicas,
            open_scale_up: None,
            federation: labels.federation.unwrap_or_default().into(),
            member_cluster: labels.member_cluster.unwrap_or_default().into(),
            deletion: (metadata.deletion_timestamp).map(|since| {
                Box::new(Deletion {
                    since,
                    finalizers: metadata.finalizers.0,
                })
            }),
            behind_since: None,
            has_owners: metadata.owner_references.any,
            has_controller: metadata.owner_references.controller.is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn replica_set() -> Value {
        json!({
            "metadata": {
                "name": "web", "namespace": "default", "uid": "u", "resourceVersion": "12", "generation": 3,
                "labels": {"fedrs.dev/federation": "fed", "fedrs.dev/replica-set": "web", "fedrs.dev/member-cluster": "a"},
            },
            "spec": {"replicas": 5, "selector": {"matchLabels": {"app": "web"}}, "template": {"spec": {"containers": []}}},
            "status": {"observedGeneration": 2, "replicas": 4, "readyReplicas": 3, "availableReplicas": 2, "fullyLabeledReplicas": 1,
                "conditions": [{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate",
                    "lastTransitionTime": "2026-11-01T00:00:00Z", "message": "exceeded quota"}]},
        })
    }

    fn hash_of(change: impl FnOnce(&mut Value)) -> u64 {
        let mut set = replica_set();
        change(&mut set);
        serde_json::from_value::<WorkloadState>(set)
            .unwrap()
            .spec_hash
    }

    #[test]
    fn the_fields_that_a_check_needs_are_read() {
        let state = serde_json::from_value::<WorkloadState>(replica_set()).unwrap();
        let failure = ReplicaFailure {
            since: Some("2026-11-01T00:00:00Z".parse().unwrap()),
            message: "exceeded quota".into(),
        };
        let expected = WorkloadState {
            key: ObjectKey::new("default", "web"),
            uid: "u".into(),
            resource_version: "12".into(),
            generation: 3,
            observed_generation: 2,
            replicas: 5,
            status_replicas: 4,
            ready_replicas: 3,
            available_replicas: 2,
            fully_labeled_replicas: 1,
            replica_failure: Some(Box::new(failure)),
            spec_hash: state.spec_hash,
            lowest_replicas: 5,
            open_scale_up: None,
            federation: "fed".into(),
            member_cluster: "a".into(),
            deletion: None,
            behind_since: None,
            has_owners: false,
            has_controller: false,
        };
        assert_eq!(state, expected);
    }

    #[test]
    fn f29_the_hash_covers_what_decides_the_pods() {
        let original = hash_of(|_| {});
        assert_eq!(
            original, 0x9616_3d58_1b80_6a22,
            "a new hash means a write to every local workload"
        );
        for (name, same) in [
            (
                "replicas",
                hash_of(|set| set["spec"]["replicas"] = json!(9)),
            ),
            ("status", hash_of(|set| set["status"] = Value::Null)),
            (
                "labels of the ReplicaSet",
                hash_of(|set| set["metadata"]["labels"]["x"] = json!("y")),
            ),
            (
                "null",
                hash_of(|set| set["spec"]["template"]["metadata"] = Value::Null),
            ),
            (
                "an explicit default",
                hash_of(|set| set["spec"]["minReadySeconds"] = json!(0)),
            ),
        ] {
            assert_eq!(same, original, "{name}");
        }
        for (name, other) in [
            (
                "template",
                hash_of(|set| set["spec"]["template"]["spec"]["nodeName"] = json!("n")),
            ),
            (
                "minReadySeconds",
                hash_of(|set| set["spec"]["minReadySeconds"] = json!(1)),
            ),
            (
                "selector",
                hash_of(|set| set["spec"]["selector"]["matchLabels"]["app"] = json!("x")),
            ),
        ] {
            assert_ne!(other, original, "{name}");
        }
    }

    #[test]
    fn other_types_are_rejected() {
        for (field, value) in [("replicas", json!(-1)), ("replicas", json!("5"))] {
            let mut set = replica_set();
            set["spec"][field] = value;
            assert!(serde_json::from_value::<WorkloadState>(set).is_err());
        }
        assert!(serde_json::from_str::<WorkloadState>("{}").is_err());
    }

    #[test]
    fn deletion_and_controller_are_read() {
        let mut set = replica_set();
        set["metadata"]["deletionTimestamp"] = json!("2026-11-01T00:00:00Z");
        set["metadata"]["finalizers"] = json!(["foregroundDeletion", "example.com/hold"]);
        set["metadata"]["ownerReferences"] =
            json!([{"uid": "d", "kind": "Deployment", "controller": true}]);
        let state = serde_json::from_value::<WorkloadState>(set).unwrap();
        let deletion = Deletion {
            since: "2026-11-01T00:00:00Z".parse().unwrap(),
            finalizers: vec!["foregroundDeletion".into(), "example.com/hold".into()],
        };
        assert_eq!(state.deletion, Some(Box::new(deletion)));
        assert!(state.has_controller);
    }
}
