//! Which notification of a migration is due (M8). Pure.
//!
//! ```text
//! opened -> reminder 1 -> reminder 2 ... while a person has to confirm something -> closed
//! ```
//!
//! One at a time, each until it is acknowledged. What makes it another one is its id alone.

use std::time::Duration;

use fedrs_api::{MigrationRequestStatus, NotificationStatus};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// How long ago a migration may have ended that nobody was notified of, to be notified yet: its ticket would say nothing that is new.
/// Without a limit, a policy that gets a webhook would open a ticket for each request of its history.
const LATE: Duration = Duration::from_hours(1);

/// What a notification says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// The pod has to leave its node.
    Opened,
    /// A person has to confirm something: the first, the second ... time that this is said after the ticket was opened.
    Reminder(i32),
    /// The migration has ended.
    Closed,
}

/// A notification that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Due {
    pub(super) kind: Kind,
    /// Since when; the same whenever it is asked for, so that an event that is sent again has the same time.
    pub(super) time: Timestamp,
}

impl Kind {
    /// The word for metrics.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Opened => "opened",
            Self::Reminder(_) => "reminder",
            Self::Closed => "closed",
        }
    }

    /// The idempotency key: the same for each attempt, another one for each notification of any request.
    pub(super) fn id(self, request_uid: &str) -> String {
        match self {
            Self::Reminder(number) => format!("{request_uid}.reminder.{number}"),
            other => format!("{request_uid}.{}", other.word()),
        }
    }
}

/// The next notification of a request that was created at `created`, if one is due at `now`. A person is reminded every `remind`.
pub(super) fn due(
    created: Timestamp,
    status: &MigrationRequestStatus,
    remind: Duration,
    now: Timestamp,
) -> Option<Due> {
    let after = |time: Timestamp, by: Duration| time.checked_add(by).unwrap_or(Timestamp::MAX);
    let none = NotificationStatus::default();
    let notified = status.notified.as_ref().unwrap_or(&none);
    let ended = status.ended();
    if status.phase.is_none() || notified.closed.is_some() {
        return None;
    }
    if notified.opened.is_none() {
        let was_tried = status.notified.is_some();
        let is_history = !was_tried && ended.is_some_and(|ended| after(ended, LATE) <= now);
        let kind = Kind::Opened;
        return (!is_history).then_some(Due {
            kind,
            time: created,
        });
    }
    if let Some(ended) = ended {
        let kind = Kind::Closed;
        return Some(Due { kind, time: ended });
    }
    let since = status.awaits_since()?;
    let asked = notified.asked.as_ref().map(|asked| asked.0);
    let time = match asked.filter(|asked| *asked >= since) {
        Some(asked) => after(asked, remind),
        None => since,
    };
    let kind = Kind::Reminder(notified.reminders.saturating_add(1));
    (time <= now).then_some(Due { kind, time })
}

/// What is acknowledged after `kind` of a request with this status was acknowledged at `now`.
pub(super) fn acknowledged(
    status: &MigrationRequestStatus,
    kind: Kind,
    now: Timestamp,
) -> NotificationStatus {
    let mut notified = status.notified.clone().unwrap_or_default();
    notified.failure = String::new();
    let at = Some(Time(now));
    match kind {
        Kind::Opened => notified.opened = at,
        Kind::Reminder(number) => notified.reminders = number,
        Kind::Closed => notified.closed = at,
    }
    if let Some(since) = status.awaits_since()
        && kind != Kind::Closed
    {
        // The phase may have been written by a process whose clock is ahead.
        notified.asked = Some(Time(now.max(since)));
    }
    notified
}

#[cfg(test)]
mod tests {
    use fedrs_api::MigrationPhase as Phase;

    use super::*;

    const REMIND: Duration = Duration::from_secs(1000);

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    fn time(second: Option<i64>) -> Option<Time> {
        second.map(|second| Time(at(second)))
    }

    #[test]
    fn m8_what_is_due() {
        use Phase::{Done, HandsUp, Placing, WaitingForBudget};
        // Phase and since when; opened, reminders, asked; now; what is due, and since when.
        for (phase, notified, now, expected) in [
            ((WaitingForBudget, 5), None, 6, Some((Kind::Opened, 0))),
            (
                (WaitingForBudget, 5),
                Some((None, 0, None)),
                6,
                Some((Kind::Opened, 0)),
            ),
            ((WaitingForBudget, 5), Some((Some(6), 0, None)), 9_000, None),
            (
                (HandsUp, 500),
                Some((Some(6), 0, None)),
                500,
                Some((Kind::Reminder(1), 500)),
            ),
            ((HandsUp, 500), Some((Some(6), 1, Some(510))), 1509, None),
            (
                (HandsUp, 500),
                Some((Some(6), 1, Some(510))),
                1510,
                Some((Kind::Reminder(2), 1510)),
            ),
            // It was opened when a person was needed already.
            ((HandsUp, 500), Some((Some(510), 0, Some(510))), 600, None),
            (
                (HandsUp, 500),
                Some((Some(510), 0, Some(510))),
                1510,
                Some((Kind::Reminder(1), 1510)),
            ),
            // A person was needed before, too.
            (
                (HandsUp, 500),
                Some((Some(6), 3, Some(400))),
                501,
                Some((Kind::Reminder(4), 500)),
            ),
            ((Placing, 600), Some((Some(6), 1, Some(510))), 9_000, None),
            (
                (Done, 700),
                Some((Some(6), 1, Some(510))),
                700,
                Some((Kind::Closed, 700)),
            ),
            ((Done, 700), None, 700 + 3599, Some((Kind::Opened, 0))),
            ((Done, 700), None, 700 + 3600, None),
            // The webhook was away all the time.
            (
                (Done, 700),
                Some((None, 0, None)),
                90_000,
                Some((Kind::Opened, 0)),
            ),
        ] {
            let mut status = MigrationRequestStatus::default();
            status.reach(phase.0, at(phase.1));
            status.notified = notified.map(|(opened, reminders, asked)| NotificationStatus {
                opened: time(opened),
                reminders,
                asked: time(asked),
                ..NotificationStatus::default()
            });
            let due = due(at(0), &status, REMIND, at(now));
            let expected = expected.map(|(kind, time)| Due {
                kind,
                time: at(time),
            });
            assert_eq!(due, expected, "{status:?}");
        }
    }

    #[test]
    fn m8_nothing_is_due_before_the_controller_knows_the_request_and_after_the_ticket_is_closed() {
        let mut status = MigrationRequestStatus::default();
        assert_eq!(due(at(0), &status, REMIND, at(10)), None);
        status.reach(Phase::Done, at(20));
        for kind in [Kind::Opened, Kind::Closed] {
            let due = due(at(0), &status, REMIND, at(30)).unwrap();
            assert_eq!(due.kind, kind);
            status.notified = Some(acknowledged(&status, kind, at(30)));
        }
        assert_eq!(due(at(0), &status, REMIND, at(30)), None);
    }

    #[test]
    fn m8_a_process_whose_clock_is_behind_asks_once() {
        let mut status = MigrationRequestStatus::default();
        status.reach(Phase::HandsUp, at(500));
        status.notified = Some(acknowledged(&status, Kind::Opened, at(490)));
        assert_eq!(due(at(0), &status, REMIND, at(600)), None);
    }

    #[test]
    fn m8_each_notification_has_its_id() {
        let ids = [Kind::Opened, Kind::Reminder(2), Kind::Closed].map(|kind| kind.id("1a2b"));
        assert_eq!(ids, ["1a2b.opened", "1a2b.reminder.2", "1a2b.closed"]);
    }
}
