//! Pauses after failures, longer and longer.

use std::time::Duration;

use controller_base::retry::pause;
use tokio::time::Instant;

/// When something that failed is tried again.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    failures: u32,
    retry_at: Option<Instant>,
}

impl Backoff {
    /// Whether it has to wait.
    pub(crate) fn waits(&self) -> bool {
        self.retry_at.is_some_and(|at| at > Instant::now())
    }

    /// It is done.
    pub(crate) fn succeed(&mut self) {
        *self = Self::default();
    }

    /// It has failed.
    pub(crate) fn fail(&mut self) {
        self.retry_at = Some(Instant::now() + pause(self.failures));
        self.failures = self.failures.saturating_add(1);
    }

    /// The time until it is tried again.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        let retry_at = self.retry_at?;
        Some(retry_at.saturating_duration_since(Instant::now()))
    }
}
