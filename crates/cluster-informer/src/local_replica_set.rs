//! A LocalReplicaSet, decoded into the fields that a check needs. Of its template it keeps a hash.

use fedrs_api::LocalKind;
use reflector::{Versioned, partial::null_as_default};
use serde::Deserialize;

use crate::{
    deployment_state::{LocalSetState, LocalSettings},
    deployment_strategy::LocalStrategyObject,
    rolling_spec::RollingSpec,
    workload::WorkloadState,
    workload_metadata::WorkloadMetadata,
    workload_status::WorkloadStatus,
};

/// The fields of a LocalReplicaSet that a check needs.
#[derive(Debug, Deserialize)]
pub struct LocalReplicaSetObject {
    metadata: WorkloadMetadata,
    spec: RollingSpec<LocalStrategyObject>,
    #[serde(default, deserialize_with = "null_as_default")]
    status: WorkloadStatus,
}

impl Versioned for LocalReplicaSetObject {
    fn resource_version(&self) -> Option<&str> {
        Some(self.metadata.resource_version())
    }
}

impl From<LocalReplicaSetObject> for WorkloadState {
    /// A pod whose update or eviction was recorded will be unavailable, whatever the budget becomes meanwhile: it does not count as
    /// available.
    fn from(object: LocalReplicaSetObject) -> Self {
        let LocalReplicaSetObject {
            metadata,
            spec,
            mut status,
        } = object;
        status.available_replicas = status.available_replicas.min(status.revisions.0);
        // Pods have the labels of the template that they have.
        status.fully_labeled_replicas = if spec.template.is_labeled_as(&metadata.labels) {
            status.updated_replicas.min(status.replicas)
        } else {
            0
        };
        let strategy = spec.strategy.in_pods(spec.replicas);
        let defaults = LocalSettings::default();
        let settings = LocalSettings {
            progress_deadline_seconds: (spec.progress_deadline_seconds)
                .unwrap_or(defaults.progress_deadline_seconds),
            revision_history_limit: (spec.revision_history_limit)
                .unwrap_or(defaults.revision_history_limit),
            drain_seconds: spec.drain_seconds,
            migration_policy: spec.migration_policy,
            speed: spec.strategy.deploy_speed,
            has_others: spec.has_others || spec.strategy.has_others(),
        };
        let local = LocalSetState {
            settings,
            waiting_evictions: status.waiting_evictions,
            evictable: status.evictable,
        };
        let kind = LocalKind::LocalReplicaSet;
        spec.into_state(kind, metadata, status, strategy, Some(local))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::LocalSpeed;

    fn read(change: impl FnOnce(&mut Value)) -> WorkloadState {
        let labels = json!({"fedrs.dev/federation": "fed", "fedrs.dev/replica-set": "web"});
        let mut set = json!({
            "metadata": {
                "name": "web", "namespace": "default", "uid": "u", "resourceVersion": "12", "generation": 3, "labels": labels,
            },
            "spec": {
                "replicas": 5, "paused": true, "minReadySeconds": 2, "selector": {"matchLabels": {"app": "web"}},
                "deploymentStrategy": {"maxUnavailable": 2, "deploySpeed": {"updatePortion": 2, "minDelay": 30}},
                "template": {"metadata": {"annotations": {"fedrs.dev/template-hash": "1234abcd"}, "labels": labels}},
            },
            "status": {
                "observedGeneration": 3, "replicas": 5, "readyReplicas": 5, "availableReplicas": 4, "updatedReplicas": 3,
                "waitingEvictions": 1, "evictable": 2, "record": "{}",
                "revisions": [{"revision": "web-1", "ready": 2, "failed": 1}, {"revision": "web-2", "ready": 1, "markedRemove": 1}],
                "conditions": [{"type": "ReplicaFailure", "status": "True", "message": "exceeded quota"}],
            },
        });
        change(&mut set);
        let set: LocalReplicaSetObject = serde_json::from_value(set).unwrap();
        set.into()
    }

    #[test]
    fn l14_a_pod_whose_update_or_eviction_has_begun_is_not_available() {
        let state = read(|_| {});
        assert_eq!(state.key.kind, LocalKind::LocalReplicaSet);
        let counts = (
            state.replicas,
            state.status_replicas,
            state.available_replicas,
            state.fully_labeled_replicas,
        );
        assert_eq!(counts, (5, 5, 3, 3));
        assert_eq!(state.replica_failure.unwrap().message, "exceeded quota");
        let deployment = *state.deployment.unwrap();
        assert_eq!(deployment.strategy.max_unavailable, 2);
        assert_eq!(deployment.strategy.max_surge, 0);
        let local = deployment.local.unwrap();
        assert_eq!((local.waiting_evictions, local.evictable), (1, 2));
        assert!(deployment.paused && deployment.template_is_labeled);
    }

    #[test]
    fn l5_a_percentage_that_rounds_to_nothing_is_one_pod() {
        for (strategy, replicas, expected) in [
            (json!({"maxUnavailable": 0}), 5, (0, true)),
            (json!({"maxUnavailable": "0%"}), 5, (0, false)),
            (json!({"maxUnavailable": "10%"}), 5, (1, false)),
            (json!({"maxUnavailable": "10%"}), 0, (0, false)),
            (json!({}), 9, (2, false)),
            (Value::Null, 9, (2, false)),
        ] {
            let state = read(|set| {
                set["spec"]["deploymentStrategy"] = strategy.clone();
                set["spec"]["replicas"] = replicas.into();
            });
            let read = state.deployment.unwrap().strategy;
            assert_eq!(
                (read.max_unavailable, read.is_fixed),
                expected,
                "{strategy} of {replicas}"
            );
        }
    }

    /// Neither what the API server adds, nor what a newer one may add, counts.
    #[test]
    fn f29_fields_that_fedrs_does_not_set_are_noticed() {
        let settings = |change: &dyn Fn(&mut Value)| {
            let state = read(change);
            let version = state.spec_version();
            (state.deployment.unwrap().local.unwrap().settings, version)
        };
        let (before, version) = settings(&|_| {});
        let speed = LocalSpeed {
            update_portion: 2,
            min_delay: 30,
        };
        let expected = LocalSettings {
            speed: Some(speed),
            ..LocalSettings::default()
        };
        assert_eq!(before, expected);
        let defaults = json!({
            "stopped": false, "updateMode": "Rolling", "accountId": "", "nodeSegmentId": "default", "constraints": {},
            "removalTimeoutSeconds": 1800, "evictionTimeoutSeconds": 600, "nodeTimeoutSeconds": 300,
            "drainSeconds": 0, "migrationPolicy": null, "progressDeadlineSeconds": 600, "revisionHistoryLimit": 10, "ofTheFuture": { "a": 1 },
        });
        let with = |fields: &Value| {
            let fields = fields.as_object().unwrap().clone();
            settings(&move |set| set["spec"].as_object_mut().unwrap().extend(fields.clone()))
        };
        assert_eq!(with(&defaults), (before, version));
        for field in [
            json!({ "stopped": true }),
            json!({ "updateMode": "Never" }),
            json!({ "accountId": "x" }),
            json!({ "nodeSegmentId": "x" }),
            json!({ "constraints": { "antiaffinity": [{ "key": "rack", "maxPods": 1 }] } }),
            json!({ "removalTimeoutSeconds": 5 }),
            json!({ "evictionTimeoutSeconds": 5 }),
            json!({ "nodeTimeoutSeconds": 5 }),
            json!({ "deploymentStrategy": { "maxUnavailable": 2, "deploySpeed": speed_of(2, 30), "minAvailable": 1 } }),
            json!({ "deploymentStrategy": { "maxUnavailable": 2, "deploySpeed": speed_of(2, 30), "maxSurge": 1 } }),
            json!({ "deploymentStrategy": { "maxUnavailable": 2, "deploySpeed": speed_of(2, 30), "resourceUpdates": "Resize" } }),
        ] {
            let (settings, other) = with(&field);
            assert!(settings.has_others, "{field}");
            assert_ne!(other, version, "{field}");
        }
        for field in [
            json!({ "progressDeadlineSeconds": 5 }),
            json!({ "revisionHistoryLimit": 5 }),
            json!({ "drainSeconds": 5 }),
            json!({ "migrationPolicy": "stateful" }),
            json!({ "deploymentStrategy": { "maxUnavailable": 2, "deploySpeed": speed_of(1, 30) } }),
            json!({ "deploymentStrategy": { "maxUnavailable": 2 } }),
        ] {
            let (settings, other) = with(&field);
            assert!(!settings.has_others && settings != before, "{field}");
            assert_ne!(other, version, "{field}");
        }
    }

    fn speed_of(portion: u32, delay: u32) -> Value {
        json!({ "updatePortion": portion, "minDelay": delay })
    }

    #[test]
    fn f30_pods_of_a_template_without_our_labels_are_to_be_labeled() {
        let state = read(|set| set["spec"]["template"]["metadata"] = json!({}));
        assert_eq!(state.fully_labeled_replicas, 0);
    }
}
