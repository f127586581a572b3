//! Events: what controllers tell people about objects. `object, reason, message -> Event`, counted when it repeats.
//!
//! As in client-go: an event like one of the last minutes raises that one's count instead of adding another.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::resources::{Kind, kinds};
use crate::status::Status;

use super::object::{micro_stamp, name, namespace, stamp, uid};
use super::world::World;

/// Like events within this time are counted as one.
const WINDOW: Duration = Duration::from_mins(10);
/// At most so many are remembered for counting; then all are forgotten. A few per replica set and node of a large cluster.
const REMEMBERED: usize = 8_192;

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

/// The events of the last minutes, for counting.
#[derive(Debug, Default)]
pub(crate) struct Events {
    recent: BTreeMap<String, Recent>,
    written: u64,
}

#[derive(Debug)]
struct Recent {
    name: String,
    count: u64,
    last: Timestamp,
}

impl World {
    /// Writes an event about `of`. What the API refuses (a namespace that is going) is lost, as events may be.
    pub(crate) fn note(&mut self, about: &Kind, of: &Value, note: Note<'_>) {
        let now = self.now();
        let key = format!(
            "{} {} {} {} {}",
            uid(of),
            note.source,
            note.kind,
            note.reason,
            note.message
        );
        let window = jiff::SignedDuration::try_from(WINDOW).expect("ten minutes fit");
        if let Some(recent) = self
            .events
            .recent
            .get_mut(&key)
            .filter(|recent| now.duration_since(recent.last) < window)
        {
            recent.count += 1;
            recent.last = now;
            let (count, event) = (recent.count, recent.name.clone());
            if self.count_up(of, &event, count, now).is_ok() {
                return;
            }
        }
        self.events.written += 1;
        // Real names end in the nanosecond of the first event; unique here without being random.
        let moment = u64::try_from(now.as_nanosecond())
            .unwrap_or_default()
            .wrapping_add(self.events.written);
        let event_name = format!("{}.{moment:x}", name(of));
        let event = describe(about, of, note, &event_name, now);
        if self.create(note.source, &kinds::EVENTS, event).is_ok() {
            if self.events.recent.len() >= REMEMBERED {
                self.events.recent.clear();
            }
            self.events.recent.insert(
                key,
                Recent {
                    name: event_name,
                    count: 1,
                    last: now,
                },
            );
        }
    }

    fn count_up(&self, of: &Value, event: &str, count: u64, now: Timestamp) -> Result<(), Status> {
        let written = self
            .api
            .modify(&kinds::EVENTS, None, event_namespace(of), event, |event| {
                event["count"] = json!(count);
                event["lastTimestamp"] = json!(stamp(now));
            });
        written.map(|_| ())
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
    if note.source == "default-scheduler" {
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
