//! What is done next about one MigrationRequest of a pod of a ReplicaSet. Pure.
//!
//! ```text
//! Requested -> WaitingForBudget -> Evicting -> Placing -> Starting -> Done
//!        '-----------'--> Cancelled   |        gone: too few pods, or too few that are available
//!                                     '-- in the status before the eviction is requested: a restart forgets none
//! ```

use std::time::Duration;

use controller_base::clock::whole_seconds;
use fedrs_api::{
    MigrationCause, MigrationPhase as Phase, MigrationRefusal, MigrationRequestStatus as Status,
    MigrationWaitReason as Reason, NativeMigration,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use replica_set_controller::MigrationWait;

use super::{
    asker::Asker,
    facts::{PodFacts, Workload},
    policy::Chosen,
    queue::Line,
};
use crate::{
    migration_object::RequestObject,
    waiting::{waits_for, with_cancel},
};

/// Why no pod is missed that was removed before its migration began.
const REMOVED: &str = "the pod was removed before it began";

/// Why a pod stays whose node does not ask for it any more.
const NOT_ASKED: &str = "its node does not ask for it any more";

/// Why a pod does not move any more that was handed over to another set.
const FOREIGN: &str = "the pod does not belong to its ReplicaSet any more";

/// One request with what it depends on.
#[derive(Clone, Copy)]
pub(super) struct Case<'a> {
    pub(super) request: &'a RequestObject,
    /// `None` if it is gone.
    pub(super) pod: Option<&'a PodFacts>,
    /// `None` if its ReplicaSet is gone.
    pub(super) workload: Option<&'a Workload>,
    pub(super) policy: Option<&'a Chosen>,
    pub(super) line: Line,
    pub(super) asker: Asker,
    /// After how long a pod is moved whatever holds it up (M15), unless the policy or the request says less.
    pub(super) deadline: Duration,
}

/// What is done next.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    /// Nothing but to write the status, if it has changed.
    Tell(Status),
    /// If the API server would evict the pod, or if the pod is forced to go: write this status, then remove the pod.
    Begin(Status),
    /// Remove the pod: what was begun has had no effect yet.
    Remove(Status),
}

/// The status of a request whose pod is known, and its ReplicaSet with this `name`.
pub(super) fn introduced(case: &Case<'_>, (name, pod_uid): (&str, &str), now: Timestamp) -> Status {
    let mut status = Status {
        replica_set: name.to_owned(),
        pod_uid: pod_uid.to_owned(),
        ..case.status()
    };
    status.reach(Phase::Requested, now);
    match case.obstacle() {
        Some((reason, message)) => cancelled(status, reason, message, now),
        None if case.unsupported().is_some() => case.wait(status, Hold::NotSupported, now),
        None => case.wait(status, Hold::Queued, now),
    }
}

/// What is done next about a request that was introduced.
pub(super) fn step(case: &Case<'_>, now: Timestamp) -> Step {
    let status = case.status();
    if status.has_begun() {
        return case.go_on(status, now);
    }
    if let Some((reason, message)) = case.obstacle() {
        return Step::Tell(cancelled(status, reason, message, now));
    }
    if let Some(wait) = case.hold(&status, now) {
        return Step::Tell(case.wait(status, wait, now));
    }
    Step::Begin(case.begun(status, now))
}

/// The status after the API server has rejected the removal of the pod; `is_budget` if a PodDisruptionBudget is the reason.
pub(super) fn rejected(
    mut status: Status,
    is_budget: bool,
    message: String,
    now: Timestamp,
) -> Status {
    let reason = if is_budget {
        Reason::Budget
    } else {
        Reason::Rejected
    };
    reason.as_str().clone_into(&mut status.reason);
    status.message = message;
    if status.forced {
        // It has begun: nothing but the API server holds it up.
        return status;
    }
    if let Some(native) = &mut status.native {
        native.disrupted_at = None;
        native.replica_set_version = String::new();
    }
    status.reach(Phase::WaitingForBudget, now);
    status
}

fn cancelled(mut status: Status, reason: &str, message: String, now: Timestamp) -> Status {
    reason.clone_into(&mut status.reason);
    status.message = message;
    status.reach(Phase::Cancelled, now);
    status
}

fn waits(mut status: Status, (reason, message): (Reason, String), now: Timestamp) -> Status {
    reason.as_str().clone_into(&mut status.reason);
    status.message = message;
    status.reach(Phase::WaitingForBudget, now);
    status
}

/// What holds up a pod.
#[derive(Clone, Copy)]
enum Hold {
    NotSupported,
    Queued,
    Rollout,
    Policy(MigrationWait<'static>),
}

impl Case<'_> {
    /// The status as it was, with what is known anew, and without what it waited for.
    fn status(&self) -> Status {
        let previous = self.request.status().cloned().unwrap_or_default();
        let mut native = previous.native.clone().unwrap_or_default();
        if let Some(workload) = self.workload {
            native.deployment = workload.deployment.clone().unwrap_or_default();
            let name = self.policy.and_then(|policy| policy.name.clone());
            native.policy = name.unwrap_or_default();
        }
        let deadline = previous.deadline.clone();
        let is_kept = previous.has_begun() || self.asker == Asker::LostNode;
        let deadline = deadline.filter(|_| is_kept);
        Status {
            native: Some(native),
            reason: String::new(),
            message: String::new(),
            until: None,
            node: self
                .pod
                .map_or_else(|| previous.node.clone(), |pod| pod.node.clone()),
            deadline: deadline.or_else(|| Some(Time(whole_seconds(self.deadline())))),
            ..previous
        }
    }

    fn deadline(&self) -> Timestamp {
        let of_policy = self.policy.and_then(|policy| policy.valid.deadline);
        let after = of_policy.map_or(self.deadline, |of_policy| of_policy.min(self.deadline));
        let own = self.request.deadline(after);
        match self.asker {
            Asker::Node(Some(of_node)) => of_node.min(own),
            _ => own,
        }
    }

    /// What the policy asks for that can't be kept, for people.
    fn unsupported(&self) -> Option<String> {
        self.policy.and_then(Chosen::unsupported)
    }

    /// Why it ends before it has begun.
    fn obstacle(&self) -> Option<(&'static str, String)> {
        if self.pod.is_none_or(|pod| pod.is_removed) {
            return Some(("", REMOVED.to_owned()));
        }
        if self.request.is_cancelled() {
            return Some(("", "spec.cancel is set".to_owned()));
        }
        if self.asker == Asker::Nobody {
            return Some(("", NOT_ASKED.to_owned()));
        }
        if self.workload.is_none() || self.pod.is_some_and(|pod| pod.is_foreign) {
            return Some(("", FOREIGN.to_owned()));
        }
        if self.asker != Asker::Request {
            // It would be made again and again: it waits until its deadline.
            return None;
        }
        let unsupported = self.unsupported()?;
        Some((MigrationRefusal::PolicyNotSupported.as_str(), unsupported))
    }

    /// What holds it up, beside the PodDisruptionBudgets. A pod that is not available has nothing to lose, unless its policy asks for more
    /// than can be kept: its containers may run, and who wrote that wants them to be stopped with care.
    fn hold(&self, status: &Status, now: Timestamp) -> Option<Hold> {
        if is_overdue(status, now) {
            return None;
        }
        if self.unsupported().is_some() {
            return Some(Hold::NotSupported);
        }
        if self.pod.is_none_or(|pod| !pod.is_available) {
            return None;
        }
        if !self.line.is_next || self.line.moves {
            return Some(Hold::Queued);
        }
        let workload = self.workload?;
        let is_voluntary = self.request.0.spec.cause != MigrationCause::Node;
        if is_voluntary && (workload.is_rolling || !workload.is_observed) {
            return Some(Hold::Rollout);
        }
        let policy = &self.policy?.valid;
        let is_compaction = self.request.is_compaction();
        let until = policy.earliest(self.line.last, is_compaction, now);
        if let Some(until) = until.filter(|until| *until > now) {
            return Some(Hold::Policy(MigrationWait::TooSoon { until }));
        }
        let limit = policy.max_unavailable?.of(workload.replicas);
        let is_used_up = workload.unavailable() >= limit;
        is_used_up.then_some(Hold::Policy(MigrationWait::MaxUnavailable { limit }))
    }

    fn wait(&self, status: Status, hold: Hold, now: Timestamp) -> Status {
        let deadline = status.deadline.as_ref().map(|deadline| deadline.0);
        let (reason, message, until) = match hold {
            Hold::NotSupported => {
                let unsupported = self.unsupported().unwrap_or_default();
                let message = format!(
                    "{unsupported}: the pod stays until its deadline, and is deleted then; change the policy, or remove the pod"
                );
                (Reason::PolicyNotSupported, message, deadline)
            }
            Hold::Queued => (Reason::Queued, self.queued(), None),
            Hold::Rollout => {
                let message = format!("{} is being updated", self.owner());
                (Reason::Rollout, message, None)
            }
            Hold::Policy(wait) => {
                let reason = match wait {
                    MigrationWait::TooSoon { .. } => Reason::TooSoon,
                    _ => Reason::MaxUnavailable,
                };
                (reason, waits_for(wait, None), wait.until())
            }
        };
        let status = Status {
            until: until.map(|until| Time(whole_seconds(until))),
            ..status
        };
        let message = with_cancel(self.request, message);
        waits(status, (reason, message), now)
    }

    fn queued(&self) -> String {
        format!("another pod of {} moves first", self.owner())
    }

    /// The Deployment, or else the ReplicaSet, for people.
    fn owner(&self) -> String {
        let Some(workload) = self.workload else {
            return String::new();
        };
        match &workload.deployment {
            Some(name) => format!("Deployment {name}"),
            None => format!("ReplicaSet {}", workload.name),
        }
    }

    fn begun(&self, mut status: Status, now: Timestamp) -> Status {
        status.forced = is_overdue(&status, now);
        let is_available = self.pod.is_some_and(|pod| pod.is_available);
        let version = self.workload.map(|workload| workload.version.clone());
        status.native = status.native.map(|native| NativeMigration {
            disrupted_at: is_available.then_some(Time(now)),
            replica_set_version: version.unwrap_or_default(),
            ..native
        });
        status.reach(Phase::Evicting, now);
        status
    }

    /// What has begun is completed.
    fn go_on(&self, mut status: Status, now: Timestamp) -> Step {
        match self.pod {
            Some(pod) if !pod.is_removed => {
                if is_overdue(&status, now) && !status.forced {
                    status.forced = true;
                    return Step::Begin(status);
                }
                return Step::Remove(status);
            }
            // Of a node that does not answer, it counts as gone: another pod is in its place.
            Some(pod) if !pod.is_lost => return Step::Tell(status),
            _ => {}
        }
        let (phase, message) = self.replaced(&status);
        let phase = match phase {
            Phase::Done if status.forced => Phase::Forced,
            phase => phase,
        };
        status.message = message;
        status.reach(phase, now);
        Step::Tell(status)
    }

    /// How far the pod in its place is, whose name nobody knows. The status of the ReplicaSet may not have noticed that a pod is gone: so it
    /// is not believed at once, nor if the ReplicaSet is as it was when the eviction of an available pod began.
    fn replaced(&self, status: &Status) -> (Phase, String) {
        let Some(workload) = self.workload else {
            return (Phase::Done, "its ReplicaSet is gone".to_owned());
        };
        let native = status.native.as_ref();
        let missed = native.filter(|native| native.disrupted_at.is_some());
        let is_noticed = status.phase != Some(Phase::Evicting)
            && workload.is_observed
            && missed.is_none_or(|native| native.replica_set_version != workload.version);
        let set = &status.replica_set;
        if is_noticed && workload.unavailable() == 0 {
            return (Phase::Done, String::new());
        }
        if workload.created < workload.replicas {
            let message = format!("ReplicaSet {set} has not made a pod in its place yet");
            return (Phase::Placing, message);
        }
        let (available, all) = (workload.available, workload.replicas);
        let message = format!("{available} of {all} pods of ReplicaSet {set} are available");
        (
            Phase::Starting,
            if is_noticed { message } else { String::new() },
        )
    }
}

/// Whether its deadline has passed (M15).
fn is_overdue(status: &Status, now: Timestamp) -> bool {
    status.deadline.as_ref().is_some_and(|of| of.0 <= now)
}

#[cfg(test)]
mod tests;
