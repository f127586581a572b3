//! Which step has begun.
//!
//! A step begins when the one before is complete, has soaked, and it was approved for the target revision if it needs that. Once
//! it has begun it stays so for this revision: members of earlier steps that come back catch up. Members that are lost or
//! cordoned are not waited for.

use jiff::Timestamp;

use crate::{
    member::{Member, MemberState},
    rollout::{Rollout, Step},
    state::State,
    time::after,
};

/// The name of the implied last step.
const IMPLIED: &str = "";

/// What the rollout is at, by steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The step with this number is being updated.
    Updating(usize),
    /// The step with this number is complete, and soaks until then.
    Soaking(usize, Timestamp),
    /// The step with this number may begin when it is approved.
    AwaitingApproval(usize),
}

/// The number of the step that a member belongs to: the implied last one's is the number of steps.
pub(crate) fn step_of(rollout: &Rollout<'_>, member: &Member<'_>) -> usize {
    let mut steps = rollout.steps.iter();
    steps
        .position(|step| step.members.contains(&member.name))
        .unwrap_or(rollout.steps.len())
}

/// Whether the step of a member has begun.
pub(crate) fn has_begun(rollout: &Rollout<'_>, state: &State, member: &Member<'_>) -> bool {
    step_of(rollout, member) < state.begun.len()
}

/// Whether a member may get the target template now.
pub(crate) fn may_roll(rollout: &Rollout<'_>, state: &State, member: &Member<'_>) -> bool {
    !rollout.paused && !state.failed && !member.cordoned && has_begun(rollout, state, member)
}

/// Begins the steps that may begin at `now`.
pub(crate) fn advance(rollout: &Rollout<'_>, state: &mut State, now: Timestamp) -> Stage {
    let names = rollout.steps.iter().map(|step| step.name);
    let names: Vec<_> = names.chain([IMPLIED]).map(str::to_owned).collect();
    if (rollout.members.iter()).all(|member| has_template(rollout, member)) {
        state.begun.clone_from(&names);
    }
    forget_changed(state, &names);
    while let Some(name) = names.get(state.begun.len()) {
        if let Some(stage) = wait(rollout, state, now) {
            return stage;
        }
        if rollout.paused {
            return Stage::Updating(state.begun.len());
        }
        state.begun.push(name.clone());
        state.soaking_since = None;
    }
    state.soaking_since = None;
    Stage::Updating(rollout.steps.len())
}

/// A step that the user has put before others has to begin before these.
fn forget_changed(state: &mut State, names: &[String]) {
    let begun = state.begun.iter().zip(names);
    let kept = begun.take_while(|(begun, name)| begun == name).count();
    if kept < state.begun.len() {
        state.begun.truncate(kept);
        state.soaking_since = None;
    }
}

/// Why the next step does not begin yet.
fn wait(rollout: &Rollout<'_>, state: &mut State, now: Timestamp) -> Option<Stage> {
    let next = state.begun.len();
    if let Some(last) = next.checked_sub(1) {
        if !is_complete(rollout, state, last) {
            state.soaking_since = None;
            return Some(Stage::Updating(last));
        }
        let soak = rollout.steps[last].soak;
        if !soak.is_zero() {
            let until = after(*state.soaking_since.get_or_insert(now), soak);
            if until > now {
                return Some(Stage::Soaking(last, until));
            }
        }
    }
    let needs_approval = |step: &&Step<'_>| step.approval_before;
    let step = rollout.steps.get(next).filter(needs_approval)?;
    let mut approvals = rollout.approvals.iter();
    let approved =
        approvals.any(|approval| (approval.step, approval.revision) == (step.name, rollout.target));
    (!approved).then_some(Stage::AwaitingApproval(next))
}

/// Whether all members of a step that it waits for are updated and available.
fn is_complete(rollout: &Rollout<'_>, state: &State, step: usize) -> bool {
    let mut members = (rollout.members.iter())
        .filter(|member| !member.is_skipped() && step_of(rollout, member) == step);
    // A LocalReplicaSet is not before its loan is back: until it has observed the recall, its status says nothing.
    let is_recalled = |member: &Member<'_>| {
        let loan = state.loans.get(member.name).filter(|loan| !loan.evicts);
        loan.is_none() || member.deployment.is_none_or(|found| found.local.is_none())
    };
    members.all(|member| member.has_completed(rollout.target) && is_recalled(member))
}

/// The revision with which a missing Deployment of the member is created, if that is not the target: the previous one while its
/// step has not begun, or once the target has failed.
pub(crate) fn created_revision<'a>(
    rollout: &Rollout<'a>,
    state: &State,
    member: &Member<'_>,
) -> Option<&'a str> {
    let waits = state.failed || !has_begun(rollout, state, member);
    (rollout.previous).filter(|_| member.deployment.is_none() && waits)
}

/// Whether there is nothing to roll out in a member. Of one that is lost or unknown this is not known without a Deployment, and one
/// that is to be created may turn out to exist, with another template.
fn has_template(rollout: &Rollout<'_>, member: &Member<'_>) -> bool {
    let has_none = member.state == MemberState::Writable && !member.creates;
    (member.deployment).map_or(has_none, |found| found.revision == rollout.target)
}
