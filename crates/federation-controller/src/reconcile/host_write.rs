//! Writes of a FederatedReplicaSet on the host that fail: tried again with backoff, reported once.

use std::time::Duration;

use fedrs_api::ObjectKey;
use tokio::time::Instant;

use super::{RETRY, Reconciler};
use crate::{calls::CallError, frs_store::Entry};

/// The longest pause between two attempts.
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// Attempts in a row that failed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FailedAttempts {
    count: u32,
    /// When to try again.
    next: Instant,
    /// Whether nothing is written before.
    is_held: bool,
}

impl FailedAttempts {
    /// One more at `now`: pauses of 1, 2, 4, ... s. A first conflict holds nothing back: the watch shows the newer object.
    fn after(previous: Option<Self>, is_conflict: bool, now: Instant) -> Self {
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

impl Reconciler {
    /// Whether the object may be written now. If not, it is checked again once it may.
    pub(super) fn may_write_host(&self, key: &ObjectKey) -> bool {
        let now = Instant::now();
        let failed = self.cache.of_key(key, |cached| cached.failed_attempts);
        let Some(failed) = failed.filter(|failed| failed.is_held && now < failed.next) else {
            return true;
        };
        self.queue.add_check(key.clone(), failed.next - now);
        false
    }

    /// A write failed: counts and logs it, and has the object checked again.
    pub(super) fn retry_host_write(
        &self,
        key: &ObjectKey,
        entry: &Entry,
        error: &CallError,
        message: &str,
    ) {
        let now = Instant::now();
        let is_conflict = error.code() == Some(409) || error.is_failed_test();
        let failed = self.cache.of_object(key, entry, |cached| {
            let failed = FailedAttempts::after(cached.failed_attempts, is_conflict, now);
            cached.failed_attempts = Some(failed);
            failed
        });
        self.metrics.host_write_failures.inc();
        if failed.count == if is_conflict { 3 } else { 1 } {
            tracing::warn!(frs = %key, %error, "{message}; retrying with backoff");
        } else {
            tracing::debug!(frs = %key, %error, failures = failed.count, "{message}");
        }
        self.queue.add_check(key.clone(), failed.next - now);
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
