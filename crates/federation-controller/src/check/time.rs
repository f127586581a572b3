//! Arithmetic of points in time.

use std::time::Duration;

pub(crate) use federated_rollout::after;
use jiff::Timestamp;

/// `time` plus `limit`; `None` for ever.
pub(crate) fn after_limit(time: Timestamp, limit: Option<Duration>) -> Option<Timestamp> {
    limit.map(|duration| after(time, duration))
}
