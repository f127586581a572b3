//! How old what the controller sees may be.

use std::collections::BTreeMap;

use tokio::time::{Duration, Instant};

/// From a change until the controller has seen it, decided, and its request has taken effect, when nothing disturbs it.
const USUAL: Duration = Duration::from_secs(2);
/// The requests that it may wait for in between.
const REQUESTS: u32 = 12;

/// What keeps the controller from seeing changes.
#[derive(Debug, Default)]
pub(in crate::local) struct Lag {
    /// What does at the moment, and since when.
    blind: BTreeMap<String, Instant>,
    /// When it was blind before: since when, and until when.
    was_blind: Vec<(Instant, Instant)>,
    /// How much longer responses take, and how much longer they took for a while.
    latency: Duration,
}

impl Lag {
    /// Something keeps it from seeing changes from now on, or no longer.
    pub(in crate::local) fn put(&mut self, what: &str, on: bool) {
        let now = Instant::now();
        if on {
            self.blind.entry(what.to_owned()).or_insert(now);
        } else if let Some(since) = self.blind.remove(what) {
            self.was_blind.push((since, now));
        }
    }

    /// Something keeps it from seeing changes until `until`.
    pub(in crate::local) fn put_until(&mut self, until: Instant) {
        self.was_blind.push((Instant::now(), until));
    }

    /// Responses take this much longer from now on.
    pub(in crate::local) fn slow(&mut self, latency: Duration) {
        let before = std::mem::replace(&mut self.latency, latency);
        if before > latency {
            // Requests of before are still under way.
            self.was_blind
                .push((Instant::now(), Instant::now() + before * REQUESTS));
        }
    }

    /// What it knew of at `time`, at least.
    pub(in crate::local) fn before(&self, time: Instant) -> Instant {
        back(time, USUAL + self.latency * REQUESTS)
    }

    /// The time from which on it knows everything.
    pub(in crate::local) fn since(&self) -> Instant {
        let usual = USUAL + self.latency * REQUESTS;
        let mut since = back(Instant::now(), usual);
        // What has ended only just may have hidden what another one hid before.
        loop {
            let ended = self.was_blind.iter().filter(|(_, until)| *until >= since);
            let all = self.blind.values().chain(ended.map(|(since, _)| since));
            let first = all.map(|first| back(*first, usual)).min();
            match first {
                Some(first) if first < since => since = first,
                _ => return since,
            }
        }
    }
}

fn back(time: Instant, by: Duration) -> Instant {
    time.checked_sub(by).unwrap_or(time)
}
