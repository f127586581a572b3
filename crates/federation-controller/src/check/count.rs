//! Counts of the status, which the API has as `i32`.

/// A count of the status, which is never negative when it is ours.
pub(super) fn from_status(number: i32) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// A count for the status: sets have at most `i32::MAX` replicas.
pub(super) fn to_status(count: u64) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
