//! Metrics of the informers, by member cluster.

use fedrs_api::LocalKind;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{
        counter::Counter,
        family::Family,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
    },
    registry::Registry,
};
use std::sync::atomic::AtomicU64;

/// A member cluster.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct ClusterLabels {
    /// Its name.
    pub(crate) cluster: String,
}

/// One watch of a member cluster.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct WatchLabels {
    /// Its name.
    pub(crate) cluster: String,
    /// `replicasets`, `deployments` or `pods`.
    pub(crate) resource: &'static str,
}

/// From 1 ms to about 16 s: longer than the timeout of the probe.
fn probe_seconds() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 4.0, 8))
}

/// Metrics of all informers. Cheap to clone; clones share their values.
#[derive(Clone, Debug)]
pub struct InformerMetrics {
    objects: Family<WatchLabels, Gauge>,
    events: Family<WatchLabels, Counter>,
    lists: Family<WatchLabels, Counter>,
    failures: Family<WatchLabels, Counter>,
    invalid_objects: Family<WatchLabels, Counter>,
    short_watches: Family<WatchLabels, Counter>,
    silences: Family<WatchLabels, Counter>,
    probe_latency: Family<ClusterLabels, Histogram, fn() -> Histogram>,
    staleness: Family<ClusterLabels, Gauge<f64, AtomicU64>>,
}

impl Default for InformerMetrics {
    fn default() -> Self {
        Self {
            objects: Family::default(),
            events: Family::default(),
            lists: Family::default(),
            failures: Family::default(),
            invalid_objects: Family::default(),
            short_watches: Family::default(),
            silences: Family::default(),
            probe_latency: Family::new_with_constructor(probe_seconds),
            staleness: Family::default(),
        }
    }
}

impl InformerMetrics {
    /// Adds the metrics to `registry`, which has the prefix `member`.
    pub fn register(&self, registry: &mut Registry) {
        registry.register("objects", "Objects in the store", self.objects.clone());
        registry.register(
            "events",
            "Objects received by lists and watches",
            self.events.clone(),
        );
        registry.register("lists", "Lists started", self.lists.clone());
        registry.register(
            "failures",
            "Lists and watches that failed",
            self.failures.clone(),
        );
        registry.register(
            "invalid_objects",
            "Objects that could not be read and were skipped",
            self.invalid_objects.clone(),
        );
        registry.register(
            "short_watches",
            "Watches that the server ended within seconds",
            self.short_watches.clone(),
        );
        registry.register(
            "silent_watches",
            "Watches that were silent for 90 s and were reopened",
            self.silences.clone(),
        );
        registry.register(
            "probe_duration_seconds",
            "Duration of GET /readyz, including failures and timeouts",
            self.probe_latency.clone(),
        );
        registry.register(
            "staleness_seconds",
            "Age of the view of the member while it is stale, else 0",
            self.staleness.clone(),
        );
    }

    /// Removes the series of a member cluster that left the federation.
    pub fn remove(&self, cluster: &str) {
        let workloads = LocalKind::ALL.map(LocalKind::resource);
        for resource in workloads.into_iter().chain([PODS]) {
            let label = WatchLabels {
                cluster: cluster.to_owned(),
                resource,
            };
            self.objects.remove(&label);
            for counters in [
                &self.events,
                &self.lists,
                &self.failures,
                &self.invalid_objects,
                &self.short_watches,
                &self.silences,
            ] {
                counters.remove(&label);
            }
        }
        let label = ClusterLabels {
            cluster: cluster.to_owned(),
        };
        self.probe_latency.remove(&label);
        self.staleness.remove(&label);
    }

    pub(crate) fn of_watch(&self, cluster: &str, resource: &'static str) -> WatchMetrics {
        let label = WatchLabels {
            cluster: cluster.to_owned(),
            resource,
        };
        WatchMetrics {
            objects: self.objects.get_or_create_owned(&label),
            events: self.events.get_or_create_owned(&label),
            lists: self.lists.get_or_create_owned(&label),
            failures: self.failures.get_or_create_owned(&label),
            invalid_objects: self.invalid_objects.get_or_create_owned(&label),
            short_watches: self.short_watches.get_or_create_owned(&label),
            silences: self.silences.get_or_create_owned(&label),
        }
    }

    pub(crate) fn of_cluster(&self, cluster: &str) -> ClusterMetrics {
        let label = ClusterLabels {
            cluster: cluster.to_owned(),
        };
        ClusterMetrics {
            probe_latency: self.probe_latency.get_or_create_owned(&label),
            staleness: self.staleness.get_or_create_owned(&label),
        }
    }
}

pub(crate) const PODS: &str = "pods";

/// The metrics of one watch.
#[derive(Clone, Debug)]
pub(crate) struct WatchMetrics {
    objects: Gauge,
    pub(crate) events: Counter,
    pub(crate) lists: Counter,
    pub(crate) failures: Counter,
    pub(crate) invalid_objects: Counter,
    pub(crate) short_watches: Counter,
    pub(crate) silences: Counter,
}

impl WatchMetrics {
    pub(crate) fn set_objects(&self, number: usize) {
        self.objects.set(number.try_into().unwrap_or(i64::MAX));
    }
}

/// The metrics of one member cluster.
#[derive(Clone, Debug)]
pub(crate) struct ClusterMetrics {
    pub(crate) probe_latency: Histogram,
    pub(crate) staleness: Gauge<f64, AtomicU64>,
}
