//! How far a rollout is, as its status shows it. Pure.

use std::fmt;

use fedrs_api::{ConditionReason, ConditionStatus, ConditionType, conditions};
use kube::ResourceExt;

use super::kind::{Observed, RolloutKind};

/// How far the rollout of an object is. A part is a cluster, or what else the status of its kind shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RolloutProgress<P> {
    /// `federateddeployment shop/web`.
    pub object: String,
    /// The revision that is rolled out, by its name; `None` before the first status.
    pub revision: Option<String>,
    /// How far it is as a whole.
    pub state: RolloutState,
    /// The parts of it.
    pub parts: Vec<P>,
}

/// How far the rollout is as a whole. The texts are those of `kubectl rollout status`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RolloutState {
    /// The status is that of an older spec, or there is none.
    Unobserved {
        /// The kind in lower case.
        kind: String,
    },
    /// Fewer pods than replicas have the template.
    Updating {
        /// Pods with the template.
        updated: i32,
        /// `spec.replicas`.
        desired: i32,
    },
    /// Pods of another template exist.
    Terminating {
        /// How many.
        old: i32,
    },
    /// Pods with the template are not available.
    BecomingAvailable {
        /// Available pods.
        available: i32,
        /// Pods with the template.
        updated: i32,
    },
    /// The rollout goes on after an approval.
    AwaitingApproval {
        /// The step that needs it.
        step: String,
    },
    /// The rollout is stopped, soaks or waits for something else.
    Held(String),
    /// Each cluster has the revision, and all replicas are available.
    Complete,
    /// It does not go on without a change.
    Failed(String),
}

impl<P> RolloutProgress<P> {
    /// The progress that the status of `object` shows.
    #[must_use]
    pub fn of<K: RolloutKind<Part = P>>(object: &K) -> Self {
        let kind = K::kind(&()).to_lowercase();
        let namespace = object.namespace().unwrap_or_default();
        let observed = object.observed();
        Self {
            object: format!("{kind} {namespace}/{}", object.name_any()),
            state: RolloutState::of(object, &observed, kind),
            parts: object.parts(),
            revision: observed.update_revision.map(str::to_owned),
        }
    }

    /// Whether the rollout has ended, well or not.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        matches!(self.state, RolloutState::Complete | RolloutState::Failed(_))
    }
}

impl RolloutState {
    /// Complete is what the controller calls complete, and the condition Ready: all have the revision, and each replica has a place
    /// and is available. A cluster that is lost is updated when it returns, and does not count. The conditions have the same names
    /// in all kinds.
    fn of<K: RolloutKind>(object: &K, observed: &Observed<'_>, kind: String) -> Self {
        let found = |type_| conditions::find(observed.conditions, type_);
        let message = |type_| found(type_).map_or(String::new(), |found| found.message.clone());
        let is_true = |type_| conditions::is_true(observed.conditions, type_);
        let progressing = found(ConditionType::Progressing);
        let has_reason = |reason: ConditionReason| {
            progressing.is_some_and(|found| found.reason == reason.to_string())
        };
        // The deadline is exceeded, the controller rolls back, or updates are disabled: not only paused.
        let has_failed = progressing
            .is_some_and(|found| found.status == ConditionStatus::False.as_str())
            && !has_reason(ConditionReason::RolloutPaused);
        let Observed {
            desired,
            pods,
            updated,
            available,
            ..
        } = *observed;
        let is_of_spec = observed.generation >= object.meta().generation;
        if object.meta().deletion_timestamp.is_some() {
            Self::Failed("it is being deleted".to_owned())
        } else if !is_of_spec {
            Self::Unobserved { kind }
        } else if has_failed {
            Self::Failed(message(ConditionType::Progressing))
        } else if is_true(ConditionType::Stalled) {
            Self::Failed(message(ConditionType::Stalled))
        } else if observed.update_revision.is_none() {
            Self::Unobserved { kind }
        } else if is_true(ConditionType::Paused) {
            Self::Held(message(ConditionType::Paused))
        } else if let Some(step) = observed.awaited_step {
            Self::AwaitingApproval {
                step: step.to_owned(),
            }
        } else if has_reason(ConditionReason::RolloutPaused) || has_reason(ConditionReason::Soaking)
        {
            Self::Held(message(ConditionType::Progressing))
        } else if observed.current_revision == observed.update_revision
            && is_true(ConditionType::Ready)
        {
            // Beside it, pods may wait in a full cluster to show when that has room.
            Self::Complete
        } else if updated < desired {
            Self::Updating { updated, desired }
        } else if pods > updated {
            Self::Terminating {
                old: pods.saturating_sub(updated),
            }
        } else if available < updated {
            Self::BecomingAvailable { available, updated }
        } else {
            Self::Held(message(ConditionType::Ready))
        }
    }
}

/// One sentence.
impl fmt::Display for RolloutState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const WAITING: &str = "Waiting for rollout to finish:";
        match self {
            Self::Unobserved { kind } => {
                write!(f, "Waiting for {kind} spec update to be observed...")
            }
            Self::Updating { updated, desired } => write!(
                f,
                "{WAITING} {updated} out of {desired} new replicas have been updated..."
            ),
            Self::Terminating { old } => {
                write!(f, "{WAITING} {old} old replicas are pending termination...")
            }
            Self::BecomingAvailable { available, updated } => write!(
                f,
                "{WAITING} {available} of {updated} updated replicas are available..."
            ),
            Self::AwaitingApproval { step } => {
                write!(f, "{WAITING} step {step} needs an approval...")
            }
            Self::Held(message) => write!(f, "{WAITING} {message}"),
            Self::Complete => f.write_str("successfully rolled out"),
            Self::Failed(message) => f.write_str(message),
        }
    }
}

#[cfg(test)]
#[path = "progress_tests.rs"]
mod tests;
