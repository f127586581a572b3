//! The rollout of a FederatedDeployment over its clusters.

use fedrs_api::{
    ClusterState, ClusterStatus, ConditionReason, ConditionType, FederatedDeployment,
    FederatedReplicaSetStatus, WaitReason, conditions, labels,
};
use serde_json::{Value, json};

use super::kind::{Observed, RolloutKind, Users};
use crate::federated_set::remove_unreadable_record;

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

impl RolloutKind for FederatedDeployment {
    type Part = ClusterProgress;

    const COMMAND: &'static str = "fedrs rollout";
    const REVISION_LABEL: &'static str = labels::FEDERATED_DEPLOYMENT;

    fn remove_record(object: &mut Value) {
        remove_unreadable_record(object);
    }

    fn is_paused(&self) -> bool {
        self.spec.paused
    }

    fn revision_fields(&self) -> Value {
        json!({ "template": self.spec.template })
    }

    fn observed(&self) -> Observed<'_> {
        let desired = self.spec.replicas;
        let Some(status) = &self.status else {
            return Observed {
                desired,
                ..Observed::default()
            };
        };
        Observed {
            generation: status.observed_generation,
            current_revision: status.current_revision.as_deref(),
            update_revision: status.update_revision.as_deref(),
            desired,
            pods: status.replicas,
            updated: status.updated_replicas,
            available: status.available_replicas,
            conditions: &status.conditions,
            awaited_step: awaited_step(status),
        }
    }

    /// The clusters with replicas, by name.
    fn parts(&self) -> Vec<ClusterProgress> {
        let Some(status) = &self.status else {
            return Vec::new();
        };
        let shown = status.clusters.iter().filter(|cluster| {
            cluster.has_replicas() && cluster.state != Some(ClusterState::Duplicate)
        });
        let revision = status.update_revision.as_deref();
        shown
            .map(|cluster| ClusterProgress::of(cluster, revision))
            .collect()
    }

    fn users(&self, revision: &str) -> Users {
        let clusters = self.status.iter().flat_map(|status| &status.clusters);
        let with_it = clusters.filter(|cluster| cluster.revision.as_deref() == Some(revision));
        Users::Clusters(with_it.map(|cluster| cluster.name.clone()).collect())
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
    pub(super) fn of(cluster: &ClusterStatus, revision: Option<&str>) -> Self {
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
