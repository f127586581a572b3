//! Writes of a FederatedReplicaSet on the host that fail: tried again with backoff, reported once.

use controller_base::calls::CallError;
use fedrs_api::ObjectKey;
use tokio::time::Instant;

use super::{Reconciler, failed_attempts::FailedAttempts};
use crate::frs_store::Entry;

impl Reconciler {
    /// Whether the object may be written now. If not, it is checked again once it may.
    pub(super) fn may_write_host(&self, key: &ObjectKey) -> bool {
        let now = Instant::now();
        let (failed, records) = (self.cache).of_key(key, |cached| {
            (cached.failed_attempts, cached.records.pause(now))
        });
        let failed = failed.filter(|failed| failed.is_held && now < failed.next);
        let Some(pause) = failed.map(|failed| failed.next - now).max(records) else {
            return true;
        };
        self.queue.add_check(key.clone(), pause);
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
