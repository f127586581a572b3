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

/// Begins the steps that may begin at `now`.
pub(crate) fn advance(rollout: &Rollout<'_>, state: &mut State, now: Timestamp) -> Stage {
    let count = rollout.steps.len() + 1;
    if (rollout.members.iter()).all(|member| has_template(rollout, member)) {
        state.begun = count;
    }
    // There may be fewer steps than before.
    state.begun = state.begun.min(count);
    while state.begun < count {
        if let Some(stage) = wait(rollout, state, now) {
            return stage;
        }
        state.begun += 1;
        state.soaking_since = None;
    }
    state.soaking_since = None;
    Stage::Updating(count - 1)
}

/// Why the next step does not begin yet.
fn wait(rollout: &Rollout<'_>, state: &mut State, now: Timestamp) -> Option<Stage> {
    let next = state.begun;
    if let Some(last) = next.checked_sub(1) {
        if !is_complete(rollout, last) {
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
fn is_complete(rollout: &Rollout<'_>, step: usize) -> bool {
    let mut members = (rollout.members.iter())
        .filter(|member| !member.is_skipped() && step_of(rollout, member) == step);
    members.all(|member| member.has_completed(rollout.target))
}

/// Whether there is nothing to roll out in a member. Of one that is lost or unknown this is not known without a Deployment.
fn has_template(rollout: &Rollout<'_>, member: &Member<'_>) -> bool {
    member
        .deployment
        .map_or(member.state == MemberState::Writable, |found| {
            found.revision == rollout.target
        })
}
