//! Performs the action of each step: on the set through the host's API, as a user does; on the members directly, without
//! the controller's knowledge.

use std::time::Duration;

use anyhow::Context;
use fedrs_api::{DeletionPolicy, FederatedReplicaSet};
use kube::{
    Api, Client,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use sim_cluster::{DeleteOptions, Propagation, WriteOptions, kinds};

use super::story::{
    APP_LABEL, Action, FREE_PODS, Goal, LayoutGoal, MEMBERS, NAMESPACE, SMALL, STEP_TIMEOUT, Step,
    UNREACHABLE,
};
use crate::embedded::EmbeddedClusters;

/// The other team's workload.
const BATCH: &str = "batch";
/// How often a condition is polled.
const POLL_PERIOD: Duration = Duration::from_millis(25);

/// A user of the host, who also operates the member clusters.
pub(crate) struct Operator<'a> {
    host: Client,
    clusters: &'a EmbeddedClusters,
}

impl<'a> Operator<'a> {
    /// An operator who connects to the host with `host`.
    pub(crate) fn new(host: Client, clusters: &'a EmbeddedClusters) -> Self {
        Self { host, clusters }
    }

    /// Performs the action of `step`.
    pub(crate) async fn perform(&self, step: &Step) -> anyhow::Result<()> {
        match (step.action, &step.goal) {
            (Action::Create, Goal::Layout(goal)) => self.create(goal).await,
            (Action::FillAndCreate, Goal::Layout(goal)) => {
                self.fill().await?;
                self.create(goal).await
            }
            (Action::Scale, Goal::Layout(goal)) => self.scale(goal).await,
            (Action::UpdateWeights, Goal::Layout(goal)) => self.update_weights(goal).await,
            (Action::Delete, Goal::Deleted(set)) => self.delete(set).await,
            (Action::Disconnect | Action::Reconnect, _) => {
                let is_unreachable = step.action == Action::Disconnect;
                let faults = self.clusters.member(UNREACHABLE).faults();
                faults.set_unreachable(is_unreachable);
                Ok(())
            }
            (action, goal) => {
                unreachable!("no step has the action {action:?} with the goal {goal:?}")
            }
        }
    }

    fn sets(&self) -> Api<FederatedReplicaSet> {
        Api::namespaced(self.host.clone(), NAMESPACE)
    }

    async fn create(&self, goal: &LayoutGoal) -> anyhow::Result<()> {
        let set: FederatedReplicaSet = serde_json::from_value(manifest(goal))?;
        self.sets().create(&PostParams::default(), &set).await?;
        Ok(())
    }

    async fn scale(&self, goal: &LayoutGoal) -> anyhow::Result<()> {
        let patch = Patch::Merge(json!({ "spec": { "replicas": goal.replicas } }));
        let (sets, parameters) = (self.sets(), PatchParams::default());
        sets.patch_scale(goal.set, &parameters, &patch).await?;
        Ok(())
    }

    async fn update_weights(&self, goal: &LayoutGoal) -> anyhow::Result<()> {
        let patch = Patch::Merge(json!({ "spec": { "placement": goal.placement() } }));
        let (sets, parameters) = (self.sets(), PatchParams::default());
        sets.patch(goal.set, &parameters, &patch).await?;
        Ok(())
    }

    async fn delete(&self, set: &str) -> anyhow::Result<()> {
        self.sets().delete(set, &DeleteParams::default()).await?;
        let background = DeleteOptions {
            propagation: Some(Propagation::Background),
            ..DeleteOptions::default()
        };
        let member = self.clusters.member(SMALL).api();
        member.delete(&kinds::REPLICA_SETS, NAMESPACE, BATCH, &background)?;
        Ok(())
    }

    /// Creates another team's workload in the small member that leaves capacity for [`FREE_PODS`] pods.
    async fn fill(&self) -> anyhow::Result<()> {
        let member = self.clusters.member(SMALL).api();
        let running = member.list(&kinds::PODS, None).len();
        let size = MEMBERS
            .iter()
            .find(|member| member.name == SMALL)
            .expect("SMALL is one of the members");
        let capacity = u64::from(size.nodes) * u64::from(size.pods_per_node);
        let replicas = capacity.saturating_sub(u64::try_from(running)? + FREE_PODS);
        let (batch, options) = (replica_set(BATCH, replicas), WriteOptions::default());
        member.create(&kinds::REPLICA_SETS, NAMESPACE, batch, &options)?;
        // Its pods must be scheduled before those of the set.
        let ready = async {
            loop {
                let set = member.get(&kinds::REPLICA_SETS, NAMESPACE, BATCH).ok();
                let ready = set.and_then(|set| set["status"]["readyReplicas"].as_u64());
                if ready == Some(replicas) {
                    return;
                }
                tokio::time::sleep(POLL_PERIOD).await;
            }
        };
        let waited = tokio::time::timeout(STEP_TIMEOUT, ready).await;
        waited.with_context(|| format!("{BATCH} in {SMALL} is not ready after {STEP_TIMEOUT:?}"))
    }
}

/// A FederatedReplicaSet as a user would write it.
fn manifest(goal: &LayoutGoal) -> Value {
    let mut set = replica_set(goal.set, goal.replicas);
    set["apiVersion"] = "fedrs.dev/v1alpha1".into();
    set["kind"] = "FederatedReplicaSet".into();
    set["spec"]["placement"] = json!(goal.placement());
    // The default keeps the pods of a deleted set running.
    set["spec"]["deletionPolicy"] = json!(DeletionPolicy::Delete);
    set
}

fn replica_set(name: &str, replicas: u64) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": { "name": name, "namespace": NAMESPACE },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": { APP_LABEL: name } },
            "template": {
                "metadata": { "labels": { APP_LABEL: name } },
                "spec": { "containers": [{ "name": name, "image": format!("example/{name}:1.0") }] },
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::story::STEPS;

    #[test]
    fn all_sets_are_valid() {
        for step in &STEPS {
            let Goal::Layout(goal) = &step.goal else {
                continue;
            };
            let set = manifest(goal);
            assert!(fedrs_api::crd::schema_errors(&set).is_empty(), "{set}");
            let set: FederatedReplicaSet = serde_json::from_value(set).unwrap();
            fedrs_api::ValidFrs::check(&set).unwrap();
        }
    }
}
