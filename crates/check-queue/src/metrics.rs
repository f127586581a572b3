//! What the two queues tell of themselves. Times in seconds of tokio's clock, so that paused time counts as time.

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

/// From 1 ms to about 4 minutes: a key that is due moves at once, a worker may be held up by a slow member.
fn seconds() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 4.0, 10))
}

/// Metrics of [`CheckQueue`](crate::CheckQueue). Cheap to clone; clones count into the same numbers.
#[derive(Clone, Debug)]
pub struct CheckQueueMetrics {
    /// Keys that are waiting for their time.
    pub depth: Gauge,
    /// Since when keys have been waiting; the oldest is exported.
    pub ages: Ages,
    /// Additions, those that were merged with a queued key included.
    pub adds: Counter,
    /// Additions of a key that was queued already (F24).
    pub merged: Counter,
    /// Seconds from a key's due time until it moved to the work queue.
    pub latency: Histogram,
}

impl Default for CheckQueueMetrics {
    fn default() -> Self {
        Self {
            depth: Gauge::default(),
            ages: Ages::default(),
            adds: Counter::default(),
            merged: Counter::default(),
            latency: seconds(),
        }
    }
}

impl CheckQueueMetrics {
    /// Adds the metrics to `registry`, which has the queue's name as its prefix.
    pub fn register(&self, registry: &mut Registry) {
        registry.register("depth", "Keys waiting for their delay", self.depth.clone());
        registry.register(
            "oldest_age_seconds",
            "How long the oldest key has been waiting",
            self.ages.clone(),
        );
        registry.register(
            "adds",
            "Keys added, merged ones included",
            self.adds.clone(),
        );
        registry.register(
            "merged",
            "Keys added while queued already",
            self.merged.clone(),
        );
        registry.register(
            "latency_seconds",
            "From the due time to the work queue",
            self.latency.clone(),
        );
    }
}

/// Metrics of [`WorkQueue`](crate::WorkQueue). Cheap to clone; clones count into the same numbers.
#[derive(Clone, Debug)]
pub struct WorkQueueMetrics {
    /// Keys that wait for a worker, those that are worked on and became dirty meanwhile included.
    pub depth: Gauge,
    /// Since when keys have been waiting for a worker; the oldest is exported.
    pub ages: Ages,
    /// Additions, those that were merged with a waiting key included.
    pub adds: Counter,
    /// Seconds from the addition of a key until a worker takes it.
    pub latency: Histogram,
    /// Seconds a worker spends on a key.
    pub work_duration: Histogram,
    /// Since when keys are worked on; the oldest is exported, for a worker that hangs never ends.
    pub running: Ages,
}

impl Default for WorkQueueMetrics {
    fn default() -> Self {
        Self {
            depth: Gauge::default(),
            ages: Ages::default(),
            adds: Counter::default(),
            latency: seconds(),
            work_duration: seconds(),
            running: Ages::default(),
        }
    }
}

impl WorkQueueMetrics {
    /// Adds the metrics to `registry`, which has the queue's name as its prefix.
    pub fn register(&self, registry: &mut Registry) {
        registry.register("depth", "Keys waiting for a worker", self.depth.clone());
        registry.register(
            "oldest_age_seconds",
            "How long the oldest key has been waiting for a worker",
            self.ages.clone(),
        );
        registry.register(
            "adds",
            "Keys added, merged ones included",
            self.adds.clone(),
        );
        registry.register(
            "latency_seconds",
            "From the addition of a key to its worker",
            self.latency.clone(),
        );
        registry.register(
            "duration_seconds",
            "Time a worker spends on a key",
            self.work_duration.clone(),
        );
        registry.register(
            "longest_running_seconds",
            "How long the oldest unfinished work has been running",
            self.running.clone(),
        );
    }
}

/// Points in time of which the oldest is exported as an age, computed when it is asked for: a queue in which
/// nothing moves any more still grows older.
#[derive(Clone, Default)]
pub struct Ages {
    starts: Arc<Mutex<BTreeMap<Instant, usize>>>,
}

impl Ages {
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

    /// Time since the oldest point, zero if there is none.
    pub fn oldest(&self) -> Duration {
        self.starts
            .lock()
            .first_key_value()
            .map_or(Duration::ZERO, |(start, _)| start.elapsed())
    }
}

impl fmt::Debug for Ages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Ages").field(&self.oldest()).finish()
    }
}

impl TypedMetric for Ages {
    const TYPE: MetricType = MetricType::Gauge;
}

impl EncodeMetric for Ages {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), fmt::Error> {
        encoder.encode_gauge(&self.oldest().as_secs_f64())
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}
