//! What each member waits for, as data for texts.

use jiff::Timestamp;

use crate::{
    account::Account,
    action::{Action, Write},
    lend::Refusal,
    member::{Deployment, Member, MemberState},
    rollout::Rollout,
    speed,
    state::State,
    steps::{Stage, has_begun},
};

/// What a member waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitReason {
    /// It is lost.
    Lost,
    /// It is unreachable, or its view is stale, and did not have all of the target when it was last seen.
    Unknown,
    /// It is cordoned.
    Cordoned,
    /// The rollout is paused.
    Paused,
    /// The rollout has failed.
    Failed,
    /// Pods without a node get one, or go elsewhere, first.
    Nodes,
    /// Another step goes first.
    Step {
        /// The number of the step.
        step: usize,
    },
    /// Another step is complete and soaks.
    Soak {
        /// The number of the step.
        step: usize,
        /// Until when.
        until: Timestamp,
    },
    /// The next step has to be approved.
    Approval {
        /// The number of the step.
        step: usize,
    },
    /// Other members of its step go first.
    Concurrency {
        /// How many may be updated at the same time.
        limit: usize,
    },
    /// The budget is in use.
    Budget {
        /// Pods that are unavailable, or may be.
        in_use: u64,
        /// The most that may be.
        of: u64,
        /// Who uses it, and how much. What is missing from the sum is requested nowhere.
        by: Vec<(String, u64)>,
    },
    /// As many pods have started as may.
    Speed {
        /// Until when that is certain; `None` if it ends with a loan.
        until: Option<Timestamp>,
    },
    /// Its controller has to observe its latest generation.
    Observed,
    /// Its Deployment has to be created.
    Missing,
    /// Its loan has to be recorded, or its template written.
    Write,
    /// Its loan is being recalled.
    Recall,
    /// Its pods become updated and available.
    Pods {
        /// Updated and available pods.
        available: u64,
        /// Of its replicas.
        replicas: u64,
    },
}

/// What `member` waits for. `refusal` is why it got no loan.
pub(crate) fn reason(
    rollout: &Rollout<'_>,
    state: &State,
    member: &Member<'_>,
    (write, refusal): (Option<&Write>, Option<Refusal>),
    (stage, account): (Stage, &Account),
    now: Timestamp,
) -> Option<WaitReason> {
    let has_target = (member.deployment)
        .is_some_and(|found| found.revision == rollout.target && found.is_complete());
    match member.state {
        // It had the target when it was last seen.
        MemberState::Lost | MemberState::Unknown if has_target => return None,
        MemberState::Lost => return Some(WaitReason::Lost),
        MemberState::Unknown => return Some(WaitReason::Unknown),
        MemberState::Writable => {}
    }
    let Some(found) = &member.deployment else {
        let is_missing = member.creates && rollout.previous.is_some();
        return is_missing.then_some(WaitReason::Missing);
    };
    let loan = state.loans.get(member.name);
    if matches!(write, Some(write) if matches!(write.action, Action::Shrink(_) | Action::Fence)) {
        return Some(WaitReason::Recall);
    }
    if has_target {
        return None;
    }
    let is_begun = has_begun(rollout, state, member);
    let is_written = found.revision == rollout.target;
    let reason = match refusal {
        Some(refusal) => refused(rollout, state, refusal, account, now),
        None if is_written && !found.paused => pods(found),
        None if member.cordoned => WaitReason::Cordoned,
        None if state.failed => WaitReason::Failed,
        None if rollout.paused => WaitReason::Paused,
        None if !is_begun => staged(stage),
        None if loan.is_some_and(|loan| loan.revision != rollout.target) => WaitReason::Recall,
        None => WaitReason::Write,
    };
    Some(reason)
}

fn pods(found: &Deployment<'_>) -> WaitReason {
    WaitReason::Pods {
        available: found.updated_available,
        replicas: found.replicas,
    }
}

fn staged(stage: Stage) -> WaitReason {
    match stage {
        Stage::Updating(step) => WaitReason::Step { step },
        Stage::Soaking(step, until) => WaitReason::Soak { step, until },
        Stage::AwaitingApproval(step) => WaitReason::Approval { step },
    }
}

fn refused(
    rollout: &Rollout<'_>,
    state: &State,
    refusal: Refusal,
    account: &Account,
    now: Timestamp,
) -> WaitReason {
    match refusal {
        Refusal::WithoutNode => WaitReason::Nodes,
        Refusal::NotObserved => WaitReason::Observed,
        Refusal::Concurrency(limit) => WaitReason::Concurrency { limit },
        Refusal::Speed => WaitReason::Speed {
            until: speed::next(rollout, state, now),
        },
        Refusal::Budget => {
            let members = account.members.iter().zip(rollout.members);
            let users = members.filter(|(account, _)| account.unavailable > 0);
            WaitReason::Budget {
                in_use: account.in_use.unavailable,
                of: account.limits.unavailable,
                by: users
                    .map(|(account, member)| (member.name.to_owned(), account.unavailable))
                    .collect(),
            }
        }
    }
}
