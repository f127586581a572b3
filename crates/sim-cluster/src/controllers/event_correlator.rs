//! Which events are written, combined, counted or dropped. The rules are client-go's `EventCorrelator`. Pure.
//!
//! ```text
//! too many about one object? drop : ten that differ only in their message? combine : keep
//!     -> written within ten minutes? count it : write it
//! ```

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

/// The component whose events are in the form of `events.k8s.io`.
pub(super) const SCHEDULER: &str = "default-scheduler";
/// Equal events within this time are counted as one.
const WINDOW: SignedDuration = SignedDuration::from_mins(10);
/// This many events that differ only in their message are combined.
const COMBINED_FROM: usize = 10;
/// The events about one object that pass at once; after that one in [`REFILL`].
const BURST: u32 = 25;
const REFILL: SignedDuration = SignedDuration::from_mins(5);
/// The most entries of each map; a full map is cleared. A few per ReplicaSet and node of a large cluster.
const ENTRIES_MAX: usize = 8_192;

/// An event that a controller wants to record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewEvent<'a> {
    /// The reporting component: `replicaset-controller`.
    pub(crate) component: &'a str,
    /// `Normal` or `Warning`.
    pub(crate) event_type: &'a str,
    /// `SuccessfulCreate`.
    pub(crate) reason: &'a str,
    /// The sentence for people.
    pub(crate) message: &'a str,
}

/// The events of the last minutes.
#[derive(Debug, Default)]
pub(super) struct EventCorrelator {
    written: BTreeMap<String, Written>,
    similar: BTreeMap<String, Similar>,
    allowances: BTreeMap<String, Allowance>,
    /// The number of events written so far.
    count: u64,
    last_sweep: Option<Timestamp>,
}

/// An event that was written, and how often it has occurred since.
#[derive(Debug)]
struct Written {
    name: String,
    count: u64,
    last: Timestamp,
}

/// The messages of events that are otherwise equal.
#[derive(Debug)]
struct Similar {
    messages: BTreeSet<String>,
    last: Timestamp,
}

/// A token bucket.
#[derive(Debug)]
struct Allowance {
    left: u32,
    refilled: Timestamp,
}

impl Allowance {
    /// The tokens earned since the last refill.
    fn earned(&self, now: Timestamp) -> u32 {
        let earned = now.duration_since(self.refilled).as_secs() / REFILL.as_secs();
        u32::try_from(earned).unwrap_or_default()
    }
}

impl EventCorrelator {
    /// The key under which an event is counted, and its message; `None` if the event is to be dropped.
    pub(super) fn correlate(
        &mut self,
        object_uid: &str,
        event: NewEvent<'_>,
        now: Timestamp,
    ) -> Option<(String, String)> {
        self.sweep(now);
        self.allows(object_uid, event.component, now)
            .then(|| self.combine(object_uid, event, now))
    }

    /// Counts an event that was written before: its name, and how often it has occurred.
    pub(super) fn count_repeated(&mut self, key: &str, now: Timestamp) -> Option<(String, u64)> {
        let known = self.written.get_mut(key)?;
        if now.duration_since(known.last) >= WINDOW {
            return None;
        }
        known.count += 1;
        known.last = now;
        Some((known.name.clone(), known.count))
    }

    /// The number of the next event, which makes its name unique.
    pub(super) fn next_number(&mut self) -> u64 {
        self.count += 1;
        self.count
    }

    /// Remembers an event that was written under that name.
    pub(super) fn remember_written(&mut self, key: String, name: String, now: Timestamp) {
        let first = Written {
            name: String::new(),
            count: 0,
            last: now,
        };
        *entry(&mut self.written, key, first) = Written {
            name,
            count: 1,
            last: now,
        };
    }

    /// Removes the entries that no longer make a difference; otherwise there would be one for each pod that ever existed.
    fn sweep(&mut self, now: Timestamp) {
        let expired = |since: Timestamp| now.duration_since(since) > WINDOW;
        if !expired(*self.last_sweep.get_or_insert(now)) {
            return;
        }
        self.last_sweep = Some(now);
        self.written.retain(|_, written| !expired(written.last));
        self.similar.retain(|_, similar| !expired(similar.last));
        self.allowances
            .retain(|_, allowance| allowance.left.saturating_add(allowance.earned(now)) < BURST);
    }

    /// Whether a component may record one more event about an object.
    fn allows(&mut self, object_uid: &str, component: &str, now: Timestamp) -> bool {
        let full = Allowance {
            left: BURST,
            refilled: now,
        };
        let key = format!("{object_uid} {component}");
        let allowance = entry(&mut self.allowances, key, full);
        let earned = allowance.earned(now);
        if earned > 0 {
            allowance.left = allowance.left.saturating_add(earned).min(BURST);
            allowance.refilled = now;
        }
        let passes = allowance.left > 0;
        allowance.left = allowance.left.saturating_sub(1);
        passes
    }

    fn combine(
        &mut self,
        object_uid: &str,
        event: NewEvent<'_>,
        now: Timestamp,
    ) -> (String, String) {
        let NewEvent {
            component,
            event_type,
            reason,
            message,
        } = event;
        let key = format!("{object_uid} {component} {event_type} {reason}");
        let own = (format!("{key} {message}"), message.to_owned());
        if component == SCHEDULER {
            return own;
        }
        let empty = Similar {
            messages: BTreeSet::new(),
            last: now,
        };
        let similar = entry(&mut self.similar, key.clone(), empty);
        if now.duration_since(similar.last) > WINDOW {
            similar.messages.clear();
        }
        similar.last = now;
        similar.messages.insert(message.to_owned());
        if similar.messages.len() < COMBINED_FROM {
            return own;
        }
        similar.messages.pop_first();
        (key, format!("(combined from similar events): {message}"))
    }
}

fn entry<T>(map: &mut BTreeMap<String, T>, key: String, new: T) -> &mut T {
    if map.len() >= ENTRIES_MAX && !map.contains_key(&key) {
        map.clear();
    }
    map.entry(key).or_insert(new)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn minute(minute: i64) -> Timestamp {
        Timestamp::from_second(minute * 60).unwrap()
    }

    #[test]
    fn the_tenth_similar_event_is_combined() {
        let mut events = EventCorrelator::default();
        let combined = |events: &mut EventCorrelator, number: u32, at: i64| {
            let message = format!("Created pod: {number}");
            let event = NewEvent {
                component: "a",
                event_type: "Normal",
                reason: "SuccessfulCreate",
                message: &message,
            };
            let (_, message) = events.combine("uid", event, minute(at));
            message.starts_with("(combined from similar events): ")
        };
        assert!((0..9).all(|number| !combined(&mut events, number, 0)));
        assert!((9..20).all(|number| combined(&mut events, number, 0)));
        assert!(
            !combined(&mut events, 20, 11),
            "similar events are combined again after the window has passed"
        );
    }

    #[test]
    fn events_about_one_object_are_rate_limited() {
        let mut events = EventCorrelator::default();
        let allowed = (0..40)
            .filter(|_| events.allows("uid", "a", minute(0)))
            .count();
        assert_eq!(allowed, 25);
        assert!(events.allows("other", "a", minute(0)));
        assert!(!events.allows("uid", "a", minute(4)));
        assert!(events.allows("uid", "a", minute(5)));
        assert!(!events.allows("uid", "a", minute(6)));
    }

    #[test]
    fn a_sweep_keeps_exhausted_allowances() {
        let mut events = EventCorrelator::default();
        events.sweep(minute(0));
        for _ in 0..25 {
            assert!(events.allows("exhausted", "a", minute(0)));
        }
        assert!(events.allows("once", "a", minute(0)));
        let event = NewEvent {
            component: "a",
            event_type: "Normal",
            reason: "Created",
            message: "b",
        };
        events.combine("once", event, minute(0));
        events.sweep(minute(10));
        let sizes = (events.allowances.len(), events.similar.len());
        assert_eq!(sizes, (2, 1), "entries expire after the window only");
        events.sweep(minute(11));
        assert_eq!(events.similar.len(), 0);
        let keys: Vec<_> = events.allowances.keys().collect();
        assert_eq!(keys, ["exhausted a"]);
        let allowed = (0..9).filter(|_| events.allows("exhausted", "a", minute(11)));
        assert_eq!(allowed.count(), 2, "one event is allowed in five minutes");
    }
}
