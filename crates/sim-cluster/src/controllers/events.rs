//! Events: what controllers tell people about objects. `object, reason, message -> Event`, counted when it repeats.
//!
//! ```text
//! too many about one object? dropped : ten that differ in their message alone? combined : as it is
//!     -> told before? its count raised : a new Event
//! ```
//!
//! The rules are client-go's. The scheduler writes events in their newer form, which is counted as a series and never combined.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::resources::{Kind, kinds};
use crate::status::Status;

use super::object::{micro_stamp, name, namespace, stamp, uid};
use super::world::World;

/// Like events within this time are counted as one.
const WINDOW: SignedDuration = SignedDuration::from_mins(10);
/// So many that differ in their message alone are combined.
const SIMILAR: usize = 10;
/// So many about one object pass at once; after that one in [`REFILL`].
const BURST: u32 = 25;
const REFILL: SignedDuration = SignedDuration::from_mins(5);
/// At most so many of each are remembered, however recent; then all are forgotten. A few per replica set and node of a large
/// cluster.
const REMEMBERED: usize = 8_192;
/// A series is written at each so-manieth time at the latest.
const SERIES_WRITTEN: u64 = 16;
/// The component whose events are in the newer form.
const SCHEDULER: &str = "default-scheduler";

/// What an event says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Note<'a> {
    /// The component that says it: `replicaset-controller`.
    pub(crate) source: &'a str,
    /// `Normal` or `Warning`.
    pub(crate) kind: &'a str,
    /// `SuccessfulCreate`.
    pub(crate) reason: &'a str,
    /// For people.
    pub(crate) message: &'a str,
}

/// The events of the last minutes.
#[derive(Debug, Default)]
pub(crate) struct Events {
    told: BTreeMap<String, Told>,
    similar: BTreeMap<String, Similar>,
    allowances: BTreeMap<String, Allowance>,
    written: u64,
    /// When what no longer matters was last forgotten.
    swept: Option<Timestamp>,
}

#[derive(Debug)]
struct Told {
    event: String,
    count: u64,
    last: Timestamp,
}

#[derive(Debug)]
struct Similar {
    messages: BTreeSet<String>,
    last: Timestamp,
}

#[derive(Debug)]
struct Allowance {
    left: u32,
    refilled: Timestamp,
}

impl Allowance {
    /// How many more may be said by now than when it was last refilled.
    fn earned(&self, now: Timestamp) -> u32 {
        let earned = now.duration_since(self.refilled).as_secs() / REFILL.as_secs();
        u32::try_from(earned).unwrap_or_default()
    }
}

impl Events {
    /// Forgets, now and then, what is answered as if it had never been: or each pod that there ever was would stay.
    fn sweep(&mut self, now: Timestamp) {
        let is_over = |since: Timestamp| now.duration_since(since) > WINDOW;
        if !is_over(*self.swept.get_or_insert(now)) {
            return;
        }
        self.swept = Some(now);
        self.told.retain(|_, told| !is_over(told.last));
        self.similar.retain(|_, similar| !is_over(similar.last));
        self.allowances
            .retain(|_, allowance| allowance.left.saturating_add(allowance.earned(now)) < BURST);
    }

    /// Whether a component may say one thing more about an object.
    fn allows(&mut self, object: &str, source: &str, now: Timestamp) -> bool {
        let key = format!("{object} {source}");
        let full = Allowance {
            left: BURST,
            refilled: now,
        };
        let allowance = remember(&mut self.allowances, key, full);
        let earned = allowance.earned(now);
        if earned > 0 {
            allowance.left = allowance.left.saturating_add(earned).min(BURST);
            allowance.refilled = now;
        }
        let passes = allowance.left > 0;
        allowance.left = allowance.left.saturating_sub(1);
        passes
    }

    /// The key under which the event is counted and its message, combined if there were many like it.
    fn combine(&mut self, object: &str, note: Note<'_>, now: Timestamp) -> (String, String) {
        let key = format!("{object} {} {} {}", note.source, note.kind, note.reason);
        let own = (format!("{key} {}", note.message), note.message.to_owned());
        if note.source == SCHEDULER {
            return own;
        }
        let empty = Similar {
            messages: BTreeSet::new(),
            last: now,
        };
        let similar = remember(&mut self.similar, key.clone(), empty);
        if now.duration_since(similar.last) > WINDOW {
            similar.messages.clear();
        }
        similar.last = now;
        similar.messages.insert(note.message.to_owned());
        if similar.messages.len() < SIMILAR {
            return own;
        }
        similar.messages.pop_first();
        (
            key,
            format!("(combined from similar events): {}", note.message),
        )
    }
}

fn remember<T>(map: &mut BTreeMap<String, T>, key: String, new: T) -> &mut T {
    if map.len() >= REMEMBERED && !map.contains_key(&key) {
        map.clear();
    }
    map.entry(key).or_insert(new)
}

impl World {
    /// Writes an event about `of`. What the API refuses (a namespace that is going) is lost, as events may be.
    pub(crate) fn note(&mut self, about: &Kind, of: &Value, note: Note<'_>) {
        let now = self.now();
        self.events.sweep(now);
        if !self.events.allows(uid(of), note.source, now) {
            return;
        }
        let (key, message) = self.events.combine(uid(of), note, now);
        let note = Note {
            message: &message,
            ..note
        };
        if let Some(told) = self.events.told.get_mut(&key)
            && now.duration_since(told.last) < WINDOW
        {
            told.count += 1;
            told.last = now;
            let (event, count) = (told.event.clone(), told.count);
            if self.count_up(of, &event, count, note).is_ok() {
                return;
            }
        }
        self.events.written += 1;
        // Real names end in the nanosecond of the first event; here they are unique without being random.
        let moment = u64::try_from(now.as_nanosecond())
            .unwrap_or_default()
            .wrapping_add(self.events.written);
        let event = format!("{}.{moment:x}", name(of));
        if self
            .create(
                program(note.source),
                &kinds::EVENTS,
                describe(about, of, note, &event, now),
            )
            .is_ok()
        {
            let first = Told {
                event: String::new(),
                count: 0,
                last: now,
            };
            *remember(&mut self.events.told, key, first) = Told {
                event,
                count: 1,
                last: now,
            };
        }
    }

    fn count_up(&self, of: &Value, event: &str, count: u64, note: Note<'_>) -> Result<(), Status> {
        let now = self.now();
        let is_series = note.source == SCHEDULER;
        // A series is counted in memory and written now and then, or pods that wait would cost a write at each try;
        // often enough that it does not expire meanwhile.
        if is_series && !count.is_power_of_two() && !count.is_multiple_of(SERIES_WRITTEN) {
            return Ok(());
        }
        let written = self
            .api
            .modify(&kinds::EVENTS, None, event_namespace(of), event, |event| {
                if is_series {
                    event["series"] = json!({"count": count, "lastObservedTime": micro_stamp(now)});
                } else {
                    event["count"] = json!(count);
                    event["lastTimestamp"] = json!(stamp(now));
                    event["message"] = json!(note.message);
                }
            });
        written.map(|_| ())
    }
}

/// The program that a component is part of: it names the writer.
fn program(source: &str) -> &str {
    match source {
        SCHEDULER => "kube-scheduler",
        "kubelet" => source,
        _ => "kube-controller-manager",
    }
}

/// Events about cluster-scoped objects are kept in `default`.
fn event_namespace(of: &Value) -> &str {
    match namespace(of) {
        "" => "default",
        namespace => namespace,
    }
}

fn describe(about: &Kind, of: &Value, note: Note<'_>, event_name: &str, now: Timestamp) -> Value {
    let mut involved = json!({
        "apiVersion": about.api_version(), "kind": about.kind, "name": name(of), "uid": uid(of),
        "resourceVersion": of["metadata"]["resourceVersion"],
    });
    if about.namespaced {
        involved["namespace"] = json!(namespace(of));
    }
    let mut event = json!({
        "metadata": {"name": event_name, "namespace": event_namespace(of)},
        "involvedObject": involved, "reason": note.reason, "message": note.message, "type": note.kind,
        "source": {"component": note.source}, "reportingComponent": note.source, "reportingInstance": "",
        "firstTimestamp": stamp(now), "lastTimestamp": stamp(now), "count": 1, "eventTime": null,
    });
    // The scheduler alone writes the newer form, which has a precise time and an action.
    if note.source == SCHEDULER {
        event["eventTime"] = json!(micro_stamp(now));
        event["action"] = json!(if note.kind == "Normal" {
            "Binding"
        } else {
            "Scheduling"
        });
        event["reportingInstance"] = json!("default-scheduler-sim");
        event["source"] = json!({});
        for field in ["firstTimestamp", "lastTimestamp"] {
            event[field] = Value::Null;
        }
        event.as_object_mut().map(|fields| fields.remove("count"));
    }
    event
}

#[cfg(test)]
mod tests {
    use super::*;

    fn minute(m: i64) -> Timestamp {
        Timestamp::from_second(m * 60).unwrap()
    }

    #[test]
    fn the_tenth_of_many_alike_is_combined() {
        let mut events = Events::default();
        let combined = |events: &mut Events, number: u32, at: i64| {
            let message = format!("Created pod: {number}");
            let note = Note {
                source: "a",
                kind: "Normal",
                reason: "SuccessfulCreate",
                message: &message,
            };
            events
                .combine("uid", note, minute(at))
                .1
                .starts_with("(combined from similar events): ")
        };
        assert!((0..9).all(|number| !combined(&mut events, number, 0)));
        assert!((9..20).all(|number| combined(&mut events, number, 0)));
        assert!(
            !combined(&mut events, 20, 11),
            "after a while it starts anew"
        );
    }

    #[test]
    fn an_object_that_has_too_much_said_about_it_is_left_in_peace() {
        let mut events = Events::default();
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
    fn what_was_said_is_forgotten_and_who_said_too_much_is_not() {
        let mut events = Events::default();
        events.sweep(minute(0));
        for _ in 0..25 {
            assert!(events.allows("talks", "a", minute(0)));
        }
        assert!(events.allows("spoke", "a", minute(0)));
        let note = Note {
            source: "a",
            kind: "Normal",
            reason: "Created",
            message: "b",
        };
        events.combine("spoke", note, minute(0));
        events.sweep(minute(10));
        assert_eq!(
            (events.allowances.len(), events.similar.len()),
            (2, 1),
            "not yet"
        );
        events.sweep(minute(11));
        assert_eq!(events.similar.len(), 0);
        assert_eq!(events.allowances.keys().collect::<Vec<_>>(), ["talks a"]);
        let allowed = (0..9).filter(|_| events.allows("talks", "a", minute(11)));
        assert_eq!(allowed.count(), 2, "one in five minutes");
    }
}
