//! What the lines of a trace say of changes and requests.

use std::{collections::BTreeSet, fmt::Write as _};

use http::Uri;
use serde_json::Value;
use sim_cluster::{Change, kinds};

use crate::{checks::Observed, sim_federation::HOST};

/// The pods of a set that run: `web: 7 run (m1 4 of 4, m2 3 of 5)`.
pub(super) fn pods(observed: &Observed, set: &str) -> String {
    let mut total = 0;
    let mut parts = String::new();
    for (member, part) in observed.parts(set) {
        let (ready, desired) = (*part.ready.now(), *part.desired.now());
        total += ready;
        let comma = if parts.is_empty() { "" } else { ", " };
        let _ = write!(parts, "{comma}{member} {ready} of {desired}");
    }
    format!("{set}: {total} run ({parts})")
}

/// What the controller changed, if it is of interest.
pub(super) fn describe(cluster: &str, change: &Change) -> Option<String> {
    let name = &change.name;
    if [&*kinds::REPLICA_SETS, &*kinds::DEPLOYMENTS].contains(&&change.kind) {
        let kind = &change.kind.kind;
        let replicas = |object: &Option<sim_cluster::Object>| {
            object
                .as_ref()
                .map(|object| object["spec"]["replicas"].to_string())
        };
        return Some(match (replicas(&change.old), replicas(&change.new)) {
            (None, Some(now)) => format!("{cluster}: creates {kind} {name}, {now} replicas"),
            (Some(_), None) => format!("{cluster}: deletes {kind} {name}"),
            (Some(old), Some(now)) if old != now => {
                format!("{cluster}: scales {name} from {old} to {now}")
            }
            _ => {
                let fields = changed_in_spec(change);
                format!("{cluster}: changes {kind} {name}{fields}")
            }
        });
    }
    if change.kind.plural == "events" {
        let event = change.new.as_ref()?;
        let text = |field: &str| event[field].as_str().unwrap_or_default().to_owned();
        let about = event["involvedObject"]["name"].as_str().unwrap_or_default();
        return Some(format!(
            "event {about}: {}: {}",
            text("reason"),
            text("message")
        ));
    }
    let kind = &change.kind.kind;
    match (&change.old, &change.new) {
        (None, _) => Some(format!("{cluster}: creates {kind} {name}")),
        (_, None) => Some(format!("{cluster}: deletes {kind} {name}")),
        (Some(old), Some(new)) if cluster == HOST && old["status"] != new["status"] => {
            let (old, new) = (&old["status"], &new["status"]);
            let (before, now) = (conditions(old), conditions(new));
            let text = if now == before {
                changed_fields(old, new).join(", ")
            } else {
                now
            };
            Some(format!("status of {name}: {text}"))
        }
        _ if change.kind.plural == "leases" => None,
        _ => Some(format!("{cluster}: changes {kind} {name}")),
    }
}

/// What changed in the spec of a Deployment: `, .strategy.rollingUpdate.maxSurge=1`.
fn changed_in_spec(change: &Change) -> String {
    let (Some(old), Some(new)) = (&change.old, &change.new) else {
        return String::new();
    };
    if change.kind != *kinds::DEPLOYMENTS {
        return String::new();
    }
    let fields = changed_fields(&old["spec"], &new["spec"]);
    fields.iter().flat_map(|field| [", ", field]).collect()
}

/// The conditions of a status, with their reasons.
pub(crate) fn conditions(status: &Value) -> String {
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let words = conditions.map(|condition| {
        let text = |field: &str| condition[field].as_str().unwrap_or_default();
        format!("{}={} ({})", text("type"), text("status"), text("reason"))
    });
    words.collect::<Vec<_>>().join(", ")
}

/// The fields that differ, with their new values: `.clusters[1].capacity=4`.
pub(crate) fn changed_fields(old: &Value, new: &Value) -> Vec<String> {
    let nested = |name: String, old: &Value, new: &Value| {
        let fields = changed_fields(old, new);
        let fields = fields
            .into_iter()
            .map(move |field| format!("{name}{field}"));
        fields.collect::<Vec<_>>()
    };
    match (old, new) {
        _ if old == new => Vec::new(),
        (Value::Object(old), Value::Object(new)) => {
            let names: BTreeSet<_> = old.keys().chain(new.keys()).collect();
            let fields = names.into_iter().flat_map(|name| {
                nested(
                    format!(".{name}"),
                    old.get(name).unwrap_or(&Value::Null),
                    new.get(name).unwrap_or(&Value::Null),
                )
            });
            fields.collect()
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            let items = old.iter().zip(new).enumerate();
            let fields =
                items.flat_map(|(place, (old, new))| nested(format!("[{place}]"), old, new));
            fields.collect()
        }
        _ => vec![format!("={new}")],
    }
}

/// The path of a request without its group.
pub(crate) fn short(uri: &Uri) -> &str {
    let path = uri.path();
    path.find("/namespaces/default/")
        .map_or(path, |place| &path[place + "/namespaces/default/".len()..])
}
