//! Arithmetic of points in time.

use std::time::Duration;

use jiff::Timestamp;

/// `time` plus `limit`; `None` for ever.
pub(crate) fn after_limit(time: Timestamp, limit: Option<Duration>) -> Option<Timestamp> {
    limit.map(|duration| after(time, duration))
}

/// `time` plus `duration`, or the end of time.
pub(crate) fn after(time: Timestamp, duration: Duration) -> Timestamp {
    time.checked_add(duration).unwrap_or(Timestamp::MAX)
}
