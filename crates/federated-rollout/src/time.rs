//! Arithmetic of times without overflow.

use std::time::Duration;

use jiff::Timestamp;

/// The time `duration` after `time`; the end of time if there is none.
#[must_use]
pub fn after(time: Timestamp, duration: Duration) -> Timestamp {
    time.saturating_add(duration).unwrap_or(Timestamp::MAX)
}
