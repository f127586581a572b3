//! One member that takes part in the layout, as far as its target depends on it.

use federated_scheduler::{Cluster, Preference};

use super::capacity::CapacityEstimate;

/// What the scheduler gets in place of the user's preference for a drained cluster.
const DRAINED: Preference = Preference {
    min: 0,
    max: Some(0),
    weight: 0,
};

/// One member that is eligible, or whose state is not known.
#[derive(Clone, Debug)]
pub(super) struct Candidate<'a> {
    pub(super) name: &'a str,
    /// The user's preference; without any the cluster gets nothing (F3).
    pub(super) preference: Option<Preference>,
    /// Whether it gets no more replicas than it has: it is cordoned, or its state is not known (F39).
    pub(super) closed: bool,
    /// Whether all its replicas have to leave.
    pub(super) draining: bool,
    /// Replicas requested of the local ReplicaSet now.
    pub(super) requested: u64,
    /// Of these: without a node or a pod.
    pub(super) unscheduled: u64,
    /// Of these: capacity probes of the last check, on top of the layout.
    pub(super) probes: u64,
    pub(super) capacity: CapacityEstimate,
    /// Whether it has rejected the local ReplicaSet, or more replicas, for longer than `unscheduledTimeout`: it can take no more
    /// (F28).
    pub(super) rejecting: bool,
}

/// Which clusters keep replicas that no cluster can take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeepOrder {
    /// Clusters that the placement names, or covers by `*`.
    Selected,
    /// Clusters that the placement does not name.
    NotSelected,
    /// Drained clusters.
    Draining,
}

impl<'a> Candidate<'a> {
    /// Whether capacity is what may keep it below its share.
    pub(super) fn is_limited(&self) -> bool {
        self.rejecting || self.capacity.capacity.is_some()
    }

    /// The limit that remains if its capacity has none: a closed cluster keeps its replicas.
    pub(super) fn closed_limit(&self) -> Option<u64> {
        self.closed.then(|| self.current())
    }

    /// How many of the running replicas beyond the layout may stay while no other cluster can take them (F20): those that the
    /// user's maximum allows. A drained cluster is not bounded by the maximum of the drain.
    pub(super) fn running_beyond(&self, layout: u64, pending: u64) -> u64 {
        let running = self.requested.saturating_sub(self.unscheduled);
        let max = self.preference.and_then(|preference| preference.max);
        let allowed = max.unwrap_or(u64::MAX).saturating_sub(layout + pending);
        running.saturating_sub(layout).min(allowed)
    }

    /// The order in which clusters keep such replicas: the preferred ones first, the drained ones last.
    pub(super) fn keep_order(&self) -> KeepOrder {
        match self.preference {
            _ if self.draining => KeepOrder::Draining,
            Some(_) => KeepOrder::Selected,
            None => KeepOrder::NotSelected,
        }
    }

    /// The most replicas that may be pending here.
    pub(super) fn max(&self) -> u64 {
        let max = |preference: Preference| preference.max.unwrap_or(u64::MAX);
        self.effective_preference().map_or(0, max)
    }

    /// As the scheduler sees it, within its limit.
    pub(super) fn within_limit(&self) -> Cluster<'a> {
        let rejecting = self.rejecting.then(|| self.current());
        let limits = [self.capacity.capacity, rejecting, self.closed_limit()];
        self.with_replicas(self.current(), limits.into_iter().flatten().min())
    }

    /// As the scheduler sees it with `current` replicas and this `capacity`.
    pub(super) fn with_replicas(&self, current: u64, capacity: Option<u64>) -> Cluster<'a> {
        Cluster {
            name: self.name,
            preference: self.effective_preference(),
            current,
            capacity,
        }
    }

    fn effective_preference(&self) -> Option<Preference> {
        self.preference
            .map(|preference| if self.draining { DRAINED } else { preference })
    }

    /// Replicas that count as current (F13): no capacity probes, and none that turned out not to fit.
    fn current(&self) -> u64 {
        let capacity = self.capacity.capacity.unwrap_or(u64::MAX);
        self.requested_without_probes().min(capacity)
    }

    /// Requested replicas that are no capacity probes.
    pub(super) fn requested_without_probes(&self) -> u64 {
        self.requested.saturating_sub(self.probes)
    }
}
