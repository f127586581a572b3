//! The metrics of the controller.

use check_queue::{DelayingQueueMetrics, WorkQueueMetrics};
use prometheus_client::{
    metrics::{counter::Counter, gauge::Gauge},
    registry::Registry,
};

/// The metrics of the controller of LocalReplicaSets.
#[derive(Clone, Debug, Default)]
pub struct LocalMetrics {
    /// LocalReplicaSets known.
    pub sets: Gauge,
    /// LocalReplicaSets whose spec is invalid.
    pub invalid_sets: Gauge,
    /// Pods known: those of LocalReplicaSets, and those that have no controller.
    pub pods: Gauge,
    /// Requests that failed or were rejected.
    pub failed_requests: Counter,
    /// Events that were dropped because too many waited.
    pub events_dropped: Counter,
    /// Sets to be reconciled later.
    pub delayed: DelayingQueueMetrics,
    /// The work queue.
    pub work: WorkQueueMetrics,
}

impl LocalMetrics {
    /// New metrics, registered with `registry`.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let shown = metrics.clone();
        registry.register("local_sets", "LocalReplicaSets", shown.sets);
        registry.register(
            "local_invalid_sets",
            "LocalReplicaSets with an invalid spec",
            shown.invalid_sets,
        );
        registry.register(
            "local_pods",
            "Pods of LocalReplicaSets, and pods without a controller",
            shown.pods,
        );
        registry.register(
            "local_failed_requests",
            "Requests of the LocalReplicaSet controller that failed or were rejected",
            shown.failed_requests,
        );
        registry.register(
            "local_events_dropped",
            "Events dropped because the queue was full",
            shown.events_dropped,
        );
        (shown.delayed).register(registry.sub_registry_with_prefix("local_delayed"));
        (shown.work).register(registry.sub_registry_with_prefix("local_workqueue"));
        metrics
    }

    /// All sets, those with an invalid spec, and all pods.
    pub(crate) fn show(&self, (sets, invalid, pods): (usize, usize, usize)) {
        let gauge = |count| i64::try_from(count).unwrap_or(i64::MAX);
        self.sets.set(gauge(sets));
        self.invalid_sets.set(gauge(invalid));
        self.pods.set(gauge(pods));
    }
}
