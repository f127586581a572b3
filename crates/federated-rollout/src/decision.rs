//! What a step decided: the output.

use jiff::Timestamp;

use crate::{account::Account, action::Write, state::State, wait::WaitReason};

/// What to publish, what to write, and what is waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The state to publish. Only once it is recorded do its new loans lead to writes. Equal to the recorded one if nothing
    /// has changed.
    pub state: State,
    /// Writes that the recorded state allows: safe in any order, whether the new state is published or not. At most
    /// one for each member.
    pub writes: Vec<Write>,
    /// What each member waits for, in the order of the input; `None` if it has all of the target.
    pub waits: Vec<Option<WaitReason>>,
    /// The revision with which a missing Deployment is created, if that is not the target, in the order of the input: the previous
    /// one while its step has not begun, or once the target has failed.
    pub created: Vec<Option<String>>,
    /// The budget and its use, with the new loans.
    pub account: Account,
    /// The number of the step that is being updated or waited for; the number of steps is the implied last one.
    pub step: usize,
    /// Whether the rollout has failed and is to be undone: the caller changes the target.
    pub undo: bool,
    /// When to decide again if nothing happens before.
    pub next: Option<Timestamp>,
}
