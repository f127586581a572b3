//! The state of a set at one moment, and whether the number of ready replicas ever dipped. Plain data, no IO.

use std::time::Duration;

use derive_more::Display;

/// A set at one moment: what the host reports, and what actually runs in the members.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SetSnapshot {
    /// Its `spec.replicas`; `None` if it does not exist.
    pub(crate) desired: Option<u64>,
    /// The status observes the current spec and reports no change in progress.
    pub(crate) settled: bool,
    /// The status reports that the rollout has stopped without progress.
    pub(crate) stopped: bool,
    /// Replicas that no cluster can run, according to the status.
    pub(crate) unplaced: u64,
    /// One entry for each member cluster.
    pub(crate) clusters: Vec<ClusterSnapshot>,
    /// Tracks the ready replicas of all members together.
    pub(crate) ready_tracker: ReadyTracker,
}

/// A set in one member cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClusterSnapshot {
    /// The cluster's name.
    pub(crate) name: String,
    /// Its desired replicas according to the status; `None` if the status does not mention the cluster.
    pub(crate) desired: Option<u64>,
    /// The reason for that number, as the status states it.
    pub(crate) reason: String,
    /// The state of the cluster.
    pub(crate) state: State,
    /// Pods of the current template, according to the status.
    pub(crate) updated: u64,
    /// `spec.replicas` of the local Deployment; 0 if there is none.
    pub(crate) spec_replicas: u64,
    /// Pods that are not terminating.
    pub(crate) pods: u64,
    /// Those that are ready.
    pub(crate) ready: u64,
    /// Those without a node.
    pub(crate) pending: u64,
    /// Pods that are terminating.
    pub(crate) terminating: u64,
}

/// The state of a cluster, according to its MemberCluster and the set's status.
#[derive(Clone, Debug, Default, Display, PartialEq, Eq)]
pub(crate) enum State {
    /// The controller has not reported it yet.
    #[default]
    Joining,
    /// It answers the liveness probe.
    Ready,
    /// It answers, and can run no more than this number of the set's replicas.
    #[display("Full (max {_0})")]
    Full(u64),
    /// It does not answer; its replicas still count.
    Unreachable,
    /// It has not answered for the grace period; its replicas are rescheduled to other clusters.
    Lost,
}

impl SetSnapshot {
    /// Ready replicas over all members.
    pub(crate) fn ready(&self) -> u64 {
        self.clusters.iter().map(|cluster| cluster.ready).sum()
    }
}

/// Tracks the ready replicas of one set over time: a move must not reduce them (F20).
///
/// The floor is the largest number that was ever ready, at most `spec.replicas`. A smaller number is a dip.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReadyTracker {
    /// The number of ready replicas must not fall below this.
    floor: u64,
    /// The lowest number since [`ReadyTracker::begin_step`].
    pub(crate) lowest: Option<u64>,
    /// The deepest dip since [`ReadyTracker::begin_step`].
    pub(crate) dip: Option<Dip>,
}

/// Ready replicas below the floor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dip {
    /// The time since the demo started.
    pub(crate) at: Duration,
    /// The number of ready replicas.
    pub(crate) ready: u64,
    /// The floor.
    pub(crate) floor: u64,
}

impl ReadyTracker {
    /// Begins a new step, with a lowest number and a dip of its own.
    pub(crate) fn begin_step(&mut self) {
        (self.lowest, self.dip) = (None, None);
    }

    /// Records that `ready` of `desired` replicas are ready. A set that does not exist desires 0 replicas.
    pub(crate) fn record(&mut self, desired: u64, ready: u64, at: Duration) {
        self.floor = self.floor.min(desired);
        self.lowest = Some(self.lowest.map_or(ready, |lowest| lowest.min(ready)));
        if ready < self.floor && self.dip.is_none_or(|dip| ready < dip.ready) {
            self.dip = Some(Dip {
                at,
                ready,
                floor: self.floor,
            });
        }
        self.floor = self.floor.max(ready.min(desired));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tracked(samples: &[(u64, u64)]) -> ReadyTracker {
        let mut tracker = ReadyTracker::default();
        for (second, &(desired, ready)) in (0..).zip(samples) {
            tracker.record(desired, ready, Duration::from_secs(second));
        }
        tracker
    }

    #[test]
    fn f20_growth_and_a_surplus_during_a_move_are_no_dips() {
        assert_eq!(
            tracked(&[(50, 0), (50, 20), (50, 50), (50, 67), (50, 50)]).dip,
            None
        );
    }

    #[test]
    fn f20_fewer_than_before_is_a_dip_even_while_growing() {
        let dip = tracked(&[(50, 0), (50, 39), (50, 38), (50, 50)]).dip;
        assert_eq!(
            dip,
            Some(Dip {
                at: Duration::from_secs(2),
                ready: 38,
                floor: 39
            })
        );
    }

    #[test]
    fn f20_the_deepest_dip_is_recorded() {
        let dip = tracked(&[(50, 50), (50, 48), (50, 44), (50, 47)])
            .dip
            .unwrap();
        assert_eq!((dip.ready, dip.floor), (44, 50));
    }

    #[test]
    fn f20_scaling_down_lowers_the_floor_and_scaling_up_does_not_raise_it() {
        assert_eq!(
            tracked(&[(60, 60), (40, 60), (40, 40), (60, 40), (60, 60)]).dip,
            None
        );
        assert!(tracked(&[(40, 40), (60, 40), (60, 39)]).dip.is_some());
    }

    #[test]
    fn each_step_has_its_own_lowest_number() {
        let mut tracker = tracked(&[(50, 0), (50, 50)]);
        assert_eq!(tracker.lowest, Some(0));
        tracker.begin_step();
        assert_eq!(tracker.lowest, None);
        tracker.record(50, 62, Duration::ZERO);
        tracker.record(50, 50, Duration::ZERO);
        assert_eq!(tracker.lowest, Some(50));
        tracker.record(50, 49, Duration::ZERO);
        assert!(tracker.dip.is_some(), "the floor is preserved across steps");
    }
}
