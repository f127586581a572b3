//! How many replicas of a local ReplicaSet a cluster schedules (F32, F34).

use std::time::Duration;

use cluster_informer::WorkloadView;
use jiff::Timestamp;
use planted_bugs::{PlantedBug, is_planted};

use super::time::{after, after_limit};
use crate::config::Config;

/// A new pod has no node until the scheduler has looked at it: before, it shows nothing, whatever the configuration says.
const SCHEDULING_TIME: Duration = Duration::from_secs(1);
/// Working controllers need moments to act on a new spec: before, nothing is missing.
const ACTING_TIME: Duration = Duration::from_secs(10);
/// The message about pods that are missing without a message of the member.
const NOT_ACTING: &str = "the cluster's controllers do not act";

/// How many replicas of one local ReplicaSet have a node at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Scheduling<'a> {
    /// `spec.replicas` of the local ReplicaSet.
    pub(super) requested: u64,
    /// Of these: have a pod with a node.
    pub(super) scheduled: u64,
    /// Of these: have no node, or no pod, for any time.
    pub(super) unscheduled: u64,
    /// Of the unscheduled: have no pod, because the cluster can't create it (F32).
    pub(super) not_created: u64,
    /// Of the unscheduled: for longer than `unscheduledTimeout` (F34).
    pub(super) failed: u64,
    /// When the next of the unscheduled will have been so for that long.
    pub(super) next_failure: Option<Timestamp>,
    /// Since when the member's controllers have not acted on the set, if that is longer than the timeout: pods that they did
    /// not create count as pods that the cluster can't create.
    pub(super) not_acting_since: Option<Timestamp>,
    /// Since when they have not acted, if that is longer than they usually take.
    pub(super) behind_since: Option<Timestamp>,
    /// The same for half of the timeout or longer: a new leader has to know it. Before, it would cost two writes of the host
    /// each time that a busy member takes a little longer, as for each pod of a rollout (F38).
    pub(super) recorded_since: Option<Timestamp>,
    /// When one of these three will be set, unless they act before.
    pub(super) counts_from: Option<Timestamp>,
    /// Whether `not_acting_since` only waits for the watch of the workloads to show that it works.
    pub(super) is_unconfirmed: bool,
    /// Whether the scheduler has reported a pod as unschedulable.
    pub(super) is_reported: bool,
    /// The member's message about the unscheduled.
    pub(super) message: Option<&'a str>,
}

impl<'a> Scheduling<'a> {
    /// Reads `view` at `now`. Earlier leaders recorded that the controllers have not acted since `behind_since`.
    pub(super) fn of(
        view: &'a WorkloadView,
        behind_since: Option<Timestamp>,
        now: Timestamp,
        settings: &Config,
    ) -> Self {
        let Some(set) = &view.workload else {
            return Self::default();
        };
        let requested = u64::from(set.replicas);
        let mut scheduling = Self {
            requested,
            is_reported: view.pods.unscheduled_message.is_some(),
            message: view.pods.unscheduled_message.as_deref(),
            ..Self::default()
        };
        // Either of the two watches may be ahead: a pod that has ended according to one of them does not count. Only the status
        // counts those without our labels.
        let both = set.status_replicas.max(view.pods.active);
        let (present, listed) = if view.has_unlabeled_pods() {
            (set.status_replicas, both)
        } else {
            (set.status_replicas.min(view.pods.active), view.pods.active)
        };
        // Pods beyond the requested ones are about to go, those without a node first: they show nothing.
        let surplus = if is_planted(PlantedBug::CapacityFromLeavingPods) {
            0
        } else {
            listed.saturating_sub(set.replicas)
        };
        let mut leaving = surplus;
        for &(since, count) in &view.pods.unscheduled_since {
            let left = count.saturating_sub(leaving);
            leaving -= count - left;
            let timeout = settings.unscheduled_timeout;
            let timeout = timeout.map(|timeout| timeout.max(SCHEDULING_TIME));
            scheduling.add_unscheduled(u64::from(left), after_limit(since, timeout), now);
        }
        // F32: only the member's controller knows what it could not create, and only once it has seen our last write.
        if let Some(failure) = &set.replica_failure
            && set.observed_generation >= set.generation
        {
            // A pod that has ended according to the status, and is listed without a node, is not missing twice.
            let not_created = u64::from(set.replicas.saturating_sub(both));
            if not_created > 0 {
                let since = failure.since.unwrap_or(now);
                let due = after_limit(since, settings.unscheduled_timeout);
                scheduling.add_unscheduled(not_created, due, now);
                scheduling.not_created = not_created;
                scheduling.message = Some(&failure.message);
            }
        } else if let Some(since) = set.behind_since {
            // Controllers that do not run report no failure.
            let since = behind_since.map_or(since, |earlier| earlier.min(since));
            // The status may be of before the pods left the set.
            let missing = u64::from(set.replicas.saturating_sub(listed));
            scheduling.add_behind(since, missing, view.current_at, (now, settings));
        }
        scheduling.unscheduled = scheduling.unscheduled.min(requested);
        scheduling.failed = scheduling.failed.min(requested);
        let without_node = view.pods.unscheduled.saturating_sub(surplus);
        let remaining = present.saturating_sub(without_node);
        // Both may be behind our last write: what is about to go has no node either.
        let with_node = remaining.min(listed.saturating_sub(view.pods.unscheduled));
        scheduling.scheduled = u64::from(with_node).min(requested);
        scheduling
    }

    /// Notes that the member's controllers have not acted since `since`. Once that is longer than the timeout, the `missing` pods
    /// count as unscheduled. The watch of the workloads has shown everything up to `current_at`.
    fn add_behind(
        &mut self,
        since: Timestamp,
        missing: u64,
        current_at: Option<Timestamp>,
        (now, settings): (Timestamp, &Config),
    ) {
        let timeout = settings.unscheduled_timeout;
        let is_late = after(since, ACTING_TIME);
        let record_from = timeout.map(|timeout| (timeout / 2).max(ACTING_TIME));
        let record_from = after_limit(since, record_from);
        let due = after_limit(since, timeout.map(|timeout| timeout.max(ACTING_TIME)));
        let is_over = |time: Option<Timestamp>| time.is_some_and(|time| time <= now);
        self.behind_since = (is_late <= now).then_some(since);
        self.recorded_since = is_over(record_from).then_some(since);
        // Of a watch that is silent nothing is known: only what follows shows that nothing came before.
        self.is_unconfirmed = is_over(due) && current_at < due;
        if is_over(due) && !self.is_unconfirmed {
            self.not_acting_since = Some(since);
            self.not_created = missing;
            self.add_unscheduled(missing, due, now);
            self.message = self.message.or(Some(NOT_ACTING));
        } else {
            let times = due.into_iter().chain(record_from).chain([is_late]);
            self.counts_from = times.filter(|time| *time > now).min();
        }
    }

    /// Replicas that have been unscheduled for longer than the timeout, if all that are unscheduled have; else 0.
    pub(super) fn failed_if_all(&self) -> u64 {
        if self.failed < self.unscheduled {
            0
        } else {
            self.failed
        }
    }

    /// Pods without a node: pending ones, and unschedulable ones, which have had none for longer than the timeout or which the
    /// scheduler has reported as unschedulable.
    pub(super) fn without_node(&self) -> (u64, u64) {
        let pods = self.unscheduled.saturating_sub(self.not_created);
        let unschedulable = if self.is_reported {
            pods
        } else {
            self.failed.min(pods)
        };
        (pods - unschedulable, unschedulable)
    }

    fn add_unscheduled(&mut self, count: u64, due: Option<Timestamp>, now: Timestamp) {
        self.unscheduled += count;
        match due {
            Some(due) if due <= now => self.failed += count,
            due => self.next_failure = self.next_failure.into_iter().chain(due).min(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f39_replicas_may_start_unless_all_without_a_node_have_failed() {
        for (failed, unscheduled, expected) in [(2, 20, 0), (20, 20, 20), (0, 0, 0)] {
            let scheduling = Scheduling {
                unscheduled,
                failed,
                ..Scheduling::default()
            };
            assert_eq!(scheduling.failed_if_all(), expected, "{failed}");
        }
    }
}
