//! Performs the action of each step: on the set through the host's API, as a user does; on the members directly, without
//! the controller's knowledge.

use std::time::Duration;

use anyhow::Context;
use fedrs_api::{DeletionPolicy, EndpointSet, EndpointSource, FederatedDeployment, SetKind};
use kube::{
    Api, Client,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use membership::{
    cluster_client::ClusterClient,
    rollout::{self, Target},
};
use serde_json::{Value, json};
use sim_cluster::{DeleteOptions, Propagation, WriteOptions, kinds};

use super::story::{
    APP_LABEL, Action, FREE_PODS, Goal, LayoutGoal, MAX_SURGE, MEMBERS, NAMESPACE,
    PROGRESS_DEADLINE_SECONDS, SMALL, STEP_TIMEOUT, Step, UNREACHABLE,
};
use crate::embedded::EmbeddedClusters;

/// The annotation of a template by which pods fail in embedded clusters.
const FAIL: &str = "sim-cluster.dev/fail";
/// The other team's workload.
const BATCH: &str = "batch";
/// How often a condition is polled.
pub(crate) const POLL_PERIOD: Duration = Duration::from_millis(25);

/// A user of the host, who also operates the member clusters.
pub(crate) struct Operator<'a> {
    host: Client,
    commands: ClusterClient,
    clusters: &'a EmbeddedClusters,
}

impl<'a> Operator<'a> {
    /// An operator who connects to the host with `host`, and by the commands of fedrs with `commands`.
    pub(crate) fn new(
        host: Client,
        commands: ClusterClient,
        clusters: &'a EmbeddedClusters,
    ) -> Self {
        Self {
            host,
            commands,
            clusters,
        }
    }

    /// Performs the action of `step`.
    pub(crate) async fn perform(&self, step: &Step) -> anyhow::Result<()> {
        match (step.action, &step.goal) {
            (Action::Create, Goal::Layout(goal)) => {
                self.create(goal).await?;
                self.create_endpoint_set(goal.set).await
            }
            (Action::FillAndCreate, Goal::Layout(goal)) => {
                self.fill().await?;
                self.create(goal).await
            }
            (Action::Scale, Goal::Layout(goal)) => self.scale(goal).await,
            (Action::UpdateWeights, Goal::Layout(goal)) => self.update_weights(goal).await,
            (Action::RollOut(version), Goal::Layout(goal)) => {
                self.roll_out(goal, version, None).await
            }
            (Action::RollOutBroken(version), Goal::Stopped(goal)) => {
                self.roll_out(goal, version, Some("image-pull")).await
            }
            (Action::Undo, Goal::Layout(goal)) => self.undo(goal).await,
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

    fn sets(&self) -> Api<FederatedDeployment> {
        Api::namespaced(self.host.clone(), NAMESPACE)
    }

    async fn create(&self, goal: &LayoutGoal) -> anyhow::Result<()> {
        let set: FederatedDeployment = serde_json::from_value(manifest(goal))?;
        self.sets().create(&PostParams::default(), &set).await?;
        Ok(())
    }

    /// Creates the EndpointSet by which clients find the replicas.
    async fn create_endpoint_set(&self, name: &str) -> anyhow::Result<()> {
        let set: EndpointSet = serde_json::from_value(json!({
            "apiVersion": "fedrs.dev/v1alpha1",
            "kind": "EndpointSet",
            "metadata": { "name": name },
            "spec": { "source": EndpointSource::of_set(SetKind::FederatedDeployment, name) },
        }))?;
        let sets: Api<EndpointSet> = Api::namespaced(self.host.clone(), NAMESPACE);
        sets.create(&PostParams::default(), &set).await?;
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

    /// Updates the image to `version`, with pods that fail as the embedded clusters let them.
    async fn roll_out(
        &self,
        goal: &LayoutGoal,
        version: &str,
        failure: Option<&str>,
    ) -> anyhow::Result<()> {
        let annotations = failure.map(|failure| json!({ FAIL: failure }));
        let container =
            json!({ "name": goal.set, "image": format!("example/{}:{version}", goal.set) });
        let template = json!({
            "metadata": { "annotations": annotations },
            "spec": { "containers": [container] },
        });
        let patch = Patch::Merge(json!({ "spec": { "template": template } }));
        let (sets, parameters) = (self.sets(), PatchParams::default());
        sets.patch(goal.set, &parameters, &patch).await?;
        Ok(())
    }

    async fn undo(&self, goal: &LayoutGoal) -> anyhow::Result<()> {
        let target: Target<'_> = Target::new(&self.commands, NAMESPACE, goal.set);
        rollout::undo(target, None).await?;
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

/// A FederatedDeployment as a user would write it.
fn manifest(goal: &LayoutGoal) -> Value {
    let mut set = replica_set(goal.set, goal.replicas);
    set["apiVersion"] = "fedrs.dev/v1alpha1".into();
    set["kind"] = "FederatedDeployment".into();
    let budget = json!({ "maxUnavailable": 0, "maxSurge": MAX_SURGE });
    set["spec"]["strategy"] = json!({ "rollingUpdate": budget });
    set["spec"]["progressDeadlineSeconds"] = PROGRESS_DEADLINE_SECONDS.into();
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
    use fedrs_api::SetKind;

    use super::*;
    use crate::demo::story::STEPS;

    #[test]
    fn all_sets_are_valid() {
        for step in &STEPS {
            let Goal::Layout(goal) = &step.goal else {
                continue;
            };
            let set = manifest(goal);
            let errors = fedrs_api::crd::schema_errors(SetKind::FederatedDeployment, &set);
            assert!(errors.is_empty(), "{errors:?}");
            let set: FederatedDeployment = serde_json::from_value(set).unwrap();
            fedrs_api::ValidFederatedDeployment::check(&set).unwrap();
        }
    }
}
