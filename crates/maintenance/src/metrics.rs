//! The metrics of Maintenances.

use fedrs_api::MaintenanceStatus;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

/// A state of nodes.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfState {
    /// `matched`, `cordoned` or `emptied`.
    state: &'static str,
}

/// The metrics of the controller of Maintenances.
#[derive(Clone, Debug, Default)]
pub struct MaintenanceMetrics {
    /// Nodes of all Maintenances.
    nodes: Family<OfState, Gauge>,
    /// Pods that have to leave and wait.
    blocking: Gauge,
    /// Patches of nodes that failed or were rejected.
    pub(crate) failed_writes: Counter,
}

impl MaintenanceMetrics {
    /// Registers the metrics with `registry`.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "maintenance_nodes",
            "Nodes of all Maintenances that are matched, cordoned, and emptied",
            self.nodes.clone(),
        );
        registry.register(
            "maintenance_blocking_pods",
            "Pods that have to leave nodes of Maintenances, and wait",
            self.blocking.clone(),
        );
        registry.register(
            "maintenance_failed_writes",
            "Changes of nodes that failed or were rejected",
            self.failed_writes.clone(),
        );
    }
}

/// What one Maintenance adds to the metrics, until it is dropped.
pub(crate) struct Counted {
    metrics: MaintenanceMetrics,
    counted: [i64; 4],
}

impl Counted {
    pub(crate) fn new(metrics: MaintenanceMetrics) -> Self {
        Self {
            metrics,
            counted: [0; 4],
        }
    }

    /// Counts what the status says.
    pub(crate) fn count(&mut self, status: &MaintenanceStatus) {
        let nodes = status.nodes;
        let numbers = [
            nodes.matched,
            nodes.cordoned,
            nodes.emptied,
            status.blocking_total,
        ];
        self.set(numbers.map(i64::from));
    }

    fn set(&mut self, numbers: [i64; 4]) {
        let nodes = |state| self.metrics.nodes.get_or_create_owned(&OfState { state });
        let gauges = [
            nodes("matched"),
            nodes("cordoned"),
            nodes("emptied"),
            self.metrics.blocking.clone(),
        ];
        for ((gauge, before), after) in gauges.iter().zip(self.counted).zip(numbers) {
            gauge.inc_by(after - before);
        }
        self.counted = numbers;
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.set([0; 4]);
    }
}
