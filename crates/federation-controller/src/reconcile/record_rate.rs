//! How often new loans are recorded. Each record causes a check at once, so that one which never settles would write without a
//! pause.

use std::time::Duration;

use tokio::time::Instant;

/// Records that may follow each other without a pause.
const AT_ONCE: u32 = 30;
/// The time between two records after these.
const PAUSE: Duration = Duration::from_secs(1);

/// The time of the next record, if they came one after the other with pauses.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RecordRate(Option<Instant>);

impl RecordRate {
    /// Adds a record at `now`.
    pub(super) fn add(&mut self, now: Instant) {
        self.0 = Some(self.0.map_or(now, |next| next.max(now)) + PAUSE);
    }

    /// How long nothing is recorded, if it is too early at `now`.
    pub(super) fn pause(self, now: Instant) -> Option<Duration> {
        let ahead = self.0?.saturating_duration_since(now);
        let pause = ahead.saturating_sub(PAUSE * (AT_ONCE - 1));
        (!pause.is_zero()).then_some(pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn l14_records_that_never_settle_are_written_once_a_second() {
        let start = Instant::now();
        let mut rate = RecordRate::default();
        let mut written = Vec::new();
        for half_seconds in 0..120 {
            let now = start + Duration::from_millis(500) * half_seconds;
            while rate.pause(now).is_none() {
                rate.add(now);
                written.push(half_seconds);
            }
        }
        let at_once = written.iter().filter(|half_seconds| **half_seconds == 0);
        assert_eq!(at_once.count(), 30);
        let later: Vec<_> = (1..60).map(|second| second * 2).collect();
        assert_eq!(written[30..], later);
        let much_later = start + Duration::from_secs(3600);
        rate.add(much_later);
        assert_eq!(rate.pause(much_later), None);
    }
}
