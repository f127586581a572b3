//! What is seen of a set at one moment, and whether ready replicas ever dipped. Plain data and pure steps.

use std::time::Duration;

/// One set at one moment: what the host says of it, and what really runs in the members.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SetScene {
    /// Its `spec.replicas`; `None` if it doesn't exist.
    pub(crate) wanted: Option<u64>,
    /// The status answers the current spec and says that nothing is left to do.
    pub(crate) settled: bool,
    /// Replicas that no cluster can run, by the status.
    pub(crate) unplaced: u64,
    /// One for each member.
    pub(crate) members: Vec<MemberScene>,
    /// Ready replicas over all members.
    pub(crate) watch: ReadyWatch,
}

/// One set in one member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MemberScene {
    /// The member's name.
    pub(crate) name: String,
    /// What the status says it should hold; `None` if it says nothing of it.
    pub(crate) desired: Option<u64>,
    /// Why, in the status' words.
    pub(crate) reason: String,
    /// How the member is.
    pub(crate) state: State,
    /// `spec.replicas` of the local set; 0 if there is none.
    pub(crate) asked: u64,
    /// Pods that are not being deleted.
    pub(crate) pods: u64,
    /// Of these: ready.
    pub(crate) ready: u64,
    /// Of these: without a node.
    pub(crate) waiting: u64,
    /// Pods that are being deleted.
    pub(crate) stopping: u64,
}

/// How a member is, as its MemberCluster and the set's status say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum State {
    /// Not known yet.
    #[default]
    Joining,
    /// It answers.
    Healthy,
    /// It answers, and has shown that it can't run more of the set than this.
    Full(u64),
    /// It doesn't answer; its replicas still count.
    Unreachable,
    /// It hasn't answered for so long that its replicas are placed elsewhere.
    Lost,
}

impl std::fmt::Display for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Joining => f.write_str("joining"),
            Self::Healthy => f.write_str("healthy"),
            Self::Full(room) => write!(f, "full at {room}"),
            Self::Unreachable => f.write_str("unreachable"),
            Self::Lost => f.write_str("lost"),
        }
    }
}

impl SetScene {
    /// Ready replicas over all members.
    pub(crate) fn ready(&self) -> u64 {
        self.members.iter().map(|it| it.ready).sum()
    }
}

/// Watches the ready replicas of one set over time: a move must not let them drop (F20).
///
/// The floor is the most that were ever ready, at most N: below min(N, what it was) is a dip.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReadyWatch {
    /// Must not be gone below.
    floor: u64,
    /// The lowest since [`ReadyWatch::begin`].
    lowest: Option<u64>,
    /// The deepest dip since [`ReadyWatch::begin`].
    dip: Option<Dip>,
}

/// Ready replicas below the floor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dip {
    /// When, since the demo started.
    pub(crate) at: Duration,
    /// What was ready.
    pub(crate) ready: u64,
    /// What should have been, at least.
    pub(crate) floor: u64,
}

impl ReadyWatch {
    /// A new step begins: its lowest number and its dip are its own.
    pub(crate) fn begin(&mut self) {
        (self.lowest, self.dip) = (None, None);
    }

    /// Takes in that `ready` of `wanted` replicas are ready. A set that doesn't exist wants nothing.
    pub(crate) fn sample(&mut self, wanted: u64, ready: u64, at: Duration) {
        self.floor = self.floor.min(wanted);
        self.lowest = Some(self.lowest.map_or(ready, |lowest| lowest.min(ready)));
        if ready < self.floor && self.dip.is_none_or(|dip| ready < dip.ready) {
            self.dip = Some(Dip {
                at,
                ready,
                floor: self.floor,
            });
        }
        self.floor = self.floor.max(ready.min(wanted));
    }

    /// The lowest number since the step began.
    pub(crate) fn lowest(&self) -> Option<u64> {
        self.lowest
    }

    /// The deepest dip since the step began.
    pub(crate) fn dip(&self) -> Option<Dip> {
        self.dip
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watched(samples: &[(u64, u64)]) -> ReadyWatch {
        let mut watch = ReadyWatch::default();
        for (second, &(wanted, ready)) in (0..).zip(samples) {
            watch.sample(wanted, ready, Duration::from_secs(second));
        }
        watch
    }

    #[test]
    fn f20_growing_and_moving_with_a_surplus_is_no_dip() {
        assert_eq!(
            watched(&[(50, 0), (50, 20), (50, 50), (50, 67), (50, 50)]).dip(),
            None
        );
    }

    #[test]
    fn f20_below_what_it_was_is_a_dip_while_growing_too() {
        let dip = watched(&[(50, 0), (50, 39), (50, 38), (50, 50)]).dip();
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
    fn f20_the_deepest_dip_is_told() {
        let dip = watched(&[(50, 50), (50, 48), (50, 44), (50, 47)])
            .dip()
            .unwrap();
        assert_eq!((dip.ready, dip.floor), (44, 50));
    }

    #[test]
    fn f20_fewer_wanted_lowers_the_floor_and_more_wanted_does_not_raise_it() {
        assert_eq!(
            watched(&[(60, 60), (40, 60), (40, 40), (60, 40), (60, 60)]).dip(),
            None
        );
        assert!(watched(&[(40, 40), (60, 40), (60, 39)]).dip().is_some());
    }

    #[test]
    fn each_step_has_its_own_lowest_number() {
        let mut watch = watched(&[(50, 0), (50, 50)]);
        assert_eq!(watch.lowest(), Some(0));
        watch.begin();
        assert_eq!(watch.lowest(), None);
        watch.sample(50, 62, Duration::ZERO);
        watch.sample(50, 50, Duration::ZERO);
        assert_eq!(watch.lowest(), Some(50));
        watch.sample(50, 49, Duration::ZERO);
        assert!(watch.dip().is_some(), "the floor is kept from step to step");
    }
}
