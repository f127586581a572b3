//! How far a rollout is, as its status shows it. Pure.

use std::fmt;

use fedrs_api::{
    ClusterState, ClusterStatus, ConditionReason, ConditionStatus, ConditionType,
    FederatedDeployment, FederatedReplicaSetStatus, WaitReason, conditions,
};
use kube::ResourceExt;

/// How far the rollout of a FederatedDeployment is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RolloutProgress {
    /// `shop/web`.
    pub deployment: String,
    /// The revision that is rolled out, by its name; `None` before the first status.
    pub revision: Option<String>,
    /// How far it is over all clusters.
    pub state: RolloutState,
    /// The clusters with replicas, by name.
    pub clusters: Vec<ClusterProgress>,
}

/// How far the rollout is over all clusters. The texts are those of `kubectl rollout status`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RolloutState {
    /// The status is that of an older spec, or there is none.
    Unobserved,
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

/// How far a cluster is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterProgress {
    /// The name of the cluster.
    pub name: String,
    /// Pods with the template.
    pub updated: i32,
    /// Replicas that the cluster should have.
    pub desired: i32,
    /// Available pods, whatever their template.
    pub available: i32,
    /// What the cluster waits for, for people: `for step canary to be approved`. Empty if it is complete.
    pub waiting: String,
}

impl RolloutProgress {
    /// The progress that the status of `deployment` shows.
    #[must_use]
    pub fn of(deployment: &FederatedDeployment) -> Self {
        let namespace = deployment.namespace().unwrap_or_default();
        let status = deployment.status.clone().unwrap_or_default();
        let shown = status.clusters.iter().filter(|cluster| {
            cluster.has_replicas() && cluster.state != Some(ClusterState::Duplicate)
        });
        Self {
            deployment: format!("{namespace}/{}", deployment.name_any()),
            state: RolloutState::of(deployment, &status),
            clusters: shown
                .map(|cluster| ClusterProgress::of(cluster, status.update_revision.as_deref()))
                .collect(),
            revision: status.update_revision,
        }
    }

    /// Whether the rollout has ended, well or not.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        matches!(self.state, RolloutState::Complete | RolloutState::Failed(_))
    }
}

impl RolloutState {
    /// Complete is what the controller calls complete, and the condition Ready: each cluster has the revision, and each replica
    /// has a place and is available. A cluster that is lost is updated when it returns, and does not count.
    fn of(deployment: &FederatedDeployment, status: &FederatedReplicaSetStatus) -> Self {
        let found = |type_| conditions::find(&status.conditions, type_);
        let message = |type_| found(type_).map_or(String::new(), |found| found.message.clone());
        let is_true = |type_| conditions::is_true(&status.conditions, type_);
        let progressing = found(ConditionType::Progressing);
        let has_reason = |reason: ConditionReason| {
            progressing.is_some_and(|found| found.reason == reason.to_string())
        };
        // The deadline is exceeded, or the controller rolls back.
        let has_failed =
            progressing.is_some_and(|found| found.status == ConditionStatus::False.as_str());
        let (desired, updated) = (deployment.spec.replicas, status.updated_replicas);
        let (pods, available) = (status.replicas, status.available_replicas);
        if deployment.metadata.deletion_timestamp.is_some() {
            Self::Failed("it is being deleted".to_owned())
        } else if !is_observed(deployment) {
            Self::Unobserved
        } else if has_failed {
            Self::Failed(message(ConditionType::Progressing))
        } else if is_true(ConditionType::Stalled) {
            Self::Failed(message(ConditionType::Stalled))
        } else if is_true(ConditionType::Paused) {
            Self::Held(message(ConditionType::Paused))
        } else if let Some(step) = awaited_step(status) {
            Self::AwaitingApproval {
                step: step.to_owned(),
            }
        } else if has_reason(ConditionReason::RolloutPaused) || has_reason(ConditionReason::Soaking)
        {
            Self::Held(message(ConditionType::Progressing))
        } else if updated < desired {
            Self::Updating { updated, desired }
        } else if pods > updated {
            Self::Terminating {
                old: pods.saturating_sub(updated),
            }
        } else if available < updated {
            Self::BecomingAvailable { available, updated }
        } else if status.current_revision == status.update_revision && is_true(ConditionType::Ready)
        {
            Self::Complete
        } else {
            Self::Held(message(ConditionType::Ready))
        }
    }
}

/// Whether the status is that of the current spec, and names its revision.
pub(super) fn is_observed(deployment: &FederatedDeployment) -> bool {
    deployment.status.as_ref().is_some_and(|status| {
        status.update_revision.is_some()
            && status.observed_generation >= deployment.metadata.generation
    })
}

/// The step that waits for its approval.
pub(super) fn awaited_step(status: &FederatedReplicaSetStatus) -> Option<&str> {
    let progressing = conditions::find(&status.conditions, ConditionType::Progressing)?;
    let waits = progressing.reason == ConditionReason::WaitingForApproval.to_string();
    let rollout = status.rollout.as_ref().filter(|_| waits)?;
    rollout.step.as_deref()
}

impl ClusterProgress {
    fn of(cluster: &ClusterStatus, revision: Option<&str>) -> Self {
        let (updated, desired) = (cluster.updated_replicas, cluster.desired_replicas);
        let available = cluster.available_replicas;
        let is_complete =
            cluster.revision.as_deref() == revision && updated >= desired && available >= desired;
        let mut waits = cluster.waits.iter();
        let waiting = match waits.find(|wait| wait.reason == WaitReason::Rollout) {
            Some(wait) => wait.to_string(),
            None if is_complete => String::new(),
            None => cluster.message.clone(),
        };
        Self {
            name: cluster.name.clone(),
            updated,
            desired,
            available,
            waiting,
        }
    }
}

/// One sentence.
impl fmt::Display for RolloutState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const WAITING: &str = "Waiting for rollout to finish:";
        match self {
            Self::Unobserved => {
                f.write_str("Waiting for federateddeployment spec update to be observed...")
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
