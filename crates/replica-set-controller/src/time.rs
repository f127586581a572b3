//! Arithmetic of points in time.

use std::time::Duration;

use jiff::Timestamp;

/// `time` plus `duration`, or the end of time.
pub(crate) fn after(time: Timestamp, duration: Duration) -> Timestamp {
    time.saturating_add(duration).unwrap_or(Timestamp::MAX)
}

/// The earliest time at which something changes by itself.
#[derive(Debug, Default)]
pub(crate) struct Next(Option<Timestamp>);

impl Next {
    /// Something changes at `time`. It is in the past if `now` is not before it: then it has changed.
    pub(crate) fn at(&mut self, time: Timestamp, now: Timestamp) {
        if time > now {
            self.0 = Some(self.0.map_or(time, |earliest| earliest.min(time)));
        }
    }

    pub(crate) fn get(&self) -> Option<Timestamp> {
        self.0
    }
}
