//! A local `Deployment` (apps/v1), decoded into the fields that a check needs. Of its template it keeps a hash.

use fedrs_api::LocalKind;
use reflector::{Versioned, partial::null_as_default};
use serde::Deserialize;

use crate::{
    deployment_strategy::StrategyObject, rolling_spec::RollingSpec, workload::WorkloadState,
    workload_metadata::WorkloadMetadata, workload_status::WorkloadStatus,
};

/// The fields of a `Deployment` that a check needs.
#[derive(Debug, Deserialize)]
pub struct DeploymentObject {
    metadata: WorkloadMetadata,
    spec: RollingSpec<StrategyObject>,
    #[serde(default, deserialize_with = "null_as_default")]
    status: WorkloadStatus,
}

impl Versioned for DeploymentObject {
    fn resource_version(&self) -> Option<&str> {
        Some(self.metadata.resource_version())
    }
}

impl From<DeploymentObject> for WorkloadState {
    /// `fully_labeled_replicas` is 0: only the ReplicaSets of the Deployment know how many are.
    fn from(object: DeploymentObject) -> Self {
        let DeploymentObject {
            metadata,
            spec,
            mut status,
        } = object;
        status.fully_labeled_replicas = 0;
        let strategy = spec.strategy.in_pods(spec.replicas);
        spec.into_state(LocalKind::Deployment, metadata, status, strategy, None)
    }
}

#[cfg(test)]
mod tests {
    use fedrs_api::WorkloadKey;
    use serde_json::{Value, json};

    use super::*;
    use crate::{DeploymentState, RolloutStrategy};
    use crate::{deployment_state::Progressing, replica_set::ReplicaSetObject};

    fn deployment() -> Value {
        json!({
            "metadata": {
                "name": "web", "namespace": "default", "uid": "u", "resourceVersion": "12", "generation": 3,
                "labels": {"fedrs.dev/federation": "fed", "fedrs.dev/replica-set": "web", "fedrs.dev/member-cluster": "a"},
            },
            "spec": {
                "replicas": 5, "paused": true, "minReadySeconds": 2, "selector": {"matchLabels": {"app": "web"}},
                "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2, "maxSurge": 1}},
                "template": {"metadata": {"annotations": {"fedrs.dev/template-hash": "1234abcd"}, "labels": {"fedrs.dev/federation": "fed", "fedrs.dev/replica-set": "web"}}},
            },
            "status": {"observedGeneration": 2, "replicas": 6, "updatedReplicas": 4, "readyReplicas": 3, "availableReplicas": 2,
                "conditions": [
                    {"type": "Available", "status": "False", "reason": "MinimumReplicasUnavailable"},
                    {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "timed out"},
                    {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "exceeded quota"}]},
        })
    }

    fn read(object: Value) -> WorkloadState {
        serde_json::from_value::<DeploymentObject>(object)
            .unwrap()
            .into()
    }

    #[test]
    fn the_fields_that_a_check_needs_are_read() {
        let state = read(deployment());
        let key = WorkloadKey::of_kind(LocalKind::Deployment, "default", "web");
        assert_eq!(state.key, key);
        assert_eq!(
            (&*state.uid, &*state.resource_version, state.generation),
            ("u", "12", 3)
        );
        let counts = (
            state.observed_generation,
            state.replicas,
            state.status_replicas,
            state.ready_replicas,
            state.available_replicas,
            state.lowest_replicas,
        );
        assert_eq!(counts, (2, 5, 6, 3, 2, 5));
        let failure = state.replica_failure.unwrap();
        assert_eq!(failure.message, "exceeded quota");
        let expected = DeploymentState {
            strategy: RolloutStrategy {
                max_unavailable: 2,
                max_surge: 1,
                is_fixed: true,
            },
            paused: true,
            min_ready_seconds: 2,
            written_template: 0x1234_abcd,
            updated_replicas: 4,
            progressing: Some(Progressing {
                reason: "ProgressDeadlineExceeded".into(),
                message: "timed out".into(),
            }),
            eviction_blocked: None,
            template_is_labeled: true,
            local: None,
        };
        assert_eq!(state.deployment, Some(Box::new(expected)));
    }

    #[test]
    fn f29_the_hash_is_that_of_the_template() {
        let mut object = deployment();
        object["spec"]["strategy"] = json!({"type": "Recreate"});
        object["spec"]["paused"] = json!(false);
        object["spec"]["minReadySeconds"] = json!(7);
        assert_eq!(read(object.clone()).spec_hash, read(deployment()).spec_hash);
        object["spec"]["template"]["spec"] = json!({"containers": []});
        assert_ne!(read(object).spec_hash, read(deployment()).spec_hash);
    }

    /// The member's controller writes annotations of a Deployment, which raises its generation.
    #[test]
    fn f29_the_spec_version_tells_changes_of_the_spec_from_those_of_annotations() {
        let version = |object: &Value| read(object.clone()).spec_version();
        let mut object = deployment();
        object["metadata"]["generation"] = json!(4);
        assert_eq!(version(&object), version(&deployment()));
        for (field, value) in [
            ("replicas", json!(4)),
            ("paused", json!(false)),
            ("minReadySeconds", json!(3)),
            ("strategy", json!({"type": "Recreate"})),
            ("template", json!({"spec": {}})),
        ] {
            let mut object = deployment();
            object["spec"][field] = value;
            assert_ne!(version(&object), version(&deployment()), "{field}");
        }
        let set = serde_json::from_value::<ReplicaSetObject>(deployment()).unwrap();
        assert_eq!(WorkloadState::from(set).spec_version(), 3);
    }

    #[test]
    fn f30_a_template_is_labeled_if_its_pods_are_watched() {
        for (labels, expected) in [
            (
                json!({"fedrs.dev/federation": "fed", "fedrs.dev/replica-set": "x"}),
                true,
            ),
            (
                json!({"fedrs.dev/federation": "other", "fedrs.dev/replica-set": "web"}),
                false,
            ),
            (json!({"fedrs.dev/federation": "fed"}), false),
            (json!({"app": "web"}), false),
            (json!(null), false),
        ] {
            let mut object = deployment();
            object["spec"]["template"]["metadata"]["labels"] = labels.clone();
            let deployment = read(object).deployment.unwrap();
            assert_eq!(deployment.template_is_labeled, expected, "{labels}");
        }
    }

    #[test]
    fn other_types_are_rejected() {
        for (field, value) in [
            ("replicas", json!(-1)),
            ("paused", json!("yes")),
            (
                "strategy",
                json!({"rollingUpdate": {"maxUnavailable": "some"}}),
            ),
        ] {
            let mut object = deployment();
            object["spec"][field] = value;
            assert!(serde_json::from_value::<DeploymentObject>(object).is_err());
        }
    }
}
