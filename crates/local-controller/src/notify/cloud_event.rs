//! The body of a notification: a CloudEvent 1.0 in its structured JSON format.

use fedrs_api::{AwaitedAction, MigrationRequestStatus};
use jiff::Timestamp;
use serde::Serialize;

use super::due::{Due, Kind};
use crate::migration_object::RequestObject;

/// The media type of the body.
pub(super) const CONTENT_TYPE: &str = "application/cloudevents+json; charset=utf-8";
/// Who sends it; the name of the cluster follows, if it has one.
const SOURCE: &str = "/fedrs.dev/replica-set-controller";

/// A CloudEvent. docs/migrations.md documents its fields.
#[derive(Debug, Serialize)]
pub(super) struct CloudEvent<'a> {
    specversion: &'static str,
    pub(super) id: String,
    source: String,
    r#type: String,
    subject: String,
    time: Timestamp,
    datacontenttype: &'static str,
    data: Data<'a>,
}

/// What it is about, as of when it is sent.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Data<'a> {
    cluster: &'a str,
    namespace: &'a str,
    name: &'a str,
    uid: &'a str,
    pod: &'a str,
    node: &'a str,
    replica_set: &'a str,
    cause: &'static str,
    reason: &'a str,
    phase: &'static str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deadline: Option<Timestamp>,
    new_pod: &'a str,
    new_node: &'a str,
    /// What a person has to do, as `status.awaits` says it; `Nothing` otherwise.
    needs: &'static str,
    /// The number of the reminder, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    reminder: Option<i32>,
}

/// The event that `due` of `request` is due, with its status as it is now.
pub(super) fn cloud_event<'a>(
    cluster: &'a str,
    request: &'a RequestObject,
    status: &'a MigrationRequestStatus,
    due: Due,
) -> CloudEvent<'a> {
    let (namespace, name) = request.id();
    let spec = &request.0.spec;
    CloudEvent {
        specversion: "1.0",
        id: due.kind.id(request.uid()),
        source: if cluster.is_empty() {
            SOURCE.to_owned()
        } else {
            format!("{SOURCE}/{cluster}")
        },
        r#type: format!("dev.fedrs.migration.{}", due.kind.word()),
        subject: format!("{namespace}/{name}"),
        time: due.time,
        datacontenttype: "application/json",
        data: Data {
            cluster,
            namespace,
            name,
            uid: request.uid(),
            pod: request.pod_name(),
            node: &status.node,
            replica_set: &status.replica_set,
            cause: spec.cause.as_str(),
            reason: &spec.reason,
            phase: status.phase.map_or("", fedrs_api::MigrationPhase::as_str),
            message: &status.message,
            until: status.until.as_ref().map(|until| until.0),
            deadline: status.deadline.as_ref().map(|deadline| deadline.0),
            new_pod: &status.new_pod,
            new_node: &status.new_node,
            needs: status.awaits.map_or("Nothing", AwaitedAction::as_str),
            reminder: match due.kind {
                Kind::Reminder(number) => Some(number),
                Kind::Opened | Kind::Closed => None,
            },
        },
    }
}

#[cfg(test)]
mod tests {
    use fedrs_api::{MigrationPhase, MigrationRequest};
    use serde_json::{Value, json};

    use super::*;

    /// The receiver in examples/ is tested with the same event.
    #[test]
    fn m8_the_event_is_that_of_the_example() {
        const UID: &str = "5d3ab0f2-31f6-4b0e-9d0a-6a4d1f5c7e21";
        let example = include_str!("../../../../examples/tickets/opened.json");
        let example: Value = serde_json::from_str(example).unwrap();
        let time = |time: &str| -> Timestamp { time.parse().unwrap() };
        let object: MigrationRequest = serde_json::from_value(json!({
            "metadata": { "namespace": "shop", "name": "web-0a1b2-x7k2p", "uid": UID },
            "spec": { "podName": "web-0a1b2", "cause": "Person", "reason": "the disk makes noises" },
            "status": {
                "phase": "WaitingForBudget",
                "message": "minSecondsBetween of the policy: the last migration is too recent",
                "until": "2027-01-15T09:00:00Z", "deadline": "2027-01-22T08:00:00Z",
                "replicaSet": "web", "node": "n1",
            },
        }))
        .unwrap();
        let request: RequestObject = serde_json::from_value(json!(object)).unwrap();
        let mut status = object.status.unwrap();
        let due = Due {
            kind: Kind::Opened,
            time: time("2027-01-15T08:00:00Z"),
        };
        let event = cloud_event("eu", &request, &status, due);
        assert_eq!(json!(event), example);
        status.phase = None;
        status.reach(MigrationPhase::HandsUp, time("2027-01-15T10:00:00Z"));
        status.awaits = Some(AwaitedAction::ConfirmDestroyed);
        let due = Due {
            kind: Kind::Reminder(2),
            time: time("2027-01-17T10:00:00Z"),
        };
        let event = json!(cloud_event("", &request, &status, due));
        for (pointer, expected) in [
            ("/id", json!(format!("{UID}.reminder.2"))),
            ("/source", json!("/fedrs.dev/replica-set-controller")),
            ("/type", json!("dev.fedrs.migration.reminder")),
            ("/time", json!("2027-01-17T10:00:00Z")),
            ("/data/needs", json!("ConfirmDestroyed")),
            ("/data/reminder", json!(2)),
            ("/data/phase", json!("HandsUp")),
        ] {
            assert_eq!(event.pointer(pointer), Some(&expected), "{pointer}");
        }
    }
}
