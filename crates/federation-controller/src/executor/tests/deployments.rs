//! The changes of Deployments in an embedded cluster, whose controllers act on them.

use std::{collections::BTreeSet, time::Duration};

use cluster_informer::{DeploymentObject, WorkloadState};
use controller_base::calls;
use federated_rollout::{Action as RolloutAction, Strategy};
use fedrs_api::{DeletionPolicy, LocalKind, RejectionKind, ValidFrs};
use kube::Client;
use serde_json::{Value, json};
use sim_cluster::SimCluster;

use super::world::{FEDERATION, Writer, selector, set, template};
use crate::check::{Outcome, Precondition, SetChange};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const WEB: &str = "/apis/apps/v1/namespaces/default/deployments/web";
const SETS: &str = "/apis/apps/v1/namespaces/default/replicasets";
const PODS: &str = "/api/v1/namespaces/default/pods";
const CREATE: SetChange = SetChange::Create {
    replicas: 3,
    revision: None,
};

fn deployment(image: &str) -> ValidFrs {
    set(LocalKind::Deployment, image)
}

/// The strategy as the API server must show it.
fn strategy(unavailable: u64, surge: u64) -> Value {
    let pods = json!({ "maxUnavailable": unavailable, "maxSurge": surge });
    json!({ "type": "RollingUpdate", "rollingUpdate": pods })
}

struct World {
    /// Stops when it is dropped.
    _member: SimCluster,
    client: Client,
    writer: Writer,
}

impl World {
    fn new() -> Self {
        let member = SimCluster::builder("eu").nodes(3).start();
        let client = Client::new(member.service(), "default");
        Self {
            writer: Writer::new(client.clone()),
            client,
            _member: member,
        }
    }

    /// A member in which the set runs this image.
    async fn running(image: &str) -> Self {
        let world = Self::new();
        let created = world.writer.carry_out(&deployment(image), CREATE).await;
        assert!(matches!(created, Outcome::Written(_)), "{created:?}");
        world.settle().await;
        world
    }

    /// A member in which somebody else runs this Deployment with the strategy that the API server chooses.
    async fn with_found(edit: impl FnOnce(&mut Value)) -> Self {
        let world = Self::new();
        let mut found = json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": { "name": "web", "namespace": "default" },
            "spec": { "replicas": 4, "selector": selector(), "template": template("web:1") },
        });
        edit(&mut found);
        let found = calls::post::<Value>(&world.client, DEPLOYMENTS, &found).await;
        assert_eq!(found.unwrap()["spec"]["strategy"], percentages());
        world.settle().await;
        world
    }

    /// Controllers and kubelets have done what they have to do.
    async fn settle(&self) {
        tokio::time::sleep(Duration::from_secs(120)).await;
    }

    async fn get(&self, path: &str) -> Value {
        calls::get(&self.client, path).await.unwrap()
    }

    /// The metadata of the objects in a collection.
    async fn metadata(&self, path: &str) -> Vec<Value> {
        let list = self.get(path).await;
        let items = list["items"].as_array().unwrap().iter();
        items.map(|item| item["metadata"].clone()).collect()
    }

    async fn pods(&self) -> BTreeSet<String> {
        let pods = self.metadata(PODS).await;
        pods.iter().map(|pod| pod["uid"].to_string()).collect()
    }

    /// The images of all pods.
    async fn images(&self) -> BTreeSet<String> {
        let list = self.get(PODS).await;
        let pods = list["items"].as_array().unwrap().iter();
        pods.map(|pod| pod["spec"]["containers"][0]["image"].to_string())
            .collect()
    }

    async fn seen(&self) -> Precondition {
        let live: DeploymentObject = serde_json::from_value(self.get(WEB).await).unwrap();
        Precondition::from(&WorkloadState::from(live))
    }

    async fn roll_out(&self, set: &ValidFrs, seen: Precondition, action: RolloutAction) -> Outcome {
        let change = SetChange::Rollout { seen, action };
        self.writer.carry_out(set, change).await
    }

    async fn release(&self) {
        let (key, seen) = (deployment("web:1").workload_key(), self.seen().await);
        let released = self
            .writer
            .release_or_delete(&key, &seen.uid, DeletionPolicy::Orphan);
        released.await.unwrap();
    }
}

fn percentages() -> Value {
    json!({ "type": "RollingUpdate", "rollingUpdate": { "maxUnavailable": "25%", "maxSurge": "25%" } })
}

/// Whether an object has labels of ours.
fn is_labeled(metadata: &Value) -> bool {
    metadata["labels"].to_string().contains("fedrs.dev/")
}

#[tokio::test(start_paused = true)]
async fn f28_a_deployment_is_created_and_scaled_with_the_smallest_strategy() {
    let world = World::running("web:1").await;
    let created = world.get(WEB).await;
    assert_eq!(created["spec"]["strategy"], strategy(0, 1));
    assert!(is_labeled(&created["spec"]["template"]["metadata"]));
    let pods = world.pods().await;
    assert_eq!(pods.len(), 3);
    let change = SetChange::Scale {
        seen: world.seen().await,
        from: 3,
        to: 5,
    };
    let scaled = world.writer.carry_out(&deployment("web:2"), change).await;
    let Outcome::Scaled { set, by: None } = scaled else {
        panic!("{scaled:?}");
    };
    assert_eq!(set.key, deployment("web:1").workload_key());
    assert_eq!((set.replicas, set.generation), (5, 2));
    world.settle().await;
    assert!(world.pods().await.is_superset(&pods));
    let spec = &world.get(WEB).await["spec"];
    assert_eq!(spec["template"], created["spec"]["template"]);
    assert_eq!(spec["strategy"], strategy(0, 1));
}

#[tokio::test(start_paused = true)]
async fn l14_a_template_is_written_with_its_loan_at_the_generation_of_the_loan_only() {
    let world = World::running("web:1").await;
    let (before, seen) = (world.get(WEB).await, world.seen().await);
    let roll = RolloutAction::Roll(Strategy::new(2, 1));
    for (generation, uid) in [
        (2, seen.uid.clone()),
        (0, seen.uid.clone()),
        (1, "other".into()),
    ] {
        let other = Precondition {
            uid,
            generation,
            ..seen.clone()
        };
        let outcome = world.roll_out(&deployment("web:2"), other, roll).await;
        assert!(matches!(outcome, Outcome::Conflict(_)), "{outcome:?}");
        assert_eq!(world.get(WEB).await, before);
    }
    let rolled = world
        .roll_out(&deployment("web:2"), seen.clone(), roll)
        .await;
    assert!(matches!(rolled, Outcome::Written(_)), "{rolled:?}");
    let spec = &world.get(WEB).await["spec"];
    assert_eq!(spec["strategy"], strategy(2, 1));
    assert_eq!(spec["replicas"], 3);
    // The same write once more, late.
    let late = world.roll_out(&deployment("web:2"), seen, roll).await;
    assert!(matches!(late, Outcome::Conflict(_)), "{late:?}");
    let seen = world.seen().await;
    assert_eq!(seen.generation, 2);
    let shrink = RolloutAction::Shrink(Strategy::new(1, 0));
    let shrunk = world.roll_out(&deployment("web:2"), seen, shrink).await;
    assert!(matches!(shrunk, Outcome::Scaled { .. }), "{shrunk:?}");
    assert_eq!(world.get(WEB).await["spec"]["strategy"], strategy(1, 0));
    world.settle().await;
    assert_eq!(world.images().await, ["\"web:2\"".to_owned()].into());
}

#[tokio::test(start_paused = true)]
async fn l14_a_fence_raises_the_generation_and_changes_no_pod() {
    let world = World::running("web:1").await;
    let (pods, sets) = (world.pods().await, world.get(SETS).await);
    let earlier = world.seen().await;
    for generation in 2..5 {
        let seen = world.seen().await;
        let set = deployment("web:1");
        let fenced = world.roll_out(&set, seen, RolloutAction::Fence).await;
        let Outcome::Scaled { set, .. } = fenced else {
            panic!("{fenced:?}");
        };
        assert_eq!(set.generation, generation);
        world.settle().await;
    }
    assert_eq!(world.pods().await, pods);
    assert_eq!(world.get(SETS).await["items"], sets["items"]);
    let roll = RolloutAction::Roll(Strategy::new(1, 0));
    let late = world.roll_out(&deployment("web:2"), earlier, roll).await;
    assert!(matches!(late, Outcome::Conflict(_)), "{late:?}");
}

#[tokio::test(start_paused = true)]
async fn f29_what_others_change_is_restored_without_template_and_strategy() {
    let world = World::running("web:1").await;
    let pods = world.pods().await;
    let drift = json!({ "spec": { "paused": true, "revisionHistoryLimit": 1, "replicas": 2 } });
    let drifted = calls::merge_patch::<Value>(&world.client, WEB, &drift);
    let before = drifted.await.unwrap();
    let change = SetChange::Overwrite {
        seen: world.seen().await,
        replicas: 3,
        drifted: true,
        keeps_pause: false,
    };
    let restored = world.writer.carry_out(&deployment("web:2"), change).await;
    assert!(
        matches!(restored, Outcome::Configured { .. }),
        "{restored:?}"
    );
    let spec = &world.get(WEB).await["spec"];
    assert_eq!(spec["replicas"], 3);
    assert_eq!(spec["revisionHistoryLimit"], 10);
    assert_ne!(spec["paused"], true);
    for field in ["template", "strategy"] {
        assert_eq!(spec[field], before["spec"][field]);
    }
    world.settle().await;
    assert_eq!(world.pods().await.intersection(&pods).count(), 2);
}

#[tokio::test(start_paused = true)]
async fn f29_an_adoption_restarts_no_pod_and_takes_the_default_strategy_away() {
    for (image, has_template) in [("web:1", true), ("web:2", false)] {
        let world = World::with_found(|_| {}).await;
        let (pods, found) = (world.pods().await, world.get(WEB).await);
        let adopted = world.writer.carry_out(&deployment(image), CREATE).await;
        let Outcome::Adopted {
            has_desired,
            set,
            changed,
        } = adopted
        else {
            panic!("{adopted:?}");
        };
        assert_eq!((has_desired, set.replicas), (has_template, 4), "{image}");
        assert_eq!(changed, "strategy, settings and labels");
        world.settle().await;
        let live = world.get(WEB).await;
        assert_eq!(live["spec"]["strategy"], strategy(0, 1));
        assert_eq!(live["spec"]["template"], found["spec"]["template"]);
        assert!(is_labeled(&live["metadata"]));
        assert_eq!(world.pods().await, pods);
        // The pods are labeled by patch, and so are the sets between: no template is.
        let seen = world.seen().await;
        let label = SetChange::LabelPods { seen };
        let labeled = world.writer.carry_out(&deployment(image), label).await;
        let expected = Outcome::PodsLabeled {
            pods: 4,
            spec_version: set.spec_version(),
        };
        assert_eq!(labeled, expected);
        world.settle().await;
        assert_eq!(world.pods().await, pods);
        assert!(world.metadata(PODS).await.iter().all(is_labeled));
        assert!(world.metadata(SETS).await.iter().all(is_labeled));
        let template = &world.get(WEB).await["spec"]["template"];
        assert_eq!(*template, found["spec"]["template"]);
    }
}

/// A ReplicaSet `web` of 4 replicas, as a FederatedReplicaSet leaves it when it is deleted.
fn left_behind() -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": { "name": "web", "namespace": "default", "labels": { "team": "x" } },
        "spec": { "replicas": 4, "selector": selector(), "template": template("web:1") },
    })
}

#[tokio::test(start_paused = true)]
async fn f29_f30_a_replica_set_that_was_left_behind_is_handed_over_without_a_restart() {
    for (image, has_template) in [("web:1", true), ("web:2", false)] {
        let world = World::new();
        let found = calls::post::<Value>(&world.client, SETS, &left_behind()).await;
        let found = found.unwrap();
        world.settle().await;
        let pods = world.pods().await;
        assert_eq!(pods.len(), 4);
        let adopted = world.writer.carry_out(&deployment(image), CREATE).await;
        let Outcome::Adopted {
            has_desired, set, ..
        } = adopted
        else {
            panic!("{adopted:?}");
        };
        assert_eq!((has_desired, set.replicas), (has_template, 4), "{image}");
        world.settle().await;
        let live = world.get(WEB).await;
        assert_eq!(live["spec"]["template"], found["spec"]["template"]);
        assert_eq!(live["spec"]["strategy"], strategy(0, 1));
        assert_eq!(world.pods().await, pods);
        let sets = world.metadata(SETS).await;
        assert_eq!(sets.len(), 1, "the Deployment has claimed it");
        assert_eq!(sets[0]["ownerReferences"][0]["kind"], "Deployment");
    }
}

/// What somebody else has, or selects other pods, stays as it is.
#[tokio::test(start_paused = true)]
async fn f29_only_replica_sets_that_were_left_behind_are_handed_over() {
    let owner = json!([{ "apiVersion": "example.com/v1", "kind": "Set", "name": "s", "uid": "s", "controller": true }]);
    for (field, value) in [
        (
            "/metadata/labels",
            json!({ "fedrs.dev/federation": FEDERATION }),
        ),
        ("/metadata/ownerReferences", owner),
        (
            "/spec/selector/matchLabels",
            json!({ "app": "web", "tier": "x" }),
        ),
    ] {
        let world = World::new();
        let mut other = left_behind();
        other["metadata"]["ownerReferences"] = json!([]);
        other["spec"]["template"]["metadata"]["labels"]["tier"] = json!("x");
        *other.pointer_mut(field).unwrap() = value;
        calls::post::<Value>(&world.client, SETS, &other)
            .await
            .unwrap();
        let created = world.writer.carry_out(&deployment("web:1"), CREATE).await;
        assert!(
            matches!(created, Outcome::Written(_)),
            "{field}: {created:?}"
        );
        world.settle().await;
        let sets = world.get(SETS).await;
        let found = sets["items"].as_array().unwrap().iter();
        let mut found = found.filter(|set| set["metadata"]["name"] == "web");
        let is_claimed =
            |set: &Value| set["metadata"]["ownerReferences"][0]["kind"] == "Deployment";
        assert!(!found.any(is_claimed), "{field}");
    }
}

#[tokio::test(start_paused = true)]
async fn f5_a_release_leaves_the_template_and_the_pods() {
    let world = World::running("web:1").await;
    let (pods, before) = (world.pods().await, world.get(WEB).await);
    world.release().await;
    world.settle().await;
    let after = world.get(WEB).await;
    assert_eq!(after["spec"], before["spec"]);
    assert_eq!(
        after["metadata"]["generation"],
        before["metadata"]["generation"]
    );
    assert_eq!(after["metadata"]["labels"], json!({ "team": "x" }));
    assert_eq!(world.pods().await, pods);
    for path in [PODS, SETS] {
        assert!(!world.metadata(path).await.iter().any(is_labeled), "{path}");
    }
    // Its template is still the one that fedrs wrote.
    let adopted = world.writer.carry_out(&deployment("web:1"), CREATE).await;
    let has_template = matches!(
        adopted,
        Outcome::Adopted {
            has_desired: true,
            ..
        }
    );
    assert!(has_template, "{adopted:?}");
    world.settle().await;
    assert_eq!(world.pods().await, pods);
}

#[tokio::test(start_paused = true)]
async fn f5_a_deleted_deployment_takes_its_pods_along() {
    let world = World::running("web:1").await;
    let (key, seen) = (deployment("web:1").workload_key(), world.seen().await);
    let deleted = world
        .writer
        .release_or_delete(&key, &seen.uid, DeletionPolicy::Delete);
    deleted.await.unwrap();
    world.settle().await;
    for path in [DEPLOYMENTS, SETS, PODS] {
        assert!(world.metadata(path).await.is_empty(), "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn f29_a_deployment_with_another_selector_is_replaced_without_its_pods() {
    let world = World::with_found(|found| {
        found["spec"]["selector"] = json!({ "matchLabels": { "tier": "x" } });
        found["spec"]["template"]["metadata"]["labels"] = json!({ "tier": "x" });
    })
    .await;
    let pods = world.pods().await;
    let replaced = world.writer.carry_out(&deployment("web:1"), CREATE).await;
    let was = "replicas 4, images web:1, selector tier=x".to_owned();
    assert_eq!(replaced, Outcome::Replaced { was });
    world.settle().await;
    let created = world.writer.carry_out(&deployment("web:1"), CREATE).await;
    assert!(matches!(created, Outcome::Written(_)), "{created:?}");
    world.settle().await;
    assert!(world.pods().await.is_superset(&pods));
}

#[tokio::test(start_paused = true)]
async fn f40_a_deployment_of_another_federation_stays() {
    let world = World::with_found(|found| {
        found["metadata"]["labels"] = json!({ "fedrs.dev/federation": "red" });
    })
    .await;
    let before = world.get(WEB).await;
    let rejected = world.writer.carry_out(&deployment("web:1"), CREATE).await;
    let is_conflict = matches!(
        rejected,
        Outcome::Rejected {
            kind: RejectionKind::NameConflict,
            ..
        }
    );
    assert!(is_conflict, "{rejected:?}");
    assert_eq!(world.get(WEB).await, before);
}
