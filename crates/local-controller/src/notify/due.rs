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
    let since = status.needs_confirmation_since()?;
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
    if let Some(since) = status.needs_confirmation_since()
        && kind != Kind::Closed
    {
        // The phase may have been written by a process whose clock is ahead.
        notified.asked = Some(Time(now.max(since)));
    }
    notified
}
