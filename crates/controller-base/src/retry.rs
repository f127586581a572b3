//! The pauses after requests that failed.

use std::time::Duration;

/// The pause after a request was rejected or not answered. Doubles with each further one.
const FIRST_RETRY: Duration = Duration::from_secs(1);
/// The longest pause.
const MAX_RETRY: Duration = Duration::from_secs(64);

/// The pause after a request that failed, after `failures` others.
#[must_use]
pub fn pause(failures: u32) -> Duration {
    FIRST_RETRY
        .saturating_mul(1 << failures.min(16))
        .min(MAX_RETRY)
}
