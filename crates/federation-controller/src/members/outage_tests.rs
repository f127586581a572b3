//! Which members are lost or have returned, by the probes of all members over time.

#[path = "outage_tests/leaders.rs"]
mod leaders;

use fedrs_api::MemberInternalState;

use super::{Contact::*, *};

const GRACE: u64 = 60;

fn periods() -> Periods {
    Periods {
        unauthorized: Some(Duration::from_secs(3600)),
        stabilization: Duration::from_secs(60),
        probe_round: Duration::from_secs(15),
    }
}

/// Members from the start of a process.
struct Members {
    histories: Vec<History>,
    disconnected: bool,
    grace: Option<u64>,
    started: Instant,
    now: u64,
}

impl Members {
    fn new(count: usize) -> Self {
        Self {
            histories: vec![History::default(); count],
            disconnected: false,
            grace: Some(GRACE),
            started: Instant::now(),
            now: 0,
        }
    }

    fn instant(&self) -> Instant {
        self.started + Duration::from_secs(self.now)
    }

    /// `contacts` last for so many seconds from now on.
    fn show(&mut self, contacts: &[Contact], seconds: u64) -> &mut Self {
        for _ in 0..seconds {
            let now = self.instant();
            let mut observed: Vec<_> = self
                .histories
                .iter_mut()
                .zip(contacts)
                .map(|(history, contact)| Observed {
                    history,
                    contact: *contact,
                    grace: self.grace.map(Duration::from_secs),
                })
                .collect();
            self.disconnected = observe(&mut observed, self.disconnected, &periods(), now);
            self.now += 1;
        }
        self
    }

    fn lost(&self) -> Vec<bool> {
        let states = self.histories.iter().map(|history| history.state);
        states.map(|state| state.lost.is_some()).collect()
    }

    /// For how much longer the first member has to be healthy.
    fn stabilizes_in(&self) -> u64 {
        let until = self.histories[0].state.stabilizes_at;
        let left = until.map(|until| until.duration_since(self.instant()));
        left.map_or(0, |left| left.as_secs())
    }

    /// The same members, seen by the next leader.
    fn next_leader(&self) -> Self {
        let mut next = Self::new(self.histories.len());
        next.grace = self.grace;
        for (history, of_next) in self.histories.iter().zip(&mut next.histories) {
            of_next.resume(&history.record(&periods(), self.instant()));
        }
        next
    }
}

#[test]
fn f33_a_returned_member_is_healthy_once_its_nodes_are_heard_of() {
    let mut members = Members::new(2);
    members.show(&[Unreachable, Answers], 62);
    members.show(&[Unconfirmed, Answers], 45);
    let mut next = members.next_leader();
    assert!(next.histories[0].was_out());
    for members in [&mut members, &mut next] {
        members.show(&[Unconfirmed, Answers], 45);
        assert_eq!(members.stabilizes_in(), 0, "not yet");
        members.show(&[Answers, Answers], 1);
        assert_eq!(members.stabilizes_in(), 59);
        assert_eq!(members.lost(), [false, false]);
        assert!(!members.histories[0].was_out());
    }
}

/// The contacts of all members, and for how many seconds they last.
type Phase<'a> = (&'a [Contact], u64);

/// A name, what the members show, which are lost then, and whether the controller is disconnected.
type Case = (
    &'static str,
    &'static [Phase<'static>],
    &'static [bool],
    bool,
);

const CASES: &[Case] = &[
    (
        "within the grace period",
        &[(&[Answers, Unreachable], 60)],
        &[false, false],
        false,
    ),
    (
        "after it",
        &[(&[Answers, Unreachable], 62)],
        &[false, true],
        false,
    ),
    (
        "fewer failures than the threshold",
        &[(&[Answers, Failing], 600)],
        &[false, false],
        false,
    ),
    (
        "never probed",
        &[(&[Answers, Unknown], 600)],
        &[false, false],
        false,
    ),
    ("the only member", &[(&[Unreachable], 600)], &[false], true),
    (
        "all members",
        &[(&[Unreachable, Unreachable], 600)],
        &[false, false],
        true,
    ),
    (
        "all that are not lost",
        &[
            (&[Answers, Unreachable], 62),
            (&[Unreachable, Unreachable], 600),
        ],
        &[false, true],
        true,
    ),
    (
        "the others fail, too",
        &[(&[Failing, Unreachable], 600)],
        &[false, false],
        false,
    ),
    (
        "nobody answers yet again",
        &[
            (&[Unreachable, Unreachable], 20),
            (&[Failing, Unreachable], 600),
        ],
        &[false, false],
        true,
    ),
    (
        "the first one answers",
        &[
            (&[Unreachable, Unreachable], 600),
            (&[Answers, Unreachable], 60),
        ],
        &[false, false],
        false,
    ),
    (
        "the other one stays away",
        &[
            (&[Unreachable, Unreachable], 600),
            (&[Answers, Unreachable], 62),
        ],
        &[false, true],
        false,
    ),
    (
        "a lost one answers first",
        &[
            (&[Answers, Unreachable], 62),
            (&[Unreachable, Unreachable], 600),
            (&[Unreachable, Answers], 60),
        ],
        &[false, false],
        false,
    ),
    (
        "an answer ends it",
        &[
            (&[Answers, Unreachable], 50),
            (&[Answers, Answers], 1),
            (&[Answers, Unreachable], 50),
        ],
        &[false, false],
        false,
    ),
    (
        "lost, and failing once it answered",
        &[
            (&[Answers, Unreachable], 62),
            (&[Answers, Answers], 1),
            (&[Answers, Failing], 5),
        ],
        &[false, false],
        false,
    ),
    (
        "lost until it answers",
        &[(&[Answers, Unreachable], 62), (&[Answers, Failing], 5)],
        &[false, true],
        false,
    ),
    (
        "lost until its nodes are heard of",
        &[
            (&[Answers, Unreachable], 62),
            (&[Answers, Unconfirmed], 600),
        ],
        &[false, true],
        false,
    ),
    (
        "back, and not heard of yet",
        &[
            (&[Answers, Unreachable], 50),
            (&[Answers, Unconfirmed], 600),
        ],
        &[false, false],
        false,
    ),
    (
        "no node is ready",
        &[(&[Answers, NoReadyNodes], 62)],
        &[false, true],
        false,
    ),
    (
        "of no member",
        &[(&[NoReadyNodes, NoReadyNodes], 62)],
        &[true, true],
        false,
    ),
    (
        "the kubeconfig is removed",
        &[(&[Answers, Unreachable], 30), (&[Answers, Removed], 32)],
        &[false, true],
        false,
    ),
    (
        "of all members",
        &[(&[Removed, Removed], 62)],
        &[true, true],
        false,
    ),
    (
        "rejected",
        &[(&[Answers, Unauthorized], 3600)],
        &[false, false],
        false,
    ),
    (
        "rejected for an hour",
        &[(&[Answers, Unauthorized], 3602)],
        &[false, true],
        false,
    ),
    (
        "rejected by all",
        &[(&[Unauthorized, Unauthorized], 7200)],
        &[false, false],
        false,
    ),
    (
        "rejected by all that are not lost",
        &[(&[Unreachable, Unauthorized], 7200)],
        &[true, false],
        false,
    ),
    (
        "rejected, then unreachable",
        &[
            (&[Answers, Unauthorized], 3500),
            (&[Answers, Unreachable], 50),
        ],
        &[false, false],
        false,
    ),
    (
        "lost, and rejected",
        &[(&[Answers, Unreachable], 62), (&[Answers, Unauthorized], 5)],
        &[false, true],
        false,
    ),
];

#[test]
fn f33_a_member_is_lost_after_its_grace_period_unless_all_are_out_of_reach() {
    for (name, phases, lost, disconnected) in CASES {
        let mut members = Members::new(lost.len());
        for (contacts, seconds) in *phases {
            members.show(contacts, *seconds);
        }
        assert_eq!(
            (&members.lost()[..], members.disconnected),
            (*lost, *disconnected),
            "{name}"
        );
    }
}

#[test]
fn f33_a_member_that_is_lost_again_and_again_has_to_be_healthy_for_longer() {
    let mut members = Members::new(2);
    let flap = |members: &mut Members, up: u64| {
        members.show(&[Unreachable, Answers], 70);
        members.show(&[Answers, Answers], 1);
        let stabilizes_in = members.stabilizes_in();
        members.show(&[Answers, Answers], up - 1);
        stabilizes_in
    };
    members.show(&[Answers, Answers], 10);
    assert_eq!(members.stabilizes_in(), 0, "it was never lost");
    let holds: Vec<_> = (0..8).map(|_| flap(&mut members, 15)).collect();
    assert_eq!(holds, [59, 119, 239, 479, 959, 1799, 1799, 1799]);
    members
        .show(&[Unreachable, Answers], 30)
        .show(&[Answers, Answers], 1);
    assert_eq!(
        members.stabilizes_in(),
        1799,
        "a shorter outage begins it anew"
    );
    members.show(&[Answers, Answers], 1800);
    assert_eq!(members.stabilizes_in(), 0);
    members.show(&[Answers, Answers], 3600);
    assert_eq!(flap(&mut members, 15), 59, "stable for an hour");
}

/// Whether the first member is lost for a set with this grace period.
fn lost_within(members: &Members, grace: Option<u64>) -> bool {
    let grace = grace.map(Duration::from_secs);
    let now = members.instant();
    let state = members.histories[0].state_within(grace, &periods(), now);
    state.lost.is_some()
}

#[test]
fn f33_a_set_says_how_long_members_may_be_out_of_reach() {
    let mut members = Members::new(2);
    for (contact, seconds, lost) in [
        (Failing, 20, [false, false, false, false]),
        (Unreachable, 1, [true, false, false, false]),
        (Unreachable, 10, [true, true, false, false]),
        (Unreachable, 50, [true, true, false, false]),
        (Unreachable, 250, [true, true, true, false]),
        (Answers, 1, [false; 4]),
        (Failing, 20, [false; 4]),
    ] {
        members.show(&[contact, Answers], seconds);
        for (grace, lost) in [Some(0), Some(30), Some(300), None].into_iter().zip(lost) {
            let is_lost = lost_within(&members, grace);
            assert_eq!(is_lost, lost, "{contact:?} at {} s, {grace:?}", members.now);
        }
    }
}

#[test]
fn f33_a_member_stays_lost_for_a_set_until_its_nodes_have_reported() {
    let mut members = Members::new(2);
    members.show(&[Unreachable, Answers], 40);
    for seconds in [1, 30] {
        members.show(&[Unconfirmed, Answers], seconds);
        let lost = [0, 30, 50].map(|grace| lost_within(&members, Some(grace)));
        assert_eq!(lost, [true, true, false], "at {} s", members.now);
    }
    let next = members.next_leader();
    let recorded = next.histories[0].record(&periods(), next.instant());
    assert_eq!(recorded.outage_seconds, 40);
    let holds = |members: &Members| [0, 30, 50].map(|grace| stabilizes_within(members, grace));
    members.show(&[Answers, Answers], 10);
    assert_eq!(holds(&members), [50, 50, 0]);
    members.show(&[Unconfirmed, Answers], 1);
    assert_eq!(
        holds(&members),
        [59, 59, 0],
        "its first answer was from before"
    );
}

/// For how much longer the first member has to be healthy for a set with this grace period.
fn stabilizes_within(members: &Members, grace: u64) -> u64 {
    let now = members.instant();
    let state =
        members.histories[0].state_within(Some(Duration::from_secs(grace)), &periods(), now);
    let left = state.stabilizes_at.map(|until| until.duration_since(now));
    left.map_or(0, |left| left.as_secs())
}

#[test]
fn f33_a_member_that_was_lost_for_a_set_has_to_be_healthy_for_it_to_count() {
    let mut members = Members::new(2);
    members
        .show(&[Unreachable, Answers], 20)
        .show(&[Answers, Answers], 10);
    assert_eq!(members.stabilizes_in(), 0, "it was not lost for others");
    let holds = |members: &Members| [0, 10, 30].map(|grace| stabilizes_within(members, grace));
    assert_eq!(holds(&members), [50, 50, 0]);
    members.show(&[Failing, Answers], 5);
    assert_eq!(holds(&members), [45, 45, 0], "a failed probe is no outage");
}

#[test]
fn f33_a_member_that_is_lost_for_a_set_again_and_again_has_to_be_healthy_for_longer() {
    let mut members = Members::new(2);
    let holds: Vec<_> = (0..7)
        .map(|_| {
            members
                .show(&[Unreachable, Answers], 20)
                .show(&[Answers, Answers], 1);
            let holds = [10, 30].map(|grace| stabilizes_within(&members, grace));
            members.show(&[Answers, Answers], 70);
            holds
        })
        .collect();
    let doubled = [59, 119, 239, 479, 959, 1799, 1799];
    assert_eq!(holds, doubled.map(|hold| [hold, 0]));
    members.show(&[Answers, Answers], 3600);
    assert_eq!(stabilizes_within(&members, 10), 0);
    members
        .show(&[Unreachable, Answers], 20)
        .show(&[Answers, Answers], 1);
    assert_eq!(stabilizes_within(&members, 10), 59, "stable for an hour");
}

#[test]
fn f33_an_outage_that_ends_with_dead_nodes_is_a_loss_for_sets() {
    let mut members = Members::new(2);
    members
        .show(&[Unreachable, Answers], 20)
        .show(&[NoReadyNodes, Answers], 3)
        .show(&[Answers, Answers], 1);
    assert_eq!(stabilizes_within(&members, 10), 59);
}

#[test]
fn f33_members_that_a_controller_was_cut_off_from_were_not_out_of_reach() {
    let mut members = Members::new(2);
    members
        .show(&[Unreachable, Unreachable], 600)
        .show(&[Answers, Answers], 1);
    assert_eq!(stabilizes_within(&members, 0), 0);
    let recorded = members.histories[0].record(&periods(), members.instant());
    assert_eq!(recorded, MemberInternalState::default());
}

#[test]
fn f33_a_member_that_is_lost_for_long_is_recorded_seldom() {
    let mut members = Members::new(2);
    let mut records = std::collections::BTreeSet::new();
    for _ in 0..24 * 360 {
        members.show(&[Unreachable, Answers], 10);
        let record = members.histories[0].record(&periods(), members.instant());
        records.insert(record.outage_seconds);
    }
    assert!(records.len() < 180, "{} writes in a day", records.len());
}

#[test]
fn f33_a_set_without_a_limit_keeps_the_replicas_of_a_lost_member() {
    let mut members = Members::new(2);
    members.show(&[Unreachable, Answers], 7200);
    assert_eq!(members.lost(), [true, false]);
    assert!(!lost_within(&members, None));
    let state = members.histories[0].state_within(None, &periods(), members.instant());
    assert_eq!(state.lost_at, None);
}
