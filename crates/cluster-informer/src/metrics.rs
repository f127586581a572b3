//! What the informers tell of themselves, by member.

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

/// The member cluster.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct MemberLabel {
    /// Its name.
    pub(crate) cluster: String,
}

/// The member cluster and the kind of its objects.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct FeedLabel {
    /// The member's name.
    pub(crate) cluster: String,
    /// `replicasets` or `pods`.
    pub(crate) resource: &'static str,
}

/// From 1 ms to about 16 s: beyond the probe's deadline.
fn probe_seconds() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 4.0, 8))
}

/// Metrics of all members' informers. Cheap to clone; clones count into the same numbers.
#[derive(Clone, Debug)]
pub struct InformerMetrics {
    objects: Family<FeedLabel, Gauge>,
    events: Family<FeedLabel, Counter>,
    lists: Family<FeedLabel, Counter>,
    failures: Family<FeedLabel, Counter>,
    malformed: Family<FeedLabel, Counter>,
    short_watches: Family<FeedLabel, Counter>,
    probe_latency: Family<MemberLabel, Histogram, fn() -> Histogram>,
    staleness: Family<MemberLabel, Gauge<f64, AtomicU64>>,
}

impl Default for InformerMetrics {
    fn default() -> Self {
        Self {
            objects: Family::default(),
            events: Family::default(),
            lists: Family::default(),
            failures: Family::default(),
            malformed: Family::default(),
            short_watches: Family::default(),
            probe_latency: Family::new_with_constructor(probe_seconds),
            staleness: Family::default(),
        }
    }
}

impl InformerMetrics {
    /// Adds the metrics to `registry`, which has the prefix of members.
    pub fn register(&self, registry: &mut Registry) {
        registry.register("objects", "Objects tracked", self.objects.clone());
        registry.register(
            "events",
            "Objects shown by lists and watches",
            self.events.clone(),
        );
        registry.register("lists", "Lists begun", self.lists.clone());
        registry.register(
            "failures",
            "Lists and watches that failed",
            self.failures.clone(),
        );
        registry.register(
            "malformed",
            "Objects that could not be read",
            self.malformed.clone(),
        );
        registry.register(
            "short_watches",
            "Watches that the server ended at once",
            self.short_watches.clone(),
        );
        registry.register(
            "probe_duration_seconds",
            "Time until /readyz answered or was given up",
            self.probe_latency.clone(),
        );
        registry.register(
            "staleness_seconds",
            "How old the view of the member is, while it is stale",
            self.staleness.clone(),
        );
    }

    /// Forgets a member that is gone for good.
    pub fn forget(&self, member: &str) {
        for resource in [SETS, PODS] {
            let label = FeedLabel {
                cluster: member.to_owned(),
                resource,
            };
            self.objects.remove(&label);
            for counters in [
                &self.events,
                &self.lists,
                &self.failures,
                &self.malformed,
                &self.short_watches,
            ] {
                counters.remove(&label);
            }
        }
        let label = MemberLabel {
            cluster: member.to_owned(),
        };
        self.probe_latency.remove(&label);
        self.staleness.remove(&label);
    }

    pub(crate) fn of_feed(&self, member: &str, resource: &'static str) -> FeedMetrics {
        let label = FeedLabel {
            cluster: member.to_owned(),
            resource,
        };
        FeedMetrics {
            objects: self.objects.get_or_create_owned(&label),
            events: self.events.get_or_create_owned(&label),
            lists: self.lists.get_or_create_owned(&label),
            failures: self.failures.get_or_create_owned(&label),
            malformed: self.malformed.get_or_create_owned(&label),
            short_watches: self.short_watches.get_or_create_owned(&label),
        }
    }

    pub(crate) fn of_member(&self, member: &str) -> MemberMetrics {
        let label = MemberLabel {
            cluster: member.to_owned(),
        };
        MemberMetrics {
            probe_latency: self.probe_latency.get_or_create_owned(&label),
            staleness: self.staleness.get_or_create_owned(&label),
        }
    }
}

pub(crate) const SETS: &str = "replicasets";
pub(crate) const PODS: &str = "pods";

/// One member's share of one resource.
#[derive(Clone, Debug)]
pub(crate) struct FeedMetrics {
    pub(crate) objects: Gauge,
    pub(crate) events: Counter,
    pub(crate) lists: Counter,
    pub(crate) failures: Counter,
    pub(crate) malformed: Counter,
    pub(crate) short_watches: Counter,
}

/// One member's share.
#[derive(Clone, Debug)]
pub(crate) struct MemberMetrics {
    pub(crate) probe_latency: Histogram,
    pub(crate) staleness: Gauge<f64, AtomicU64>,
}
