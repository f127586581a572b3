//! What the lines of a trace say of changes.

use serde_json::Value;
use sim_cluster::Change;

use crate::run::{changed_fields, conditions};

/// What the controller changed, if it is of interest.
pub(super) fn describe(change: &Change) -> Option<String> {
    let (kind, name) = (&*change.kind.kind, &change.name);
    match (change.old.as_deref(), change.new.as_deref()) {
        (_, Some(event)) if kind == "Event" => {
            let text = |field: &str| event[field].as_str().unwrap_or_default().to_owned();
            let about = event["involvedObject"]["name"].as_str().unwrap_or_default();
            Some(format!(
                "event {about}: {}: {}",
                text("reason"),
                text("message")
            ))
        }
        _ if kind == "Lease" => None,
        (None, _) => Some(format!("creates {kind} {name}")),
        (_, None) => Some(format!("deletes {kind} {name}")),
        (Some(old), Some(new)) if kind == "LocalReplicaSet" => {
            let (old, new) = (&old["status"], &new["status"]);
            let (before, now) = (conditions(old), conditions(new));
            let text = if now == before {
                changed_fields(old, new).join(", ")
            } else {
                format!("{now}, .record={}", new["record"])
            };
            Some(format!("status of {name}: {text}"))
        }
        (Some(old), Some(new)) => {
            let fields = changed_fields(&content(old), &content(new));
            Some(format!("changes {kind} {name}: {}", fields.join(", ")))
        }
    }
}

/// An object without what changes with each write.
fn content(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for field in ["resourceVersion", "generation", "managedFields"] {
            metadata.remove(field);
        }
    }
    object
}
