//! Why a command about a rollout fails. Each error names the FederatedDeployment, and the field that decides.

use std::time::Duration;

use crate::cluster_client::RequestError;

/// A command about a rollout failed. `deployment` is `federateddeployment shop/web`.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A request failed.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// There is no such FederatedDeployment.
    #[error("{0} not found")]
    NotFound(String),
    /// The FederatedDeployment, or a part of it that is used, can't be read.
    #[error("{deployment} can't be read: {reason}")]
    Unreadable {
        /// Which one.
        deployment: String,
        /// What can't be read.
        reason: String,
    },
    /// Somebody else changed the spec before it was written.
    #[error("{0} was changed meanwhile: run the command again")]
    Changed(String),
    /// The rollout is not complete in time.
    #[error("{deployment}: the rollout is not complete after {timeout:?}: {pending}")]
    TimedOut {
        /// Which one.
        deployment: String,
        /// How long the command waited.
        timeout: Duration,
        /// What the rollout waits for.
        pending: String,
    },
    /// There is no revision of this number.
    #[error(
        "{deployment} has no revision {number}: `fedrs rollout history` lists those that it has"
    )]
    NoRevision {
        /// Which one.
        deployment: String,
        /// The number.
        number: i64,
    },
    /// A field of the status names no revision, or one that does not exist.
    #[error("{deployment}: {field} names no revision that exists: choose one with --revision")]
    NoRecordedRevision {
        /// Which one.
        deployment: String,
        /// The field.
        field: &'static str,
    },
    /// All revisions have the template of the spec.
    #[error(
        "{0}: nothing to undo: no revision differs from spec.template; `fedrs rollout history` lists the revisions"
    )]
    NothingToUndo(String),
    /// The rollout is paused already.
    #[error("{0} is already paused: spec.paused is true")]
    AlreadyPaused(String),
    /// The rollout is not paused.
    #[error("{0} is not paused: spec.paused is false")]
    NotPaused(String),
    /// A restart would not begin.
    #[error(
        "{0} is paused: spec.paused is true, and no pod would be restarted: run `fedrs rollout resume` first"
    )]
    Paused(String),
    /// The status is that of an older spec.
    #[error(
        "{0}: the controller has not observed the latest spec yet: status.observedGeneration is below metadata.generation"
    )]
    NotObserved(String),
    /// No step waits for an approval.
    #[error(
        "{deployment}: no step waits for an approval{}",
        if .progress.is_empty() { String::new() } else { format!(": {}", .progress) }
    )]
    NoStepWaits {
        /// Which one.
        deployment: String,
        /// What the condition `Progressing` says.
        progress: String,
    },
    /// There is no step of this name.
    #[error("{deployment}: spec.rollout.steps has no step {step:?}{}", match .closest {
        Some(closest) => format!("; did you mean {closest:?}?"),
        None => String::new(),
    })]
    UnknownStep {
        /// Which one.
        deployment: String,
        /// The name.
        step: String,
        /// The step that was probably meant.
        closest: Option<String>,
    },
    /// The step begins without an approval.
    #[error(
        "{deployment}: spec.rollout.steps[{step}].approval is None: the step needs no approval"
    )]
    NeedsNoApproval {
        /// Which one.
        deployment: String,
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
