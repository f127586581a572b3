//! `spec.drainSeconds`: for how long clients may leave a ready pod before it is removed.

use std::time::Duration;

use crate::field::Errors;

/// The most seconds: moves, updates and evictions wait for them.
pub(crate) const MAX_DRAIN_SECONDS: u32 = 3600;

/// The time, zero if it is not valid.
pub(crate) fn check_drain(seconds: i32, errors: &mut Errors) -> Duration {
    const FIELD: &str = "spec.drainSeconds";
    let valid = u32::try_from(seconds).unwrap_or_default();
    let message = format!("must not be negative, but is {seconds}");
    errors.require(seconds >= 0, FIELD, &message);
    let message = format!("must be at most {MAX_DRAIN_SECONDS}, but is {seconds}");
    errors.require(valid <= MAX_DRAIN_SECONDS, FIELD, &message);
    Duration::from_secs(valid.into())
}
