//! Disruption budgets and evictions.

use serde_json::{Value, json};
use sim_cluster::{DeleteOptions, kinds};

use crate::{
    cluster::{Cluster, condition, name},
    web::deployment,
};

fn create_budget(cluster: &Cluster, name: &str, spec: &Value) {
    let mut spec = spec.clone();
    spec["selector"] = json!({ "matchLabels": { "app": "web" } });
    let budget = json!({ "metadata": { "name": name }, "spec": spec });
    cluster.create(&kinds::POD_DISRUPTION_BUDGETS, budget);
}

fn status(cluster: &Cluster) -> Value {
    let budget = (cluster.api).get(&kinds::POD_DISRUPTION_BUDGETS, "default", "web");
    budget.unwrap()["status"].clone()
}

/// The HTTP status of the eviction of a pod.
fn evict(cluster: &Cluster, pod: &str) -> u16 {
    let evicted = cluster.api.evict("default", pod, &DeleteOptions::default());
    evicted.map_or_else(|status| status.code, |_| 201)
}

async fn cluster_with_budget(spec: &Value) -> (Cluster, Vec<String>) {
    let cluster = Cluster::new(1, 110).await;
    cluster.create_set("web", 3);
    create_budget(&cluster, "web", spec);
    cluster
        .until("all are counted", |c| status(c)["currentHealthy"] == 3)
        .await;
    let names = cluster.pods().iter().map(|pod| name(pod)).collect();
    (cluster, names)
}

#[tokio::test(start_paused = true)]
async fn each_eviction_uses_what_is_allowed_until_it_is_counted() {
    let (cluster, pods) = cluster_with_budget(&json!({ "minAvailable": 2 })).await;
    assert_eq!(status(&cluster)["disruptionsAllowed"], 1);
    assert_eq!(evict(&cluster, &pods[0]), 201);
    let after = status(&cluster);
    assert_eq!(after["disruptionsAllowed"], 0);
    assert!(after["disruptedPods"][&pods[0]].is_string());
    let target = condition(&cluster.pod(&pods[0]), "DisruptionTarget");
    assert_eq!(target["reason"], "EvictionByEvictionAPI");
    assert_eq!(evict(&cluster, &pods[1]), 429);
    cluster
        .until("it is replaced", |c| {
            let status = status(c);
            let is_empty = |pods: &Value| pods.as_object().is_none_or(serde_json::Map::is_empty);
            status["disruptionsAllowed"] == 1 && is_empty(&status["disruptedPods"])
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn nothing_is_evicted_before_a_change_of_the_budget_is_observed() {
    let (cluster, pods) = cluster_with_budget(&json!({ "minAvailable": 2 })).await;
    cluster.edit(&kinds::POD_DISRUPTION_BUDGETS, "web", |budget| {
        budget["spec"]["minAvailable"] = json!(0);
    });
    assert_eq!(evict(&cluster, &pods[0]), 429);
    cluster
        .until("it is observed", |c| status(c)["disruptionsAllowed"] == 3)
        .await;
    assert_eq!(evict(&cluster, &pods[0]), 201);
}

#[tokio::test(start_paused = true)]
async fn two_budgets_of_a_pod_fail_its_eviction() {
    let (cluster, pods) = cluster_with_budget(&json!({ "minAvailable": 0 })).await;
    create_budget(&cluster, "second", &json!({ "minAvailable": 0 }));
    cluster.pass(5).await;
    assert_eq!(evict(&cluster, &pods[0]), 500);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_not_ready_may_be_evicted_by_policy() {
    for (policy, code) in [("IfHealthyBudget", 429), ("AlwaysAllow", 201)] {
        let spec = json!({ "minAvailable": 3, "unhealthyPodEvictionPolicy": policy });
        let (cluster, pods) = cluster_with_budget(&spec).await;
        cluster.edit(&kinds::PODS, &pods[0], |pod| {
            pod["metadata"]["annotations"] = json!({ "sim-cluster.dev/fail": "crash" });
        });
        cluster
            .until("it is counted", |c| status(c)["currentHealthy"] == 2)
            .await;
        assert_eq!(evict(&cluster, &pods[0]), code, "{policy}");
    }
}

/// An eviction was granted, and the pod was not deleted; or one of its name was created since.
#[tokio::test(start_paused = true)]
async fn an_evicted_pod_that_exists_counts_again_after_two_minutes() {
    let (cluster, pods) = cluster_with_budget(&json!({ "minAvailable": 2 })).await;
    let disrupt = |budget: &mut Value| {
        let disrupted = json!({ &pods[0]: budget["metadata"]["creationTimestamp"] });
        budget["status"]["disruptedPods"] = disrupted;
    };
    let kind = &kinds::POD_DISRUPTION_BUDGETS;
    let changed = (cluster.api).modify(kind, Some("status"), "default", "web", disrupt);
    changed.unwrap();
    cluster.pass(60).await;
    assert_eq!(status(&cluster)["disruptionsAllowed"], 0);
    cluster.pass(65).await;
    assert_eq!(status(&cluster)["disruptionsAllowed"], 1);
}

/// A pod that its controller can't create is missed.
#[tokio::test(start_paused = true)]
async fn the_expected_pods_are_those_that_their_controllers_should_have() {
    for (spec, expected, allowed) in [
        (json!({ "maxUnavailable": 1 }), 3, 0),
        (json!({ "minAvailable": "50%" }), 3, 0),
        (json!({ "minAvailable": 2 }), 2, 0),
        (json!({ "minAvailable": 1 }), 2, 1),
    ] {
        let cluster = Cluster::new(1, 110).await;
        cluster.create_deployment(deployment(3));
        create_budget(&cluster, "web", &spec);
        cluster
            .until("all are counted", |c| status(c)["currentHealthy"] == 3)
            .await;
        let quota = json!({ "metadata": { "name": "pods" }, "spec": { "hard": { "pods": "2" } } });
        cluster.create(&kinds::RESOURCE_QUOTAS, quota);
        let pods: Vec<String> = cluster.pods().iter().map(|pod| name(pod)).collect();
        let kind = &kinds::PODS;
        let now = DeleteOptions::default();
        cluster.api.delete(kind, "default", &pods[0], &now).unwrap();
        cluster.pass(60).await;
        let status = status(&cluster);
        let counts = (&status["expectedPods"], &status["disruptionsAllowed"]);
        assert_eq!(
            counts,
            (&json!(expected), &json!(allowed)),
            "{spec}: {status}"
        );
    }
}
