//! Backoff of writes on the host that fail.

use std::time::Duration;

use tokio::time::Instant;

/// How soon a failed write is decided again, if no event of a watch comes first.
pub(super) const RETRY: Duration = Duration::from_secs(1);
/// The longest pause between two attempts.
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// Attempts in a row that failed.
#[derive(Clone, Copy, Debug)]
pub(super) struct FailedAttempts {
    pub(super) count: u32,
    /// When to try again.
    pub(super) next: Instant,
    /// Whether nothing is written before.
    pub(super) is_held: bool,
}

impl FailedAttempts {
    /// Adds an attempt that failed at `now`: pauses of 1, 2, 4, ... s. A first conflict causes no pause: the watch shows the
    /// newer object.
    pub(super) fn after(previous: Option<Self>, is_conflict: bool, now: Instant) -> Self {
        let count = previous
            .map_or(0, |previous| previous.count)
            .saturating_add(1);
        let pause = RETRY
            .saturating_mul(1 << (count - 1).min(16))
            .min(MAX_PAUSE);
        Self {
            count,
            next: now + pause,
            is_held: !is_conflict || count > 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f38_failed_writes_on_the_host_back_off() {
        let start = Instant::now();
        let mut failed = None;
        for pause in [1, 2, 4, 8, 16, 32, 60, 60] {
            let next = FailedAttempts::after(failed, pause == 1, start);
            assert_eq!(next.next - start, Duration::from_secs(pause));
            assert_eq!(next.is_held, pause > 1, "the first was a conflict");
            failed = Some(next);
        }
    }
}
