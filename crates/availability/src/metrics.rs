//! The metrics of AvailabilitySets.

use fedrs_api::{AvailabilityConditionType as Type, AvailabilitySetStatus, conditions::is_true};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

/// A state of sets.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfState {
    /// `available`, `unavailable` or `unsatisfiable`.
    state: &'static str,
}

const STATES: [&str; 3] = ["available", "unavailable", "unsatisfiable"];

/// The metrics of the controller of AvailabilitySets.
#[derive(Clone, Debug, Default)]
pub struct AvailabilityMetrics {
    /// AvailabilitySets.
    sets: Family<OfState, Gauge>,
    /// Pods of all AvailabilitySets that can't be reached.
    unreachable: Gauge,
    /// Requests to members that failed or were rejected.
    pub(crate) failed_writes: Counter,
}

impl AvailabilityMetrics {
    /// Registers the metrics with `registry`.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "availability_sets",
            "AvailabilitySets that are available, are not, and can't be",
            self.sets.clone(),
        );
        registry.register(
            "availability_unreachable_pods",
            "Pods of all AvailabilitySets that can't be reached",
            self.unreachable.clone(),
        );
        registry.register(
            "availability_failed_writes",
            "Changes of PodDisruptionBudgets and LocalReplicaSets for AvailabilitySets that failed or were rejected",
            self.failed_writes.clone(),
        );
    }
}

/// What one AvailabilitySet adds to the metrics, until it is dropped.
pub(crate) struct Counted {
    metrics: AvailabilityMetrics,
    counted: [i64; 4],
}

impl Counted {
    pub(crate) fn new(metrics: AvailabilityMetrics) -> Self {
        Self {
            metrics,
            counted: [0; 4],
        }
    }

    /// Counts what the status says.
    pub(crate) fn count(&mut self, status: &AvailabilitySetStatus) {
        let is_available = is_true(&status.conditions, Type::Available);
        let is_satisfiable = is_true(&status.conditions, Type::Satisfiable);
        self.set([
            i64::from(is_available),
            i64::from(!is_available && is_satisfiable),
            i64::from(!is_satisfiable),
            status.unreachable.into(),
        ]);
    }

    fn set(&mut self, numbers: [i64; 4]) {
        let sets = STATES.map(|state| self.metrics.sets.get_or_create_owned(&OfState { state }));
        let gauges = sets.into_iter().chain([self.metrics.unreachable.clone()]);
        for ((gauge, before), after) in gauges.zip(self.counted).zip(numbers) {
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
