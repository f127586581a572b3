//! Whatever the order of crashes, lost answers and lost writes: each notification is acknowledged, in order, and none twice by the
//! status (M8).

use std::{collections::BTreeSet, time::Duration};

use fedrs_api::{MigrationPhase, MigrationRequestStatus, NotificationStatus};
use jiff::Timestamp;
use proptest::prelude::*;

use super::due::{Kind, acknowledged, due};

const REMIND: Duration = Duration::from_secs(1000);
const UID: &str = "1a2b";

/// What happens next.
#[derive(Clone, Copy, Debug)]
enum Step {
    Wait(u32),
    Reach(MigrationPhase),
    /// What is due is sent, and this becomes of it.
    Send(Fate),
    /// The process ends, with what it has not written.
    Crash,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// The webhook did not get it.
    Away,
    /// The webhook got it, and its answer was lost.
    AnswerLost,
    /// It was acknowledged, and the write failed.
    Unwritten,
    Written,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let phase = prop_oneof![
        Just(MigrationPhase::WaitingForBudget),
        Just(MigrationPhase::ShuttingDown),
        Just(MigrationPhase::HandsUp),
        Just(MigrationPhase::Placing),
    ];
    let fate = prop_oneof![
        Just(Fate::Away),
        Just(Fate::AnswerLost),
        Just(Fate::Unwritten),
        Just(Fate::Written),
    ];
    let step = prop_oneof![
        2 => (1_u32..1500).prop_map(Step::Wait),
        2 => phase.prop_map(Step::Reach),
        4 => fate.prop_map(Step::Send),
        1 => Just(Step::Crash),
    ];
    proptest::collection::vec(step, 0..60)
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

#[derive(Debug, Default)]
struct World {
    second: i64,
    status: MigrationRequestStatus,
    unwritten: Option<NotificationStatus>,
    /// The ids that the webhook got, each once, in order.
    received: Vec<Kind>,
    /// Those that the status says were acknowledged.
    written: Vec<Kind>,
}

impl World {
    fn known(&self) -> MigrationRequestStatus {
        let mut status = self.status.clone();
        if self.unwritten.is_some() {
            status.notified.clone_from(&self.unwritten);
        }
        status
    }

    /// Whether something was due.
    fn send(&mut self, fate: Fate) -> bool {
        let status = self.known();
        let now = at(self.second);
        let Some(due) = due(at(0), &status, REMIND, now) else {
            return false;
        };
        assert!(due.time <= now);
        if fate == Fate::Away {
            return true;
        }
        if !self.received.contains(&due.kind) {
            self.received.push(due.kind);
        }
        let notified = acknowledged(&status, due.kind, now);
        match fate {
            Fate::Unwritten => self.unwritten = Some(notified),
            Fate::Written => {
                assert!(!self.written.contains(&due.kind), "twice: {:?}", due.kind);
                self.written.push(due.kind);
                self.status.notified = Some(notified);
                self.unwritten = None;
            }
            Fate::Away | Fate::AnswerLost => {}
        }
        true
    }

    fn carry_out(&mut self, step: Step) {
        match step {
            Step::Wait(seconds) => self.second += i64::from(seconds),
            Step::Reach(phase) => self.status.reach(phase, at(self.second)),
            Step::Send(fate) => _ = self.send(fate),
            Step::Crash => self.unwritten = None,
        }
    }
}

proptest! {
    #[test]
    fn m8_each_notification_arrives_and_none_is_another_one(steps in steps()) {
        let mut world = World::default();
        world.status.reach(MigrationPhase::Requested, at(0));
        for step in steps {
            world.carry_out(step);
        }
        world.second += 10;
        world.status.reach(MigrationPhase::Done, at(world.second));
        // The webhook and the API server are back.
        let mut rounds = 0;
        while world.send(Fate::Written) {
            rounds += 1;
            prop_assert!(rounds <= 3, "{world:?}");
        }
        let received = &world.received;
        prop_assert_eq!(received.first(), Some(&Kind::Opened));
        prop_assert_eq!(received.last(), Some(&Kind::Closed));
        let numbers: Vec<_> = received.iter().filter_map(|kind| match kind {
            Kind::Reminder(number) => Some(*number),
            _ => None,
        }).collect();
        let expected: Vec<_> = (1..).take(numbers.len()).collect();
        prop_assert_eq!(&numbers, &expected);
        let ids: BTreeSet<_> = received.iter().map(|kind| kind.id(UID)).collect();
        prop_assert_eq!(ids.len(), received.len());
        prop_assert_eq!(due(at(0), &world.status, REMIND, at(world.second + 10_000_000)), None);
    }
}
