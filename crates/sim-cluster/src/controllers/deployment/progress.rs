//! The condition `Progressing` of a Deployment: `Deployment, computed Status, now -> Status`. Pure.
//!
//! ```text
//! created -> updated, each time that something moves -> available
//!                 '-> nothing moves for progressDeadlineSeconds -> deadline exceeded
//! paused -> resumed
//! ```

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::conditions::{self, Condition};
use super::revisions::Revisions;
use super::status::Status;
use super::views::Deployment;
use crate::object::{text, time};

const PROGRESSING: &str = "Progressing";
const REPLICA_FAILURE: &str = "ReplicaFailure";
const AVAILABLE: &str = "NewReplicaSetAvailable";
const PAUSED: &str = "DeploymentPaused";
const TIMED_OUT: &str = "ProgressDeadlineExceeded";
/// The time after the deadline at which it is checked, so that it has certainly passed.
const MARGIN: SignedDuration = SignedDuration::from_secs(1);

fn progressing<'a>(status: &'a str, reason: &'a str, message: &'a str) -> Condition<'a> {
    Condition {
        kind: PROGRESSING,
        status,
        reason,
        message,
    }
}

/// Changes the status before anything else happens: if the Deployment was paused or resumed. A timeout stays reported.
pub(super) fn paused_or_resumed(deployment: Deployment<'_>, now: Timestamp) -> Option<Status> {
    deployment.progress_deadline()?;
    let current = conditions::find(deployment.conditions(), PROGRESSING);
    let reason = current.map_or("", |condition| text(condition, "/reason"));
    let new = match (deployment.is_paused(), reason) {
        (_, TIMED_OUT) | (true, PAUSED) => return None,
        (true, _) => progressing("Unknown", PAUSED, "Deployment is paused"),
        (false, PAUSED) => progressing("Unknown", "DeploymentResumed", "Deployment is resumed"),
        (false, _) => return None,
    };
    let mut status = Status::of(deployment);
    conditions::set(&mut status.conditions, new.at(now));
    Some(status)
}

/// The status of a Deployment whose new ReplicaSet was found, if nothing has described its progress yet.
pub(super) fn found(deployment: Deployment<'_>, set: &str, now: Timestamp) -> Option<Status> {
    deployment.progress_deadline()?;
    if conditions::find(deployment.conditions(), PROGRESSING).is_some() {
        return None;
    }
    let message = format!("Found new replica set {set:?}");
    Some(with_condition(
        deployment,
        progressing("True", "FoundNewReplicaSet", &message),
        now,
    ))
}

/// The status of a Deployment whose new ReplicaSet was created.
pub(super) fn created(deployment: Deployment<'_>, set: &str, now: Timestamp) -> Option<Status> {
    deployment.progress_deadline()?;
    let message = format!("Created new replica set {set:?}");
    Some(with_condition(
        deployment,
        progressing("True", "NewReplicaSetCreated", &message),
        now,
    ))
}

/// The status of a Deployment whose new ReplicaSet could not be created.
pub(super) fn not_created(
    deployment: Deployment<'_>,
    message: &str,
    now: Timestamp,
) -> Option<Status> {
    deployment.progress_deadline()?;
    Some(with_condition(
        deployment,
        progressing("False", "ReplicaSetCreateError", message),
        now,
    ))
}

fn with_condition(deployment: Deployment<'_>, new: Condition<'_>, now: Timestamp) -> Status {
    let mut status = Status::of(deployment);
    conditions::set(&mut status.conditions, new.at(now));
    status
}

/// Adds the progress of a rollout to a computed status, and the failure of its ReplicaSets.
pub(super) fn estimate(
    deployment: Deployment<'_>,
    revisions: &Revisions<'_>,
    mut status: Status,
    now: Timestamp,
) -> Status {
    let current = conditions::find(deployment.conditions(), PROGRESSING);
    let was_available = current.is_some_and(|condition| condition["reason"] == AVAILABLE);
    let is_over = was_available && status.replicas == status.updated;
    match deployment.progress_deadline() {
        None => conditions::remove(&mut status.conditions, PROGRESSING),
        Some(deadline) if !is_over => judge(deployment, revisions, &mut status, deadline, now),
        Some(_) => {}
    }
    match replica_failure(revisions) {
        Some(failure) => conditions::set(&mut status.conditions, failure),
        None => conditions::remove(&mut status.conditions, REPLICA_FAILURE),
    }
    status
}

fn judge(
    deployment: Deployment<'_>,
    revisions: &Revisions<'_>,
    status: &mut Status,
    deadline: i64,
    now: Timestamp,
) {
    let subject = match revisions.new {
        Some(set) => format!("ReplicaSet {:?}", set.name()),
        None => format!("Deployment {:?}", deployment.name()),
    };
    if status.is_complete(deployment) {
        let message = format!("{subject} has successfully progressed.");
        let new = progressing("True", AVAILABLE, &message);
        conditions::set(&mut status.conditions, new.at(now));
    } else if has_moved(&Status::of(deployment), status) {
        let message = format!("{subject} is progressing.");
        let new = progressing("True", "ReplicaSetUpdated", &message);
        conditions::renew(&mut status.conditions, new.at(now));
    } else if has_timed_out(&status.conditions, deadline, now) {
        let message = format!("{subject} has timed out progressing.");
        let new = progressing("False", TIMED_OUT, &message);
        conditions::set(&mut status.conditions, new.at(now));
    }
}

/// Whether pods were updated, became ready or available, or old ones were removed.
fn has_moved(before: &Status, after: &Status) -> bool {
    let old = |status: &Status| status.replicas - status.updated;
    after.updated > before.updated
        || old(after) < old(before)
        || after.ready > before.ready
        || after.available > before.available
}

/// When the condition was last updated, and the deadline after that.
fn deadline_of(condition: &Value, deadline: i64) -> Option<Timestamp> {
    time(condition, "/lastUpdateTime")?
        .checked_add(SignedDuration::from_secs(deadline))
        .ok()
}

/// A rollout that was complete does not time out any more: its pods only fail.
fn has_timed_out(conditions: &[Value], deadline: i64, now: Timestamp) -> bool {
    let Some(condition) = conditions::find(conditions, PROGRESSING) else {
        return false;
    };
    match text(condition, "/reason") {
        AVAILABLE => false,
        TIMED_OUT => true,
        _ => deadline_of(condition, deadline).is_some_and(|deadline| deadline < now),
    }
}

/// When to look again whether a rollout, whose status does not change now, has exceeded its deadline.
pub(super) fn check_at(deployment: Deployment<'_>, status: &Status) -> Option<Timestamp> {
    let deadline = deployment.progress_deadline()?;
    let condition = conditions::find(&status.conditions, PROGRESSING)?;
    let is_settled = matches!(text(condition, "/reason"), AVAILABLE | TIMED_OUT);
    if is_settled || status.is_complete(deployment) {
        return None;
    }
    deadline_of(condition, deadline)?.checked_add(MARGIN).ok()
}

/// The failure of the new ReplicaSet, otherwise that of the oldest one with a failure.
fn replica_failure(revisions: &Revisions<'_>) -> Option<Value> {
    let mut sets = revisions.new.into_iter().chain(revisions.all());
    let failure = sets.find_map(|set| conditions::find(set.conditions(), REPLICA_FAILURE))?;
    let mut failure = failure.clone();
    failure["lastUpdateTime"] = failure["lastTransitionTime"].clone();
    Some(failure)
}

#[cfg(test)]
mod tests {
    use super::super::limits::Limits;
    use super::super::views::Set;
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    fn second(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// A Deployment of 3 replicas that progressed 100 seconds after the epoch.
    fn deployment(reason: &str, status: &Value) -> Value {
        let mut deployment = json!({
            "metadata": {"name": "web", "generation": 1},
            "spec": {"replicas": 3, "template": {"spec": 1}, "strategy": {"type": "Recreate"}, "progressDeadlineSeconds": 60},
            "status": status,
        });
        let status = match reason {
            "" => return deployment,
            TIMED_OUT => "False",
            _ => "True",
        };
        let condition = progressing(status, reason, "before").at(second(100));
        deployment["status"]["conditions"] = json!([condition]);
        deployment
    }

    fn set(status: &Value) -> Value {
        json!({
            "metadata": {"name": "web-1", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"replicas": 3, "template": {"spec": 1}}, "status": status,
        })
    }

    fn estimated(deployment: &Value, set: &Value, now: i64) -> Status {
        let (deployment, now) = (Deployment(deployment), second(now));
        let revisions = Revisions::of(deployment, &[Set(set)]);
        let status = Status::computed(deployment, &revisions, Limits::default(), now);
        estimate(deployment, &revisions, status, now)
    }

    #[rstest]
    #[case::moved("NewReplicaSetCreated", json!({}), json!({"replicas": 1}), 110, "ReplicaSetUpdated", "ReplicaSet \"web-1\" is progressing.")]
    #[case::ready("ReplicaSetUpdated", json!({"replicas": 3, "updatedReplicas": 3}), json!({"replicas": 3, "readyReplicas": 1}), 110, "ReplicaSetUpdated", "ReplicaSet \"web-1\" is progressing.")]
    #[case::waits("NewReplicaSetCreated", json!({}), json!({"replicas": 0}), 160, "NewReplicaSetCreated", "before")]
    #[case::too_late("NewReplicaSetCreated", json!({}), json!({"replicas": 0}), 161, "ProgressDeadlineExceeded", "ReplicaSet \"web-1\" has timed out progressing.")]
    #[case::still_late(TIMED_OUT, json!({}), json!({"replicas": 0}), 900, "ProgressDeadlineExceeded", "before")]
    #[case::late_but_moves(TIMED_OUT, json!({}), json!({"replicas": 1}), 900, "ReplicaSetUpdated", "ReplicaSet \"web-1\" is progressing.")]
    #[case::complete("ReplicaSetUpdated", json!({"replicas": 3}), json!({"replicas": 3, "readyReplicas": 3, "availableReplicas": 3}), 900, "NewReplicaSetAvailable", "ReplicaSet \"web-1\" has successfully progressed.")]
    #[case::was_complete(AVAILABLE, json!({"replicas": 3, "updatedReplicas": 3}), json!({"replicas": 2}), 900, "NewReplicaSetAvailable", "before")]
    #[case::resumed("DeploymentResumed", json!({}), json!({"replicas": 0}), 161, "ProgressDeadlineExceeded", "ReplicaSet \"web-1\" has timed out progressing.")]
    fn progress(
        #[case] before: &str,
        #[case] old: Value,
        #[case] of_set: Value,
        #[case] now: i64,
        #[case] reason: &str,
        #[case] message: &str,
    ) {
        let status = estimated(&deployment(before, &old), &set(&of_set), now);
        let condition = conditions::find(&status.conditions, PROGRESSING).unwrap();
        assert_eq!(
            (text(condition, "/reason"), text(condition, "/message")),
            (reason, message)
        );
    }

    #[test]
    fn the_deadline_is_checked_a_second_after_it() {
        let moving = deployment("NewReplicaSetCreated", &json!({}));
        let status = Status::of(Deployment(&moving));
        assert_eq!(check_at(Deployment(&moving), &status), Some(second(161)));
        for settled in [AVAILABLE, TIMED_OUT, ""] {
            let deployment = deployment(settled, &json!({}));
            let status = Status::of(Deployment(&deployment));
            assert_eq!(check_at(Deployment(&deployment), &status), None);
        }
    }

    #[test]
    fn without_a_deadline_there_is_no_progress() {
        let mut endless = deployment("ReplicaSetUpdated", &json!({}));
        endless["spec"]["progressDeadlineSeconds"] = json!(i32::MAX);
        let status = estimated(&endless, &set(&json!({"replicas": 1})), 110);
        assert!(conditions::find(&status.conditions, PROGRESSING).is_none());
        let of = Deployment(&endless);
        assert_eq!(created(of, "web-1", second(0)), None);
        endless["spec"]["paused"] = json!(true);
        assert_eq!(paused_or_resumed(Deployment(&endless), second(0)), None);
    }

    #[rstest]
    #[case::paused(true, "ReplicaSetUpdated", Some("DeploymentPaused"))]
    #[case::still_paused(true, PAUSED, None)]
    #[case::resumed(false, PAUSED, Some("DeploymentResumed"))]
    #[case::running(false, "ReplicaSetUpdated", None)]
    #[case::a_timeout_stays(true, TIMED_OUT, None)]
    fn pausing(#[case] paused: bool, #[case] before: &str, #[case] reason: Option<&str>) {
        let mut deployment = deployment(before, &json!({}));
        deployment["spec"]["paused"] = json!(paused);
        let status = paused_or_resumed(Deployment(&deployment), second(0));
        let found = status.as_ref().map(|status| &status.conditions[0]);
        assert_eq!(found.map(|condition| text(condition, "/reason")), reason);
        assert!(found.is_none_or(|condition| condition["status"] == "Unknown"));
    }

    #[test]
    fn the_failure_of_a_set_is_that_of_its_deployment() {
        let failure = json!({
            "type": REPLICA_FAILURE, "status": "True", "reason": "FailedCreate", "message": "quota",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        });
        let failing = set(&json!({"replicas": 0, "conditions": [failure]}));
        let mut of = deployment("ReplicaSetUpdated", &json!({}));
        let status = estimated(&of, &failing, 110);
        let found = conditions::find(&status.conditions, REPLICA_FAILURE).unwrap();
        assert_eq!(found["lastUpdateTime"], "2026-01-01T00:00:00Z");
        of["status"] = status.into_value();
        let status = estimated(&of, &set(&json!({"replicas": 0})), 110);
        assert!(conditions::find(&status.conditions, REPLICA_FAILURE).is_none());
    }
}
