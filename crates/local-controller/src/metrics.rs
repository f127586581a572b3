//! The metrics of the controller.

use check_queue::{DelayingQueueMetrics, WorkQueueMetrics};
use fedrs_api::{MigrationPhase, MigrationRequestStatus, MigrationWaitReason};
use jiff::Timestamp;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};

use crate::notify::NotificationMetrics;

/// A phase of migrations.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct OfPhase {
    phase: &'static str,
}

/// What holds up migrations.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct OfReason {
    reason: &'static str,
}

/// Minutes to a week, in seconds.
const DURATIONS: [f64; 8] = [
    60.0, 300.0, 1_800.0, 7_200.0, 28_800.0, 86_400.0, 259_200.0, 604_800.0,
];

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
    /// MigrationRequests that have not ended, by phase.
    pub migrations: Family<OfPhase, Gauge>,
    /// Those of them whose deadline has passed.
    pub overdue_migrations: Gauge,
    /// MigrationRequests that have ended, by phase.
    pub ended_migrations: Family<OfPhase, Counter>,
    /// How long those took.
    pub migration_seconds: Durations,
    /// Notifications of migrations.
    pub notifications: NotificationMetrics,
    /// MigrationRequests that have not begun, by what holds them up.
    pub waiting_migrations: Family<OfReason, Gauge>,
    /// Pods of ReplicaSets that get a MigrationRequest because of the marks of their nodes, and have none yet.
    pub unrequested_pods: Gauge,
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
            "local_migrations",
            "MigrationRequests that have not ended, by phase",
            shown.migrations,
        );
        registry.register(
            "local_overdue_migrations",
            "MigrationRequests that have not ended, and whose deadline has passed",
            shown.overdue_migrations,
        );
        registry.register(
            "local_ended_migrations",
            "MigrationRequests that have ended, by phase",
            shown.ended_migrations,
        );
        registry.register(
            "local_migration_seconds",
            "Seconds from the request of a migration to its end, without those that were cancelled",
            shown.migration_seconds.0,
        );
        registry.register(
            "local_waiting_migrations",
            "MigrationRequests that have not begun, by what holds them up",
            shown.waiting_migrations,
        );
        registry.register(
            "local_unrequested_pods",
            "Pods of ReplicaSets whose nodes ask them to leave, and that have no MigrationRequest yet",
            shown.unrequested_pods,
        );
        shown.notifications.register(registry);
        registry.register(
            "local_events_dropped",
            "Events dropped because the queue was full",
            shown.events_dropped,
        );
        (shown.delayed).register(registry.sub_registry_with_prefix("local_delayed"));
        (shown.work).register(registry.sub_registry_with_prefix("local_workqueue"));
        metrics
    }

    /// The statuses of all MigrationRequests.
    pub(crate) fn show_migrations<'a>(
        &self,
        statuses: impl Iterator<Item = &'a MigrationRequestStatus>,
        now: Timestamp,
    ) {
        let phases = MigrationPhase::ALL.iter().filter(|phase| !phase.is_end());
        let mut counts: Vec<_> = phases.map(|phase| (*phase, 0)).collect();
        let reasons = MigrationWaitReason::ALL.iter();
        let mut waiting: Vec<_> = reasons.map(|reason| (*reason, 0)).collect();
        let mut overdue = 0;
        for status in statuses {
            let phase = status.phase.unwrap_or(MigrationPhase::Requested);
            let Some((_, count)) = counts.iter_mut().find(|(of, _)| *of == phase) else {
                continue;
            };
            *count += 1;
            let reason = MigrationWaitReason::parse(&status.reason);
            if let Some((_, count)) = waiting.iter_mut().find(|(of, _)| Some(*of) == reason) {
                *count += 1;
            }
            let deadline = status.deadline.as_ref();
            overdue += i64::from(deadline.is_some_and(|deadline| deadline.0 <= now));
        }
        for (phase, count) in counts {
            self.migrations.get_or_create(&phase.into()).set(count);
        }
        for (reason, count) in waiting {
            let of_reason = self.waiting_migrations.get_or_create(&reason.into());
            of_reason.set(count);
        }
        self.overdue_migrations.set(overdue);
    }

    /// This status of a MigrationRequest was written.
    pub(crate) fn wrote_migration(&self, status: &MigrationRequestStatus) {
        let (Some(phase), Some(ended)) = (status.phase, status.ended()) else {
            return;
        };
        self.ended_migrations.get_or_create(&phase.into()).inc();
        let first = status
            .history
            .first()
            .filter(|_| phase != MigrationPhase::Cancelled);
        if let Some(first) = first {
            let seconds = ended.duration_since(first.at.0).as_secs_f64();
            self.migration_seconds.0.observe(seconds);
        }
    }

    /// All sets, those with an invalid spec, and all pods.
    pub(crate) fn show(&self, (sets, invalid, pods): (usize, usize, usize)) {
        let gauge = |count| i64::try_from(count).unwrap_or(i64::MAX);
        self.sets.set(gauge(sets));
        self.invalid_sets.set(gauge(invalid));
        self.pods.set(gauge(pods));
    }
}

impl From<MigrationWaitReason> for OfReason {
    fn from(reason: MigrationWaitReason) -> Self {
        let reason = reason.as_str();
        Self { reason }
    }
}

impl From<MigrationPhase> for OfPhase {
    fn from(phase: MigrationPhase) -> Self {
        let phase = phase.as_str();
        Self { phase }
    }
}

/// How long migrations take.
#[derive(Clone, Debug)]
pub struct Durations(Histogram);

impl Default for Durations {
    fn default() -> Self {
        Self(Histogram::new(DURATIONS))
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use prometheus_client::encoding::text::encode;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    fn status(phase: MigrationPhase, at_second: i64, deadline: i64) -> MigrationRequestStatus {
        let mut status = MigrationRequestStatus {
            deadline: Some(Time(at(deadline))),
            ..MigrationRequestStatus::default()
        };
        status.reach(MigrationPhase::Requested, at(0));
        status.reach(phase, at(at_second));
        status
    }

    #[test]
    fn m15_migrations_are_counted_by_phase_and_by_whether_they_are_late() {
        let mut registry = Registry::default();
        let metrics = LocalMetrics::register(&mut registry);
        let statuses = [
            status(MigrationPhase::WaitingForBudget, 5, 100),
            status(MigrationPhase::HandsUp, 5, 10),
            status(MigrationPhase::Done, 90, 10),
        ];
        metrics.show_migrations(statuses.iter(), at(50));
        for written in &statuses {
            metrics.wrote_migration(written);
        }
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        for line in [
            "local_migrations{phase=\"WaitingForBudget\"} 1",
            "local_migrations{phase=\"HandsUp\"} 1",
            "local_migrations{phase=\"Placing\"} 0",
            "local_overdue_migrations 1",
            "local_ended_migrations_total{phase=\"Done\"} 1",
            "local_migration_seconds_sum 90.0",
        ] {
            assert!(text.lines().any(|of| of == line), "{line}: {text}");
        }
        assert!(!text.contains("phase=\"Forced\""), "{text}");
    }
}
