//! Why a command about a rollout fails. Each error names the object, and the field that decides.

use std::time::Duration;

use crate::cluster_client::RequestError;

/// A command about a rollout failed. `object` is `federateddeployment shop/web`.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A request failed.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// There is no such object.
    #[error("{0} not found")]
    NotFound(String),
    /// The object, or a part of it that is used, can't be read.
    #[error("{object} can't be read: {reason}")]
    Unreadable {
        /// Which one.
        object: String,
        /// What can't be read.
        reason: String,
    },
    /// Somebody else changed the spec before it was written.
    #[error("{0} was changed meanwhile: run the command again")]
    Changed(String),
    /// The rollout is not complete in time.
    #[error("{object}: the rollout is not complete after {timeout:?}: {pending}")]
    TimedOut {
        /// Which one.
        object: String,
        /// How long the command waited.
        timeout: Duration,
        /// What the rollout waits for.
        pending: String,
    },
    /// There is no revision of this number.
    #[error("{object} has no revision {number}: `{command} history` lists those that it has")]
    NoRevision {
        /// Which one.
        object: String,
        /// The number.
        number: i64,
        /// The command about rollouts.
        command: &'static str,
    },
    /// A field of the status names no revision, or one that does not exist.
    #[error("{object}: {field} names no revision that exists: choose one with --revision")]
    NoRecordedRevision {
        /// Which one.
        object: String,
        /// The field.
        field: &'static str,
    },
    /// All revisions have the template of the spec.
    #[error(
        "{object}: nothing to undo: no revision differs from spec.template; `{command} history` lists the revisions. Templates from before it existed are in none"
    )]
    NothingToUndo {
        /// Which one.
        object: String,
        /// The command about rollouts.
        command: &'static str,
    },
    /// The rollout is paused already.
    #[error("{0} is already paused: spec.paused is true")]
    AlreadyPaused(String),
    /// The rollout is not paused.
    #[error("{0} is not paused: spec.paused is false")]
    NotPaused(String),
    /// A restart would not begin.
    #[error(
        "{object} is paused: spec.paused is true, and no pod would be restarted: run `{command} resume` first"
    )]
    Paused {
        /// Which one.
        object: String,
        /// The command about rollouts.
        command: &'static str,
    },
    /// The status is that of an older spec.
    #[error(
        "{0}: the controller has not observed the latest spec yet: status.observedGeneration is below metadata.generation"
    )]
    NotObserved(String),
    /// No step waits for an approval.
    #[error(
        "{object}: no step waits for an approval{}{}",
        if .progress.is_empty() { String::new() } else { format!(": {}", .progress) },
        match .next {
            Some(step) => format!("; to approve step {step} before it waits, name it"),
            None => String::new(),
        }
    )]
    NoStepWaits {
        /// Which one.
        object: String,
        /// What the condition `Progressing` says.
        progress: String,
        /// The first step that needs an approval and does not have it, if there is one.
        next: Option<String>,
    },
    /// There is no step of this name.
    #[error("{object}: spec.rollout.steps has no step {step:?}{}", match .closest {
        Some(closest) => format!("; did you mean {closest:?}?"),
        None => String::new(),
    })]
    UnknownStep {
        /// Which one.
        object: String,
        /// The name.
        step: String,
        /// The step that was probably meant.
        closest: Option<String>,
    },
    /// The step begins without an approval.
    #[error("{object}: spec.rollout.steps[{step}].approval is None: the step needs no approval")]
    NeedsNoApproval {
        /// Which one.
        object: String,
        /// The name.
        step: String,
    },
}

impl Error {
    /// Whether there is nothing to approve at the moment: no step waits, or the status is that of an older spec.
    pub fn is_not_waiting(&self) -> bool {
        matches!(self, Self::NoStepWaits { .. } | Self::NotObserved(_))
    }
}
