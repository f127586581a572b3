//! A local `ReplicaSet` (apps/v1), decoded into the fields that a check needs. Of its template it keeps a hash.

use fedrs_api::{LocalKind, WorkloadKey};
use reflector::{Versioned, limited_value, partial::null_as_default};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::{
    deployment_state::OwningDeployment,
    pod_template::{MAX_VALUES, PodTemplate},
    workload::WorkloadState,
    workload_metadata::WorkloadMetadata,
    workload_status::WorkloadStatus,
};

/// The fields of a `ReplicaSet` that a check needs.
#[derive(Debug, Deserialize)]
pub struct ReplicaSetObject {
    metadata: WorkloadMetadata,
    spec: ReplicaSetSpec,
    #[serde(default, deserialize_with = "null_as_default")]
    status: WorkloadStatus,
}

#[derive(Debug, Deserialize)]
#[serde(from = "WholeSpec")]
struct ReplicaSetSpec {
    replicas: u32,
    template: PodTemplate,
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
            template: PodTemplate::new(&spec.template, spec.min_ready_seconds, &spec.selector),
        }
    }
}

impl Versioned for ReplicaSetObject {
    fn resource_version(&self) -> Option<&str> {
        Some(self.metadata.resource_version())
    }
}

/// From the bytes of an apps/v1 `ReplicaSet`.
impl<'de> Deserialize<'de> for WorkloadState {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        ReplicaSetObject::deserialize(deserializer).map(Self::from)
    }
}

impl From<ReplicaSetObject> for WorkloadState {
    fn from(object: ReplicaSetObject) -> Self {
        let ReplicaSetObject {
            mut metadata,
            spec,
            status,
        } = object;
        let owner = metadata.owner_references.deployment.take();
        let owned_by = owner.map(|(uid, name)| {
            let kind = LocalKind::Deployment;
            Box::new(OwningDeployment {
                key: WorkloadKey::of_kind(kind, &*metadata.namespace, name),
                uid,
                template_is_labeled: spec.template.is_labeled_as(&metadata.labels),
            })
        });
        Self {
            owned_by,
            ..metadata.into_state(
                LocalKind::ReplicaSet,
                spec.replicas,
                spec.template.hash,
                status,
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{Deletion, ReplicaFailure};
    use reflector::Uid;
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
            key: WorkloadKey::new("default", "web"),
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
            deployment: None,
            owned_by: None,
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
        assert_eq!(state.owned_by, None, "an object of some group");
    }

    #[test]
    fn the_deployment_that_owns_it_is_read() {
        let mut set = replica_set();
        set["metadata"]["ownerReferences"] = json!([
            {"uid": "d", "apiVersion": "apps/v1", "kind": "Deployment", "name": "shop", "controller": true},
        ]);
        let read = |set: &Value| serde_json::from_value::<WorkloadState>(set.clone()).unwrap();
        let mut expected = OwningDeployment {
            key: WorkloadKey::of_kind(LocalKind::Deployment, "default", "shop"),
            uid: Uid::of("d"),
            template_is_labeled: false,
        };
        assert_eq!(read(&set).owned_by.as_deref(), Some(&expected));
        assert!(read(&set).has_owners && read(&set).has_controller);
        set["spec"]["template"]["metadata"]["labels"] = set["metadata"]["labels"].clone();
        expected.template_is_labeled = true;
        assert_eq!(read(&set).owned_by.as_deref(), Some(&expected));
    }
}
