//! Pauses that grow with each failure, with jitter from a seed so that simulations repeat.

use std::time::Duration;

use rand::{RngExt, SeedableRng, rngs::StdRng};

/// Exponential backoff with jitter.
#[derive(Debug)]
pub struct Backoff {
    first: Duration,
    max: Duration,
    next: Duration,
    random: StdRng,
}

impl Backoff {
    /// Pauses from `first`, doubled each time, up to `max`. The same `seed` gives the same pauses.
    #[must_use]
    pub fn new(first: Duration, max: Duration, seed: u64) -> Self {
        Self {
            first,
            max,
            next: first,
            random: StdRng::seed_from_u64(seed),
        }
    }

    /// The next pause, less up to half of it.
    pub fn next_pause(&mut self) -> Duration {
        let pause = self.next.min(self.max);
        self.next = pause.saturating_mul(2);
        self.jitter(pause, 0.5)
    }

    /// After a success: the next pause is the first again.
    pub fn reset(&mut self) {
        self.next = self.first;
    }

    /// `whole`, less up to `part` of it (0 to 1).
    pub fn jitter(&mut self, whole: Duration, part: f64) -> Duration {
        whole.mul_f64(1.0 - part * self.random.random::<f64>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_their_maximum_and_start_over() {
        let mut backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(30), 1);
        for whole_ms in [500, 1000, 2000, 4000, 8000, 16000, 30000, 30000] {
            let pause = backoff.next_pause();
            let whole = Duration::from_millis(whole_ms);
            assert!(
                pause <= whole && pause >= whole / 2,
                "{pause:?} of {whole:?}"
            );
        }
        backoff.reset();
        assert!(backoff.next_pause() <= Duration::from_millis(500));
    }

    #[test]
    fn the_seed_decides_the_pauses() {
        let pauses = |seed| {
            let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(30), seed);
            (0..5).map(|_| backoff.next_pause()).collect::<Vec<_>>()
        };
        assert_eq!(pauses(1), pauses(1));
        assert_ne!(pauses(1), pauses(2));
    }
}
