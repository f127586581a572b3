//! Approve: a step of the rollout may begin.

use fedrs_api::{
    ConditionType, FederatedDeployment, FederatedReplicaSetStatus, MAX_ENTRIES, Rollout,
    RolloutApproval, RolloutStep, StepApproval, closest_name, conditions,
};
use serde_json::json;
use tokio::time::{Duration, Instant, sleep};

use super::{
    error::Error,
    federated::{awaited_step, is_observed},
    target::{Change, Target},
};

/// An approval that `spec.rollout.approvals` has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approval {
    /// The step.
    pub step: String,
    /// The revision that it may begin with, by its name.
    pub revision: String,
    /// Whether it was there before.
    pub existed: bool,
}

/// How long the controller may take to observe what was written just before, and how often that is looked at.
const OBSERVATION: (Duration, Duration) = (Duration::from_secs(10), Duration::from_millis(250));

/// Approves `step`, or the one that waits for an approval, for the revision that is rolled out. Waits for a while until the
/// controller has observed the spec.
pub async fn approve(target: Target<'_>, step: Option<&str>) -> Result<Approval, Error> {
    let name = target.to_string();
    let (patience, interval) = OBSERVATION;
    let deadline = Instant::now() + patience;
    loop {
        let change = target.change(|deployment| decide(&name, deployment, step));
        match change.await {
            Err(Error::NotObserved(_)) if Instant::now() < deadline => sleep(interval).await,
            done => return done,
        }
    }
}

fn decide(
    name: &str,
    deployment: &FederatedDeployment,
    step: Option<&str>,
) -> Result<(Option<Change>, Approval), Error> {
    // The revision of a status of an older spec may not be the one that the user means.
    let status = deployment.status.as_ref();
    let observed = status.filter(|_| is_observed(deployment));
    let status = observed.ok_or_else(|| Error::NotObserved(name.to_owned()))?;
    let rollout = deployment.spec.rollout.as_ref();
    let present = rollout.map_or(&[][..], |rollout| &rollout.approvals);
    let step = match step {
        Some(step) => {
            check_step(name, deployment, step)?;
            step
        }
        None => awaited_step(status)
            .or_else(|| approved_step(status, present))
            .ok_or_else(|| none_waits(name, status, rollout))?,
    };
    let approval = approval(status, step);
    let existed = present.contains(&approval);
    let change = (!existed).then(|| {
        let approvals = added(present, &approval, status.current_revision.as_deref());
        Change::Merge(json!({ "spec": { "rollout": { "approvals": approvals } } }))
    });
    let RolloutApproval { step, revision } = approval;
    let approval = Approval {
        step,
        revision,
        existed,
    };
    Ok((change, approval))
}

/// The approval of a step for the revision that is rolled out.
fn approval(status: &FederatedReplicaSetStatus, step: &str) -> RolloutApproval {
    RolloutApproval {
        step: step.to_owned(),
        revision: status.update_revision.clone().unwrap_or_default(),
    }
}

/// The step that is being updated, if it has its approval: who repeats the command has what they want.
fn approved_step<'a>(
    status: &'a FederatedReplicaSetStatus,
    present: &[RolloutApproval],
) -> Option<&'a str> {
    let step = status.rollout.as_ref()?.step.as_deref()?;
    present.contains(&approval(status, step)).then_some(step)
}

fn none_waits(name: &str, status: &FederatedReplicaSetStatus, rollout: Option<&Rollout>) -> Error {
    let progressing = conditions::find(&status.conditions, ConditionType::Progressing);
    let unapproved = |rollout: &Rollout| {
        let is_unapproved = |step: &&RolloutStep| {
            step.approval == StepApproval::Before
                && !rollout.approvals.contains(&approval(status, &step.name))
        };
        let step = rollout.steps.iter().find(is_unapproved)?;
        Some(step.name.clone())
    };
    Error::NoStepWaits {
        object: name.to_owned(),
        progress: progressing.map_or(String::new(), |found| found.message.clone()),
        next: rollout.and_then(unapproved),
    }
}

/// Fails unless the step exists and needs an approval.
fn check_step(name: &str, deployment: &FederatedDeployment, step: &str) -> Result<(), Error> {
    let rollout = deployment.spec.rollout.iter();
    let steps: Vec<_> = rollout.flat_map(|rollout| &rollout.steps).collect();
    let Some(found) = steps.iter().find(|found| found.name == step) else {
        let names = steps.iter().map(|step| &*step.name);
        return Err(Error::UnknownStep {
            object: name.to_owned(),
            step: step.to_owned(),
            closest: closest_name(step, names).map(str::to_owned),
        });
    };
    if found.approval == StepApproval::None {
        return Err(Error::NeedsNoApproval {
            object: name.to_owned(),
            step: step.to_owned(),
        });
    }
    Ok(())
}

/// The approvals with one more. If there is no room, without the first ones of revisions that are not rolled out.
fn added(
    present: &[RolloutApproval],
    approval: &RolloutApproval,
    current: Option<&str>,
) -> Vec<RolloutApproval> {
    let mut surplus = (present.len() + 1).saturating_sub(MAX_ENTRIES);
    let is_used = |found: &RolloutApproval| {
        found.revision == approval.revision || Some(&*found.revision) == current
    };
    let kept = present.iter().filter(|found| {
        let is_dropped = surplus > 0 && !is_used(found);
        surplus -= usize::from(is_dropped);
        !is_dropped
    });
    kept.chain([approval]).cloned().collect()
}

#[cfg(test)]
#[path = "approve_tests.rs"]
mod tests;
