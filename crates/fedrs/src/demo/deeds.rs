//! What the demo does in each step: to the set through the host's API, as a user does; to the members behind
//! everybody's back, as life does.

use std::time::Duration;

use anyhow::Context;
use fedrs_api::FederatedReplicaSet;
use kube::{
    Api, Client,
    api::{DeleteParams, Patch, PatchParams, PostParams, PropagationPolicy},
};
use serde_json::{Value, json};
use sim_cluster::{DeleteOptions, Propagation, WriteOptions, kinds};

use super::{
    expect::NAMESPACE,
    observer::APP_LABEL,
    play::STEP_DEADLINE,
    story::{DARK, Deed, Goal, LaidOut, MEMBERS, ROOM, SMALL, Step},
};
use crate::sim::fleet::Fleet;

/// The other team's workload.
const BATCH: &str = "batch";
/// How often a condition is looked at again.
const LOOK_AGAIN: Duration = Duration::from_millis(25);

/// Who does it: a user of the host, and the fleet's operator.
pub(crate) struct Actor<'a> {
    host: Client,
    fleet: &'a Fleet,
}

impl<'a> Actor<'a> {
    /// An actor who reaches the host by `host`.
    pub(crate) fn new(host: Client, fleet: &'a Fleet) -> Self {
        Self { host, fleet }
    }

    /// Does what `step` says.
    pub(crate) async fn act(&self, step: &Step) -> anyhow::Result<()> {
        match (step.deed, &step.goal) {
            (Deed::Create, Goal::Layout(goal)) => self.create(goal).await,
            (Deed::CreateCrowded, Goal::Layout(goal)) => {
                self.crowd().await?;
                self.create(goal).await
            }
            (Deed::Scale, Goal::Layout(goal)) => self.scale(goal).await,
            (Deed::Prefer, Goal::Layout(goal)) => self.prefer(goal).await,
            (Deed::Delete, Goal::Gone(set)) => self.delete(set).await,
            (Deed::Disconnect, _) => {
                self.fleet.faults(DARK).set_unreachable(true);
                Ok(())
            }
            (Deed::Reconnect, _) => {
                self.fleet.faults(DARK).set_unreachable(false);
                Ok(())
            }
            (deed, goal) => unreachable!("the story never asks for {deed:?} to get {goal:?}"),
        }
    }

    fn sets(&self) -> Api<FederatedReplicaSet> {
        Api::namespaced(self.host.clone(), NAMESPACE)
    }

    async fn create(&self, goal: &LaidOut) -> anyhow::Result<()> {
        let set: FederatedReplicaSet = serde_json::from_value(manifest(goal))?;
        let created = self.sets().create(&PostParams::default(), &set).await;
        created.with_context(|| format!("the host refuses {}", goal.set))?;
        Ok(())
    }

    async fn scale(&self, goal: &LaidOut) -> anyhow::Result<()> {
        let patch = Patch::Merge(json!({ "spec": { "replicas": goal.replicas } }));
        let scaled = self
            .sets()
            .patch_scale(goal.set, &PatchParams::default(), &patch)
            .await;
        scaled.with_context(|| format!("{} can't be scaled", goal.set))?;
        Ok(())
    }

    async fn prefer(&self, goal: &LaidOut) -> anyhow::Result<()> {
        let patch = Patch::Merge(json!({ "spec": { "placement": goal.placement() } }));
        let patched = self
            .sets()
            .patch(goal.set, &PatchParams::default(), &patch)
            .await;
        patched.with_context(|| format!("{} can't be edited", goal.set))?;
        Ok(())
    }

    async fn delete(&self, set: &str) -> anyhow::Result<()> {
        let foreground = DeleteParams {
            propagation_policy: Some(PropagationPolicy::Foreground),
            ..DeleteParams::default()
        };
        let deleted = self.sets().delete(set, &foreground).await;
        deleted.with_context(|| format!("{set} can't be deleted"))?;
        let background = DeleteOptions {
            propagation: Some(Propagation::Background),
            ..DeleteOptions::default()
        };
        let member = self.fleet.member(SMALL);
        let deleted = member.delete(&kinds::REPLICA_SETS, NAMESPACE, BATCH, &background);
        deleted.map_err(|status| anyhow::anyhow!("{BATCH} can't be deleted: {status}"))?;
        Ok(())
    }

    /// Another team runs something in the small member that leaves [`ROOM`] places.
    async fn crowd(&self) -> anyhow::Result<()> {
        let member = self.fleet.member(SMALL);
        let taken = member.list(&kinds::PODS, None).len();
        let size = MEMBERS
            .iter()
            .find(|it| it.name == SMALL)
            .expect("it is one of the members");
        let places = u64::from(size.nodes) * u64::from(size.pods_per_node);
        let replicas = places.saturating_sub(u64::try_from(taken)? + ROOM);
        let created = member.create(
            &kinds::REPLICA_SETS,
            NAMESPACE,
            replica_set(BATCH, replicas),
            &WriteOptions::default(),
        );
        created.map_err(|status| anyhow::anyhow!("{BATCH} can't be created: {status}"))?;
        // Its pods must have their places before anybody else asks for them.
        let ready = async {
            loop {
                let set = member.get(&kinds::REPLICA_SETS, NAMESPACE, BATCH).ok();
                let ready = set.and_then(|set| set["status"]["readyReplicas"].as_u64());
                if ready == Some(replicas) {
                    return;
                }
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        };
        let waited = tokio::time::timeout(STEP_DEADLINE, ready).await;
        waited.with_context(|| format!("{BATCH} in {SMALL} is not ready after {STEP_DEADLINE:?}"))
    }
}

/// A FederatedReplicaSet as a user would write it.
fn manifest(goal: &LaidOut) -> Value {
    let mut set = replica_set(goal.set, goal.replicas);
    set["apiVersion"] = "fedrs.dev/v1alpha1".into();
    set["kind"] = "FederatedReplicaSet".into();
    set["spec"]["placement"] = json!(goal.placement());
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
    fn every_set_of_the_story_is_valid() {
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
