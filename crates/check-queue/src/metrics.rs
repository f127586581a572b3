//! The metrics of the two queues. Times are seconds of tokio's clock, which tests can pause.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use parking_lot::Mutex;
use prometheus_client::{
    encoding::{EncodeMetric, MetricEncoder},
    metrics::{
        MetricType, TypedMetric, counter::Counter, gauge::Gauge, histogram::Histogram,
        histogram::exponential_buckets,
    },
    registry::Registry,
};
use tokio::time::Instant;

/// Buckets from 1 ms to about 4 minutes: a due key moves at once, and a slow member delays its worker.
fn seconds() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 4.0, 10))
}

/// Metrics of [`DelayingQueue`](crate::DelayingQueue). Cheap to clone; clones share their values.
#[derive(Clone, Debug)]
pub struct DelayingQueueMetrics {
    /// Keys in the queue.
    pub depth: Gauge,
    /// Age of the oldest key in the queue.
    pub oldest_age: OldestAge,
    /// Additions, merged ones included.
    pub adds: Counter,
    /// Additions of a key that is already queued (F24).
    pub merged: Counter,
    /// Seconds from the time at which a key is due until it leaves the queue.
    pub latency: Histogram,
}

impl Default for DelayingQueueMetrics {
    fn default() -> Self {
        Self {
            depth: Gauge::default(),
            oldest_age: OldestAge::default(),
            adds: Counter::default(),
            merged: Counter::default(),
            latency: seconds(),
        }
    }
}

impl DelayingQueueMetrics {
    /// Registers the metrics with `registry`, whose prefix is the name of the queue.
    pub fn register(&self, registry: &mut Registry) {
        registry.register("depth", "Keys in the queue", self.depth.clone());
        registry.register(
            "oldest_age_seconds",
            "Age of the oldest key in the queue",
            self.oldest_age.clone(),
        );
        registry.register("adds", "Additions, merged ones included", self.adds.clone());
        registry.register(
            "merged",
            "Additions of keys that are already queued",
            self.merged.clone(),
        );
        registry.register(
            "latency_seconds",
            "Time from when a key is due until it leaves the queue",
            self.latency.clone(),
        );
    }
}

/// Metrics of [`WorkQueue`](crate::WorkQueue). Cheap to clone; clones share their values.
#[derive(Clone, Debug)]
pub struct WorkQueueMetrics {
    /// Dirty keys: those in the queue, and those added again while a worker processes them.
    pub depth: Gauge,
    /// Age of the oldest dirty key.
    pub oldest_age: OldestAge,
    /// Additions, merged ones included.
    pub adds: Counter,
    /// Seconds from the addition of a key until a worker gets it.
    pub queue_duration: Histogram,
    /// Seconds that a worker processes a key.
    pub work_duration: Histogram,
    /// How long the longest running worker has processed its key: a worker that hangs never appears in `work_duration`.
    pub longest_running: OldestAge,
}

impl Default for WorkQueueMetrics {
    fn default() -> Self {
        Self {
            depth: Gauge::default(),
            oldest_age: OldestAge::default(),
            adds: Counter::default(),
            queue_duration: seconds(),
            work_duration: seconds(),
            longest_running: OldestAge::default(),
        }
    }
}

impl WorkQueueMetrics {
    /// Registers the metrics with `registry`, whose prefix is the name of the queue.
    pub fn register(&self, registry: &mut Registry) {
        registry.register("depth", "Keys to be processed", self.depth.clone());
        registry.register(
            "oldest_age_seconds",
            "Age of the oldest key to be processed",
            self.oldest_age.clone(),
        );
        registry.register("adds", "Additions, merged ones included", self.adds.clone());
        registry.register(
            "queue_duration_seconds",
            "Time from the addition of a key until a worker gets it",
            self.queue_duration.clone(),
        );
        registry.register(
            "work_duration_seconds",
            "Time that a worker processes a key",
            self.work_duration.clone(),
        );
        registry.register(
            "longest_running_processor_seconds",
            "How long the longest running worker has processed its key",
            self.longest_running.clone(),
        );
    }
}

/// A gauge of the time since the oldest of several points in time. It is computed when it is read, so that a queue in which
/// nothing moves still ages.
#[derive(Clone, Default)]
pub struct OldestAge {
    starts: Arc<Mutex<BTreeMap<Instant, usize>>>,
}

impl OldestAge {
    pub(crate) fn insert(&self, start: Instant) {
        *self.starts.lock().entry(start).or_default() += 1;
    }

    pub(crate) fn remove(&self, start: Instant) {
        let mut starts = self.starts.lock();
        if let Some(count) = starts.get_mut(&start) {
            *count -= 1;
            if *count == 0 {
                starts.remove(&start);
            }
        }
    }

    /// Time since the oldest point; zero if there is none.
    pub fn get(&self) -> Duration {
        self.starts
            .lock()
            .first_key_value()
            .map_or(Duration::ZERO, |(start, _)| start.elapsed())
    }
}

impl fmt::Debug for OldestAge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OldestAge").field(&self.get()).finish()
    }
}

impl TypedMetric for OldestAge {
    const TYPE: MetricType = MetricType::Gauge;
}

impl EncodeMetric for OldestAge {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), fmt::Error> {
        encoder.encode_gauge(&self.get().as_secs_f64())
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f38_all_metrics_with_their_help() {
        let mut registry = Registry::default();
        DelayingQueueMetrics::default()
            .register(registry.sub_registry_with_prefix("delaying_queue"));
        WorkQueueMetrics::default().register(registry.sub_registry_with_prefix("workqueue"));
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).expect("metrics are text");
        let lines: Vec<_> = text
            .lines()
            .filter(|line| line.starts_with("# HELP"))
            .collect();
        insta::assert_snapshot!(lines.join("\n"));
    }
}
