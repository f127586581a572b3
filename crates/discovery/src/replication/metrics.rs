//! Metrics of a replica that is fed by another one.

use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{
        MetricType,
        counter::Counter,
        gauge::{ConstGauge, Gauge},
    },
    registry::{Registry, Unit},
};

/// Whether an upstream is followed. Cheap to clone.
#[derive(Clone, Debug)]
pub struct UpstreamMetrics {
    connected: Gauge,
    failures: Counter,
    lost_since: Arc<Mutex<Option<Timestamp>>>,
}

impl UpstreamMetrics {
    /// Registers the metrics of a replica that has no upstream yet.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            connected: Gauge::default(),
            failures: Counter::default(),
            lost_since: Arc::new(Mutex::new(Some(Timestamp::now()))),
        };
        let registry = registry.sub_registry_with_prefix("discovery");
        registry.register(
            "upstream_connected",
            "Whether an upstream is followed, and everything that it knows has come",
            metrics.connected.clone(),
        );
        registry.register(
            "upstream_failures",
            "Upstreams that could not be followed, or not any longer",
            metrics.failures.clone(),
        );
        let lost = Lost(Arc::clone(&metrics.lost_since));
        registry.register_collector(Box::new(lost));
        metrics
    }

    pub(super) fn connected(&self) {
        self.connected.set(1);
        *self.lost_since.lock() = None;
    }

    pub(super) fn lost(&self, since: Timestamp) {
        self.connected.set(0);
        self.lost_since.lock().get_or_insert(since);
    }

    pub(super) fn failed(&self) {
        self.failures.inc();
    }
}

#[derive(Debug)]
struct Lost(Arc<Mutex<Option<Timestamp>>>);

impl Collector for Lost {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let since = *self.0.lock();
        let seconds = since.map_or(0, |since| Timestamp::now().duration_since(since).as_secs());
        let encoder = encoder.encode_descriptor(
            "upstream_stale",
            "For how long no upstream has been followed; 0 while one is",
            Some(&Unit::Seconds),
            MetricType::Gauge,
        )?;
        ConstGauge::new(seconds).encode(encoder)
    }
}
