//! When something changes by itself.

pub(crate) use federated_rollout::after;
use jiff::Timestamp;

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
