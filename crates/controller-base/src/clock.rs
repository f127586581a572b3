//! The source of the current time. It is steady: periods last as long as they should.
//!
//! ```text
//! steady time = the machine's time at the start + what the monotonic clock has counted since + corrections
//! ```
//!
//! Grace periods, backoffs and ages are differences of two readings, and some of them are in a status, where a later process
//! reads them. A correction of the machine's clock, or hours in which the machine was suspended, must not end or prolong
//! them. So the steady time is slewed towards the machine's clock: people and later processes read times that become right.

use std::{fmt, sync::Arc};

use jiff::{RoundMode, SignedDuration, Timestamp, TimestampRound, Unit};
use parking_lot::Mutex;
use tokio::time::Instant;

/// The steady time is corrected by at most one part in so many of the time that passes: a period of 60 s takes 54 to 66 s.
pub const SLEW_DIVISOR: i32 = 10;

/// The first whole second that is not before `time`: objects keep times without fractions.
#[must_use]
pub fn whole_seconds(time: Timestamp) -> Timestamp {
    let up = TimestampRound::new()
        .smallest(Unit::Second)
        .mode(RoundMode::Ceil);
    time.round(up).unwrap_or(time)
}

/// Returns the current time. Cheap to clone; clones agree.
#[derive(Clone)]
pub struct Clock(Arc<Shared>);

struct Shared {
    machine: Box<dyn Fn() -> Timestamp + Send + Sync>,
    last: Mutex<Reading>,
}

/// One moment by both clocks.
struct Reading {
    at: Instant,
    time: Timestamp,
}

impl Clock {
    /// The machine's clock.
    #[must_use]
    pub fn system() -> Self {
        Self::new(Timestamp::now)
    }

    /// A machine's clock, as `machine` reads it; tokio's clock is the monotonic one.
    pub fn new(machine: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        let last = Reading {
            at: Instant::now(),
            time: machine(),
        };
        Self(Arc::new(Shared {
            machine: Box::new(machine),
            last: Mutex::new(last),
        }))
    }

    /// The steady time: for everything that lasts.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        let machine = self.machine();
        let mut last = self.0.last.lock();
        let at = Instant::now();
        let passed = SignedDuration::try_from(at.saturating_duration_since(last.at));
        let passed = passed.unwrap_or(SignedDuration::MAX);
        let steady = last.time.checked_add(passed).unwrap_or(Timestamp::MAX);
        let most = passed / SLEW_DIVISOR;
        let correction = machine.duration_since(steady).clamp(-most, most);
        let time = steady.checked_add(correction).unwrap_or(steady);
        *last = Reading { at, time };
        time
    }

    /// The machine's time: for what another machine has dated absolutely, such as the end of a token.
    #[must_use]
    pub fn machine(&self) -> Timestamp {
        (self.0.machine)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Clock({})", self.now())
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicI64, Ordering},
        time::Duration,
    };

    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn f33_a_jump_of_the_machines_clock_changes_no_duration_and_is_worked_off() {
        for jump in [3600, -3600] {
            let (started, jumped) = (Instant::now(), Arc::new(AtomicI64::new(0)));
            let clock = Clock::new({
                let jumped = Arc::clone(&jumped);
                move || {
                    let jumped = SignedDuration::from_secs(jumped.load(Ordering::Relaxed));
                    Timestamp::UNIX_EPOCH + started.elapsed() + jumped
                }
            });
            let before = clock.now();
            advance(Duration::from_secs(60)).await;
            assert_eq!(clock.now().duration_since(before).as_secs(), 60);
            jumped.store(jump, Ordering::Relaxed);
            assert_eq!(clock.now().duration_since(before).as_secs(), 60);
            advance(Duration::from_secs(60)).await;
            let passed = clock.now().duration_since(before).as_secs();
            assert_eq!(passed, 120 + 6 * jump.signum());
            assert_eq!(clock.machine().duration_since(before).as_secs(), 120 + jump);
            advance(Duration::from_secs(36_000)).await;
            assert_eq!(clock.now(), clock.machine());
        }
    }
}
