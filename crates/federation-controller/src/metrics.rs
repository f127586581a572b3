//! The metrics of the controller (F38).

use availability::AvailabilityMetrics;
use std::{sync::Arc, time::Duration};

use check_queue::{DelayingQueueMetrics, WorkQueueMetrics};
use cluster_informer::InformerMetrics;
use controller_base::calls::CallError;
use maintenance::MaintenanceMetrics;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, histogram::Histogram},
    registry::Registry,
};
use tokio::time::Instant;

use crate::set_metrics::SetMetrics;

/// Buckets from 1 ms to 16 s, in seconds: calls to members.
const CALL_BUCKETS: [f64; 8] = [0.001, 0.004, 0.016, 0.064, 0.25, 1.0, 4.0, 16.0];
/// Buckets from 1 µs to 65 ms, in seconds: parts of a check.
const PART_BUCKETS: [f64; 9] = [
    1e-6, 4e-6, 1.6e-5, 6.4e-5, 2.56e-4, 1e-3, 4e-3, 1.6e-2, 6.4e-2,
];

/// The calls that are measured.
const VERBS: [&str; 18] = [
    "get",
    "get replicaset",
    "create",
    "scale",
    "overwrite",
    "roll",
    "shrink",
    "pause",
    "lend",
    "fence",
    "compare template",
    "release",
    "delete",
    "create namespace",
    "list pods",
    "patch pod",
    "list replicasets",
    "patch replicaset",
];
/// Their results, apart from HTTP statuses.
const OK: &str = "ok";
const DEADLINE: &str = "deadline";
const CONNECTION: &str = "connection";
/// HTTP statuses with a label of their own.
const STATUSES: [(u16, &str); 13] = [
    (400, "400"),
    (401, "401"),
    (403, "403"),
    (404, "404"),
    (409, "409"),
    (410, "410"),
    (413, "413"),
    (422, "422"),
    (429, "429"),
    (500, "500"),
    (502, "502"),
    (503, "503"),
    (504, "504"),
];
/// All others: a member may send any number.
const OTHER_STATUS: &str = "other";

/// One call to a member. All values but the names of members are of closed sets.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct CallLabels {
    cluster: String,
    verb: &'static str,
    /// `ok`, the HTTP status, `deadline` or `connection`.
    result: &'static str,
}

/// One part of the work on a set.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct PartLabels {
    part: &'static str,
}

/// The controller's metrics.
#[derive(Clone, Debug)]
pub struct Metrics {
    /// Latency of calls to members (F38).
    pub calls: Family<CallLabels, Histogram>,
    /// Time spent in the parts of a check: snapshot, check, carry out, publish (F38).
    pub parts: Family<PartLabels, Histogram>,
    /// Events that were dropped because too many waited.
    pub events_dropped: Counter,
    /// Writes of FederatedReplicaSets on the host that failed.
    pub host_write_failures: Counter,
    /// The sets that are known.
    pub(crate) sets: SetMetrics,
    /// Local ReplicaSets left behind by deletions that could not wait for a member (F5).
    pub left_behind: Counter,
    /// `FRS_TO_CHECK`.
    pub checks: DelayingQueueMetrics,
    /// Statuses to publish.
    pub statuses: DelayingQueueMetrics,
    /// The work queue.
    pub work: WorkQueueMetrics,
    /// The members' informers.
    pub informers: InformerMetrics,
    /// Maintenances.
    pub maintenances: MaintenanceMetrics,
    /// AvailabilitySets.
    pub availability: AvailabilityMetrics,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            calls: Family::new_with_constructor(|| Histogram::new(CALL_BUCKETS)),
            parts: Family::new_with_constructor(|| Histogram::new(PART_BUCKETS)),
            events_dropped: Counter::default(),
            host_write_failures: Counter::default(),
            sets: SetMetrics::default(),
            left_behind: Counter::default(),
            checks: DelayingQueueMetrics::default(),
            statuses: DelayingQueueMetrics::default(),
            work: WorkQueueMetrics::default(),
            informers: InformerMetrics::default(),
            maintenances: MaintenanceMetrics::default(),
            availability: AvailabilityMetrics::default(),
        }
    }
}

impl Metrics {
    /// New metrics, registered with `registry`.
    pub fn register(registry: &mut Registry) -> Arc<Self> {
        let metrics = Self::default();
        let shown = metrics.clone();
        registry.register(
            "member_call_seconds",
            "Latency of calls to members",
            shown.calls,
        );
        registry.register(
            "check_part_seconds",
            "Time spent in the parts of a check",
            shown.parts,
        );
        registry.register(
            "events_dropped",
            "Events dropped because the queue was full",
            shown.events_dropped,
        );
        registry.register(
            "host_write_failures",
            "Failed writes of FederatedReplicaSets on the host",
            shown.host_write_failures,
        );
        registry.register_collector(Box::new(shown.sets));
        registry.register(
            "left_behind",
            "Local ReplicaSets left behind by deletions",
            shown.left_behind,
        );
        shown
            .checks
            .register(registry.sub_registry_with_prefix("check_queue"));
        shown
            .statuses
            .register(registry.sub_registry_with_prefix("status_queue"));
        shown
            .work
            .register(registry.sub_registry_with_prefix("workqueue"));
        shown
            .informers
            .register(registry.sub_registry_with_prefix("member"));
        shown.maintenances.register(registry);
        shown.availability.register(registry);
        Arc::new(metrics)
    }

    pub(crate) fn called(
        &self,
        cluster: &str,
        verb: &'static str,
        error: Option<&CallError>,
        took: Duration,
    ) {
        debug_assert!(
            VERBS.contains(&verb),
            "{verb} is not removed with its member"
        );
        let result = match error {
            None => OK,
            Some(CallError::Deadline(_)) => DEADLINE,
            Some(error) => error.code().map_or(CONNECTION, status_label),
        };
        let labels = CallLabels {
            cluster: cluster.to_owned(),
            verb,
            result,
        };
        self.calls
            .get_or_create(&labels)
            .observe(took.as_secs_f64());
    }

    /// Removes the series of a member that left the federation.
    pub(crate) fn remove_member(&self, cluster: &str) {
        self.informers.remove(cluster);
        let statuses = STATUSES.map(|(_, label)| label);
        for result in [OK, DEADLINE, CONNECTION, OTHER_STATUS]
            .iter()
            .chain(&statuses)
        {
            for verb in VERBS {
                self.calls.remove(&CallLabels {
                    cluster: cluster.to_owned(),
                    verb,
                    result,
                });
            }
        }
    }

    /// Measures `work` as `part` of a check.
    pub(crate) fn time<T>(&self, part: &'static str, work: impl FnOnce() -> T) -> T {
        let started = Instant::now();
        let answer = work();
        self.spent(part, started);
        answer
    }

    /// Measures a `part` of a check that began at `started`.
    pub(crate) fn spent(&self, part: &'static str, started: Instant) {
        let labels = PartLabels { part };
        self.parts
            .get_or_create(&labels)
            .observe(started.elapsed().as_secs_f64());
    }
}

fn status_label(code: u16) -> &'static str {
    let known = STATUSES.iter().find(|(status, _)| *status == code);
    known.map_or(OTHER_STATUS, |(_, label)| label)
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    #[test]
    fn s6_results_are_of_a_closed_set_and_the_series_of_a_member_go_with_it() {
        let mut registry = Registry::default();
        let metrics = Metrics::register(&mut registry);
        let shown = || {
            let mut text = String::new();
            prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
            text
        };
        let rejected = |code| {
            let status = Status::failure("no", "No").with_code(code);
            CallError::Api(kube::Error::Api(status.boxed()))
        };
        let call = |cluster: &str, verb, error: Option<&CallError>| {
            metrics.called(cluster, verb, error, Duration::from_millis(1));
        };
        for code in 0..=u16::MAX {
            call("eu", "scale", Some(&rejected(code)));
        }
        for cluster in ["eu", "us"] {
            for verb in VERBS {
                call(cluster, verb, None);
                call(cluster, verb, Some(&CallError::Deadline(Duration::ZERO)));
            }
        }
        let counts = |text: &str, cluster: &str| {
            let label = format!("member_call_seconds_count{{cluster=\"{cluster}\"");
            text.lines().filter(|line| line.starts_with(&label)).count()
        };
        let statuses = STATUSES.len() + 1;
        assert_eq!(counts(&shown(), "eu"), 2 * VERBS.len() + statuses);
        metrics.remove_member("eu");
        let text = shown();
        assert!(!text.contains("\"eu\""), "{text}");
        assert_eq!(counts(&text, "us"), 2 * VERBS.len());
    }
}
