//! Ready pods are left by their clients before they are removed (`spec.drainSeconds`, D2).
//!
//! ```text
//! to be removed -> mark so many pods, which EndpointSets leave out -> drainSeconds -> remove them
//!                                                            '-> no longer to be removed: unmark them
//! ```
//!
//! Which pods these are is in the pods themselves, with the time: a new leader goes on from there. While some drain, no others begin, so
//! that a move that goes on all the time does not put off their removal. Pods that are not ready, which a ReplicaSet removes first, have
//! no clients. A LocalReplicaSet drains its pods by itself.

use std::time::Duration;

use fedrs_api::LocalKind;
use jiff::Timestamp;

use super::{evaluation::MemberEvaluation, snapshot::Snapshot, time::after};

/// What of a step one member may do now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PodDrain {
    /// Replicas that are to be removed, and stay until their clients have left.
    pub(super) staying: u64,
    /// How many ready pods are to drain, if these are not the ones that do.
    pub(super) pods: Option<u64>,
    /// When the clients of those that drain have left.
    pub(super) until: Option<Timestamp>,
}

/// The pods of one member.
#[derive(Clone, Copy, Debug)]
struct Pods {
    requested: u64,
    /// Those that its controllers have yet to remove, or are not seen to have removed.
    excess: u64,
    /// Those that may be ready.
    ready: u64,
    draining: u64,
    /// When the last of these began to drain; for longer than anybody waits, if it is not known.
    since: Option<Timestamp>,
}

impl PodDrain {
    /// For a step of `member` to `next` replicas.
    pub(super) fn of(
        snapshot: &Snapshot<'_>,
        member: &MemberEvaluation<'_>,
        next: u64,
        now: Timestamp,
    ) -> Self {
        let pods = &member.member.view.pods;
        let pods = Pods {
            requested: member.requested(),
            excess: member.excess(),
            ready: member.possibly_ready(),
            draining: pods.draining.into(),
            since: pods.draining_since,
        };
        if snapshot.frs.local == LocalKind::LocalReplicaSet || member.set().is_none() {
            return Self::default();
        }
        pods.decide(next, snapshot.frs.drain, now)
    }
}

impl Pods {
    fn decide(self, next: u64, drain: Duration, now: Timestamp) -> PodDrain {
        let removed = self.requested.saturating_sub(next);
        let idle = self.requested.saturating_sub(self.ready);
        let ready = removed.saturating_sub(idle);
        if self.draining > 0 && self.excess > 0 {
            // Which of them go is not known before the excess is gone. One that was unmarked now might be spared, and another that serves
            // be removed in its place.
            return PodDrain {
                staying: ready,
                ..PodDrain::default()
            };
        }
        let unmarks = self.draining > ready;
        if drain.is_zero() {
            return PodDrain {
                pods: unmarks.then_some(ready),
                ..PodDrain::default()
            };
        }
        let marks = self.draining == 0 && ready > 0;
        if unmarks || marks {
            return PodDrain {
                staying: ready,
                pods: Some(ready),
                until: None,
            };
        }
        // The clock of the leader that marked them may be ahead of this one: nobody waits for longer than twice the time.
        let until = self
            .since
            .map(|since| after(since.min(after(now, drain)), drain));
        match until.filter(|until| now < *until && ready > 0) {
            Some(until) => PodDrain {
                staying: ready,
                pods: None,
                until: Some(until),
            },
            None => PodDrain {
                staying: ready - self.draining,
                ..PodDrain::default()
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAIN: Duration = Duration::from_secs(30);

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// 10 replicas, at second 100.
    fn decide(ready: u64, (draining, since): (u64, i64), next: u64, drain: Duration) -> PodDrain {
        let pods = Pods {
            requested: 10,
            excess: ready.saturating_sub(10),
            ready,
            draining,
            since: (draining > 0).then(|| at(since)),
        };
        pods.decide(next, drain, at(100))
    }

    fn marks(pods: u64) -> PodDrain {
        PodDrain {
            staying: pods,
            pods: Some(pods),
            until: None,
        }
    }

    fn waits(staying: u64, until: i64) -> PodDrain {
        PodDrain {
            staying,
            pods: None,
            until: Some(at(until)),
        }
    }

    fn stays(staying: u64) -> PodDrain {
        PodDrain {
            staying,
            ..PodDrain::default()
        }
    }

    #[test]
    fn d2_ready_pods_drain_before_they_are_removed() {
        for (name, ready, draining, next, expected) in [
            ("nothing to remove", 10, (0, 0), 10, stays(0)),
            ("more replicas", 10, (0, 0), 12, stays(0)),
            ("they are marked first", 10, (0, 0), 7, marks(3)),
            ("they drain", 10, (3, 80), 7, waits(3, 110)),
            ("they have drained", 10, (3, 70), 7, stays(0)),
            ("others follow later", 10, (3, 70), 5, stays(2)),
            (
                "while some drain, others wait",
                10,
                (3, 80),
                5,
                waits(5, 110),
            ),
            ("pods that are not ready go at once", 8, (0, 0), 8, stays(0)),
            ("of three, one is ready", 8, (0, 0), 7, marks(1)),
            ("no longer to be removed", 10, (3, 80), 10, marks(0)),
            ("fewer are to be removed", 10, (3, 80), 8, marks(2)),
            ("also once they have drained", 10, (3, 70), 9, marks(1)),
            ("the last ones are yet to go", 12, (2, 70), 9, stays(1)),
            (
                "also if nothing else is to be removed",
                12,
                (2, 70),
                10,
                stays(0),
            ),
            (
                "pods that never drained are yet to go",
                12,
                (0, 0),
                9,
                marks(1),
            ),
            ("a clock that is ahead", 10, (3, 10_000), 7, waits(3, 160)),
        ] {
            assert_eq!(decide(ready, draining, next, DRAIN), expected, "{name}");
        }
    }

    #[test]
    fn d2_without_a_time_nothing_waits_and_marks_of_before_end() {
        for (draining, next, pods) in [
            (0, 7, None),
            (3, 7, None),
            (3, 8, Some(2)),
            (3, 10, Some(0)),
        ] {
            let drain = decide(10, (draining, 80), next, Duration::ZERO);
            let expected = PodDrain {
                pods,
                ..PodDrain::default()
            };
            assert_eq!(drain, expected, "{draining} {next}");
        }
    }
}
