//! Whether a controller works without a pause. Then hardly any simulated time passes, and nothing would end the run.

use parking_lot::Mutex;
use tokio::time::Duration;

/// More readings of the clock than a federation causes in a second while it is busiest.
const MAX_READINGS: u32 = 100_000;

/// Counts the readings of the clock within each second.
#[derive(Debug, Default)]
pub(crate) struct Pace(Mutex<Second>);

#[derive(Debug, Default)]
struct Second {
    second: u64,
    readings: u32,
}

impl Pace {
    /// Counts a reading at this time since the start.
    ///
    /// # Panics
    ///
    /// If there are too many within a second: the controller that reads the clock fails.
    pub(crate) fn count(&self, elapsed: Duration) {
        let mut state = self.0.lock();
        if state.second != elapsed.as_secs() {
            *state = Second {
                second: elapsed.as_secs(),
                readings: 0,
            };
        }
        state.readings += 1;
        let readings = state.readings;
        drop(state);
        assert!(
            readings <= MAX_READINGS,
            "the controller works without a pause: {readings} readings of the clock within a second"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_count_within_a_second() {
        let pace = Pace::default();
        for second in 0..3 {
            for _ in 0..MAX_READINGS {
                pace.count(Duration::from_secs(second));
            }
        }
        let one_more = || pace.count(Duration::from_millis(2999));
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(one_more)).is_err());
    }
}
