//! What is known of the sets, counted when it is asked for (F38).

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock, Weak},
};

use fedrs_api::{ConditionReason, ConditionType, SetKind, conditions::find};
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{MetricType, gauge::ConstGauge},
};

use crate::frs_store::{Entry, FrsStore};

/// The reasons of `Progressing`: each has a series, also without a rollout.
const REASONS: [ConditionReason; 7] = [
    ConditionReason::RolloutComplete,
    ConditionReason::RollingOut,
    ConditionReason::RolloutPaused,
    ConditionReason::Soaking,
    ConditionReason::WaitingForApproval,
    ConditionReason::ProgressDeadlineExceeded,
    ConditionReason::RolledBack,
];

/// Counts the sets of a controller.
#[derive(Clone, Debug, Default)]
pub(crate) struct SetMetrics(Arc<OnceLock<Weak<FrsStore>>>);

impl SetMetrics {
    /// Counts the sets in `store`. The first store stays: metrics are those of one controller.
    pub(crate) fn count(&self, store: &Arc<FrsStore>) {
        self.0.get_or_init(|| Arc::downgrade(store));
    }
}

/// How many sets there are.
#[derive(Debug, Default)]
struct Counts {
    sets: usize,
    invalid: usize,
    /// FederatedDeployments by the reason of `Progressing`.
    rollouts: BTreeMap<String, usize>,
    /// Pods that run, and not the revision that is rolled out.
    outdated_pods: u64,
}

impl Counts {
    fn add(&mut self, kind: SetKind, entry: &Entry) {
        self.sets += 1;
        self.invalid += usize::from(entry.valid.is_err());
        let Some(status) = entry.status.as_deref() else {
            return;
        };
        if kind == SetKind::FederatedDeployment
            && let Some(progressing) = find(&status.conditions, ConditionType::Progressing)
        {
            // Of another version of fedrs, perhaps.
            if let Some(of_reason) = self.rollouts.get_mut(&progressing.reason) {
                *of_reason += 1;
            }
            let outdated = status.replicas.saturating_sub(status.updated_replicas);
            self.outdated_pods += u64::try_from(outdated).unwrap_or_default();
        }
    }
}

impl Collector for SetMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let mut counts = Counts {
            rollouts: REASONS.map(|reason| (reason.to_string(), 0)).into(),
            ..Counts::default()
        };
        if let Some(store) = self.0.get().and_then(Weak::upgrade) {
            store.for_each(|key, entry| counts.add(key.kind, entry));
        }
        let single = [
            (
                "sets",
                "FederatedReplicaSets and FederatedDeployments",
                gauge(counts.sets),
            ),
            (
                "invalid_sets",
                "Those with an invalid spec",
                gauge(counts.invalid),
            ),
            (
                "rollout_outdated_pods",
                "Pods of FederatedDeployments that do not have the revision that is rolled out",
                ConstGauge::new(counts.outdated_pods),
            ),
        ];
        for (name, help, gauge) in single {
            gauge.encode(encoder.encode_descriptor(name, help, None, MetricType::Gauge)?)?;
        }
        let mut rollouts = encoder.encode_descriptor(
            "rollouts",
            "FederatedDeployments, by the reason of their condition Progressing",
            None,
            MetricType::Gauge,
        )?;
        for (reason, count) in counts.rollouts {
            let labels = [("reason", reason)];
            gauge(count).encode(rollouts.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

fn gauge(count: usize) -> ConstGauge<u64> {
    ConstGauge::new(u64::try_from(count).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use prometheus_client::{encoding::text::encode, registry::Registry};
    use serde_json::{Value, json};

    use super::*;
    use crate::frs_store::Source;

    fn apply(store: &FrsStore, kind: SetKind, name: &str, status: &Value) {
        let spec = json!({
            "replicas": 9,
            "selector": { "matchLabels": { "app": name } },
            "template": { "metadata": { "labels": { "app": name } }, "spec": { "containers": [{}] } },
        });
        let metadata = json!({ "name": name, "namespace": "default", "uid": name, "generation": 1,
            "resourceVersion": "1" });
        let object = json!({ "metadata": metadata, "spec": spec, "status": status });
        let object = serde_json::from_value(object).unwrap();
        store.apply(kind, object, Source::Watch, "");
    }

    fn progressing(reason: &str, updated: u32) -> Value {
        json!({ "replicas": 9, "updatedReplicas": updated, "conditions": [{
            "type": "Progressing", "status": "True", "reason": reason, "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }] })
    }

    #[test]
    fn f38_rollouts_are_counted_by_the_reason_of_progressing() {
        use SetKind::{FederatedDeployment as Deployment, FederatedReplicaSet as ReplicaSet};
        let (metrics, mut registry) = (SetMetrics::default(), Registry::default());
        registry.register_collector(Box::new(metrics.clone()));
        let store = Arc::new(FrsStore::default());
        metrics.count(&store);
        for (kind, name, status) in [
            (Deployment, "a", progressing("RollingOut", 4)),
            (Deployment, "b", progressing("RollingOut", 7)),
            (Deployment, "c", progressing("RolloutComplete", 9)),
            (Deployment, "d", progressing("OfAnotherVersion", 9)),
            (Deployment, "e", Value::Null),
            (ReplicaSet, "f", progressing("RollingOut", 0)),
        ] {
            apply(&store, kind, name, &status);
        }
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        for line in [
            "sets 6",
            "invalid_sets 0",
            "rollout_outdated_pods 7",
            r#"rollouts{reason="RollingOut"} 2"#,
            r#"rollouts{reason="RolloutComplete"} 1"#,
            r#"rollouts{reason="RolledBack"} 0"#,
        ] {
            assert!(text.lines().any(|found| found == line), "{line}:\n{text}");
        }
        assert!(
            !text.contains("OfAnotherVersion"),
            "labels are of a closed set"
        );
    }
}
