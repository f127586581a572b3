//! The source of time: an epoch plus the time that tokio's clock has counted since.
//!
//! On a paused tokio runtime the clock advances with it, so that runs with the same seed and epoch write the same
//! timestamps.

use std::sync::atomic::{AtomicI64, Ordering};

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// The time of one cluster.
#[derive(Debug)]
pub struct Clock {
    epoch: Timestamp,
    started: Instant,
    /// The sum of all [`Clock::step`]s in milliseconds.
    stepped_ms: AtomicI64,
}

impl Clock {
    /// Starts at `epoch` and follows tokio's clock from there.
    ///
    /// # Panics
    /// Outside of a tokio runtime only when its clock is paused.
    pub fn starting_at(epoch: Timestamp) -> Self {
        Self {
            epoch,
            started: Instant::now(),
            stepped_ms: AtomicI64::new(0),
        }
    }

    /// The time now.
    pub fn now(&self) -> Timestamp {
        let elapsed = SignedDuration::try_from(self.started.elapsed())
            .expect("a process does not run for 292 billion years");
        let stepped = SignedDuration::from_millis(self.stepped_ms.load(Ordering::Relaxed));
        self.epoch
            .saturating_add(elapsed)
            .and_then(|time| time.saturating_add(stepped))
            .unwrap_or(self.epoch)
    }

    /// Injects a fault: moves the clock by `by`, which may be negative, as a correction of a wrong clock does.
    pub fn step(&self, by: SignedDuration) {
        let by_ms = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        self.stepped_ms.fetch_add(by_ms, Ordering::Relaxed);
    }

    /// Takes all [`step`](Self::step)s back.
    pub fn correct(&self) {
        self.stepped_ms.store(0, Ordering::Relaxed);
    }

    /// Now as Kubernetes' `Time`: whole seconds, `2026-11-01T12:00:00Z`.
    pub fn now_time(&self) -> String {
        to_time(self.now())
    }
}

/// `time` as Kubernetes' `Time`: whole seconds in UTC.
pub(crate) fn to_time(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// `time` as Kubernetes' `MicroTime`: `2026-11-01T12:00:00.000000Z`.
pub(crate) fn to_micro_time(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

/// Parses Kubernetes' `Time` or `MicroTime`; `None` for anything else.
pub(crate) fn parse_time(text: &str) -> Option<Timestamp> {
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn follows_the_paused_clock() {
        let clock = Clock::starting_at("2026-11-01T12:00:00Z".parse().unwrap());
        assert_eq!(clock.now_time(), "2026-11-01T12:00:00Z");
        tokio::time::advance(std::time::Duration::from_millis(61_500)).await;
        assert_eq!(clock.now_time(), "2026-11-01T12:01:01Z");
        assert_eq!(to_micro_time(clock.now()), "2026-11-01T12:01:01.500000Z");
        clock.step(SignedDuration::from_secs(-2));
        assert_eq!(clock.now_time(), "2026-11-01T12:00:59Z");
    }
}
