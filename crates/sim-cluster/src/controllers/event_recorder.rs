//! Recording of events: object, reason, message -> `Event`, whose count rises when it occurs again.
//!
//! What is combined or dropped is the correlator's decision. The scheduler records events in the form of `events.k8s.io`,
//! which are counted as a series and never combined.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::context::Context;
use super::event_correlator::{NewEvent, SCHEDULER};
use crate::clock::{to_micro_time, to_time};
use crate::object::{name, namespace, uid};
use crate::resources::{Kind, kinds};
use crate::status::Status;

/// A series is written at every occurrence whose number this divides, or that is a power of two.
const SERIES_WRITTEN: u64 = 16;

impl Context {
    /// Records an event about an object. An event that the API rejects (the namespace is terminating) is lost: events are
    /// best effort.
    pub(crate) fn record_event(&mut self, kind: &Kind, object: &Value, event: NewEvent<'_>) {
        let now = self.now();
        let Some((key, message)) = self.events.correlate(uid(object), event, now) else {
            return;
        };
        let event = NewEvent {
            message: &message,
            ..event
        };
        if let Some((name, count)) = self.events.count_repeated(&key, now)
            && self.write_count(object, &name, count, event).is_ok()
        {
            return;
        }
        // client-go's names end in the nanosecond of the first event; here a number makes them unique without randomness.
        let moment = u64::try_from(now.as_nanosecond())
            .unwrap_or_default()
            .wrapping_add(self.events.next_number());
        let event_name = format!("{}.{moment:x}", name(object));
        let body = describe(kind, object, event, &event_name, now);
        let created = self.create(program(event.component), &kinds::EVENTS, body);
        if created.is_ok() {
            self.events.remember_written(key, event_name, now);
        }
    }

    fn write_count(
        &self,
        object: &Value,
        event_name: &str,
        count: u64,
        new: NewEvent<'_>,
    ) -> Result<(), Status> {
        let now = self.now();
        let is_series = new.component == SCHEDULER;
        // A series is counted in memory and written now and then: a pending pod must not cost a write at every attempt, but
        // the event must not expire meanwhile.
        if is_series && !count.is_power_of_two() && !count.is_multiple_of(SERIES_WRITTEN) {
            return Ok(());
        }
        let namespace = event_namespace(object);
        let written = self
            .api
            .modify(&kinds::EVENTS, None, namespace, event_name, |event| {
                if is_series {
                    event["series"] =
                        json!({"count": count, "lastObservedTime": to_micro_time(now)});
                } else {
                    event["count"] = json!(count);
                    event["lastTimestamp"] = json!(to_time(now));
                    event["message"] = json!(new.message);
                }
            });
        written.map(|_| ())
    }
}

/// The program that runs a component; it is the field manager of the event.
fn program(component: &str) -> &str {
    match component {
        SCHEDULER => "kube-scheduler",
        "kubelet" => component,
        _ => "kube-controller-manager",
    }
}

/// Events about cluster-scoped objects are in the namespace `default`.
fn event_namespace(object: &Value) -> &str {
    match namespace(object) {
        "" => "default",
        namespace => namespace,
    }
}

fn describe(
    kind: &Kind,
    object: &Value,
    new: NewEvent<'_>,
    event_name: &str,
    now: Timestamp,
) -> Value {
    let mut involved = json!({
        "apiVersion": kind.api_version(), "kind": kind.kind, "name": name(object), "uid": uid(object),
        "resourceVersion": object["metadata"]["resourceVersion"],
    });
    if kind.namespaced {
        involved["namespace"] = json!(namespace(object));
    }
    let mut event = json!({
        "metadata": {"name": event_name, "namespace": event_namespace(object)},
        "involvedObject": involved, "reason": new.reason, "message": new.message, "type": new.event_type,
        "source": {"component": new.component}, "reportingComponent": new.component, "reportingInstance": "",
        "firstTimestamp": to_time(now), "lastTimestamp": to_time(now), "count": 1, "eventTime": null,
    });
    // Only the scheduler writes the form of `events.k8s.io`, which has a precise time and an action.
    if new.component == SCHEDULER {
        event["eventTime"] = json!(to_micro_time(now));
        event["action"] = json!(if new.event_type == "Normal" {
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
