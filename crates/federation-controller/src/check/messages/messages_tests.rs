//! Shows each text of a check once.

use std::fmt::Write;

use federated_scheduler::{Reason, Reasons};
use fedrs_api::{EventReason, FieldError};
use jiff::Timestamp;

use super::{
    ClusterDetail, ClusterMessage, NotPlaced, Waiting, action_event, capacity_event,
    condition_event, conditions as texts, duplicate_event, invalid_event, lost_event,
    returned_event, unplaced_event,
};
use crate::{
    check::{
        action::{Precondition, SetChange},
        eligibility::UnknownCause,
    },
    event::Event,
};

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

#[test]
fn f19_texts_of_clusters() {
    let since = at(0);
    let unknown = |cause| ClusterDetail::Unknown { cause, until: None };
    let details = [
        ClusterDetail::Joining { until: at(10) },
        ClusterDetail::Unknown {
            cause: UnknownCause::Unreachable("connection refused"),
            until: Some(at(60)),
        },
        unknown(UnknownCause::Removed),
        unknown(UnknownCause::InvalidKubeconfig("no clusters")),
        unknown(UnknownCause::Unauthorized("401")),
        unknown(UnknownCause::NotProbed),
        unknown(UnknownCause::ProbeFailing("timed out")),
        unknown(UnknownCause::NotSynced),
        unknown(UnknownCause::Stale { since }),
        unknown(UnknownCause::WritePending),
        ClusterDetail::Lost { since },
        ClusterDetail::Duplicate { of: "eu" },
        ClusterDetail::Share(Reason::AtMinimum { minimum: 2 }),
        ClusterDetail::Draining { replicas: 4 },
        ClusterDetail::Draining { replicas: 0 },
        ClusterDetail::Cordoned,
        ClusterDetail::Rejecting {
            since,
            message: None,
            next: Some(at(60)),
        },
        ClusterDetail::Kept { replicas: 4 },
        ClusterDetail::Pending { replicas: 1 },
        ClusterDetail::CapacityProbes { replicas: 2 },
        ClusterDetail::Unschedulable {
            pods: 11,
            message: Some("0/3 nodes are available"),
        },
        ClusterDetail::NotCreated {
            pods: 1,
            message: Some("exceeded quota"),
        },
        ClusterDetail::RescheduledAt(at(60)),
        ClusterDetail::WriteHeld {
            error: Some("denied by a webhook"),
            until: at(10),
        },
        ClusterDetail::WriteHeld {
            error: None,
            until: at(10),
        },
        ClusterDetail::Surplus { replicas: 4 },
        ClusterDetail::Paused,
    ];
    let mut shown = String::new();
    for detail in details {
        let mut message = ClusterMessage::default();
        message.push(detail);
        let reason = message.reason.map_or("-", |reason| reason.as_str());
        writeln!(shown, "{reason}: {}", message.text).unwrap();
    }
    insta::assert_snapshot!(shown);
}

#[test]
fn f6_texts_of_conditions() {
    let not_placed = NotPlaced {
        unplaced: 6,
        replicas: 8,
        has_match: true,
        draining: vec!["eu"],
        cordoned: vec!["us", "asia"],
        unknown: Vec::new(),
    };
    let no_match = NotPlaced {
        has_match: false,
        draining: Vec::new(),
        cordoned: Vec::new(),
        unknown: vec![("eu-wst", Some("eu-west")), ("mars", None)],
        ..not_placed.clone()
    };
    let error = FieldError {
        field: "spec.selector".to_owned(),
        message: "does not match spec.template.metadata.labels".to_owned(),
    };
    let waiting = [
        Waiting::Cluster("eu", ClusterDetail::Joining { until: at(10) }),
        Waiting::NextWrite("eu", at(10)),
        Waiting::Rejection("eu"),
        Waiting::Availability("eu", 2),
        Waiting::Replacements("eu", 1),
        Waiting::Capacity(3),
    ];
    let shown = [
        texts::ACCEPTED.to_owned(),
        texts::INVALID.to_owned(),
        texts::JOINING.to_owned(),
        texts::PLACED.to_owned(),
        texts::RESCHEDULING.to_owned(),
        texts::PAUSED.to_owned(),
        texts::invalid(&[error]),
        texts::available(2, 6),
        texts::name_conflicts(&[("eu", "the ReplicaSet is controlled by Deployment web")]),
        texts::selector_overlap(&["shop".to_owned(), "api".to_owned()]),
        texts::move_blocked(&[("eu", 4), ("us", 1)]),
        texts::not_becoming_ready(&[("eu", 2, at(0))]),
        texts::contended(&[("eu", 5, Some("kubectl-scale")), ("us", 6, None)]),
        texts::template_outdated(&[("eu", 3), ("us", 17)]),
        not_placed.to_string(),
        no_match.to_string(),
        texts::waiting(&waiting),
    ];
    insta::assert_snapshot!(shown.join("\n"));
}

#[test]
fn f38_texts_of_events() {
    let seen = Precondition {
        uid: "u".to_owned(),
        generation: 1,
        resource_version: None,
    };
    let scale = |from, to| SetChange::Scale {
        seen: seen.clone(),
        from,
        to,
    };
    let overwrite = |drifted| SetChange::Overwrite {
        seen: seen.clone(),
        replicas: 2,
        drifted,
    };
    let why = Some(Reasons {
        minimum: Some(Reason::AtMinimum { minimum: 2 }),
        ..Reasons::default()
    });
    let create = SetChange::Create { replicas: 2 };
    let action = |change: &SetChange, repairs| action_event("eu", change, why, repairs);
    let mut events = vec![
        action(&create, false),
        action(&scale(2, 4), false),
        action(&scale(4, 2), false),
        action_event("eu", &scale(4, 2), None, false),
        action(&overwrite(false), false),
        action(&create, true),
        action(&scale(3, 5), true),
        action(&overwrite(true), true),
        action(&SetChange::LabelPods { seen: seen.clone() }, false),
    ];
    let message = Some("0/3 nodes are available");
    events.extend(capacity_event("eu", (None, Some(6)), 11, message));
    events.extend(capacity_event("eu", (Some(6), Some(8)), 0, None));
    events.extend(capacity_event("eu", (Some(8), None), 0, None));
    events.extend([
        lost_event("eu", at(0), 4),
        returned_event("eu", 4),
        duplicate_event("eu", "eu-west"),
        unplaced_event(true, "(the message of the condition Placed)"),
        unplaced_event(false, "(the message of the condition Placed)"),
        condition_event(EventReason::Contended, "(the message of the condition)"),
        invalid_event("(the errors)"),
    ]);
    let mut shown = String::new();
    for Event {
        type_,
        reason,
        message,
    } in events
    {
        writeln!(shown, "{} {reason}: {message}", type_.as_str()).unwrap();
    }
    insta::assert_snapshot!(shown);
}
