//! The metrics of the leader election.

use prometheus_client::{
    metrics::{counter::Counter, gauge::Gauge},
    registry::Registry,
};

/// The metrics of the leader election, of leaders and standbys.
#[derive(Clone, Debug, Default)]
pub struct ElectionMetrics {
    /// Whether this process leads; one without leader election always does.
    pub leader: Gauge,
    /// Writes that were not sent or were aborted because the term was over.
    pub fenced_writes: Counter,
}

impl ElectionMetrics {
    /// New metrics, registered with `registry`.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let shown = metrics.clone();
        registry.register("leader", "1 while this process leads, else 0", shown.leader);
        registry.register(
            "fenced_writes",
            "Writes held back because the term was over",
            shown.fenced_writes,
        );
        metrics
    }
}
