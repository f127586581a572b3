//! A client meets a fault, as in a test: `cargo run -p sim-cluster --example fault`.
//!
//! The answer to a write is lost although the write took effect. The client sends it again and gets a conflict. Time is
//! paused: the pods become ready without waiting.

use std::error::Error;

use kube::api::{Api, DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::json;
use sim_cluster::{RequestMatcher, SimCluster, Verb, kinds};

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Result<(), Box<dyn Error>> {
    let cluster = SimCluster::builder("test").nodes(2).seed(7).start();
    let client = kube::Client::new(cluster.service(), "default");
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("apps", "v1", "ReplicaSet"));
    let sets: Api<DynamicObject> = Api::namespaced_with(client, "default", &resource);
    let web: DynamicObject = serde_json::from_value(json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web"},
        "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "main", "image": "registry.example/app:1"}]}}},
    }))?;

    let creations = RequestMatcher::all()
        .verb(Verb::Create)
        .resource("replicasets");
    cluster.faults().lose_responses(creations, 1);
    let lost = sets.create(&PostParams::default(), &web).await;
    println!("first attempt:  {}", lost.expect_err("the answer is lost"));
    let conflict = sets.create(&PostParams::default(), &web).await;
    let conflict = conflict.expect_err("the first attempt took effect");
    println!("second attempt: {conflict}");
    assert_eq!(cluster.faults().counts().responses_lost, 1);

    // Every change of the cluster wakes the loop: no polling.
    let mut changes = cluster.api().changes();
    loop {
        let set = cluster.api().get(&kinds::REPLICA_SETS, "default", "web")?;
        if set["status"]["readyReplicas"] == 3 {
            println!("3 pods are ready at {}", cluster.clock().now());
            break;
        }
        changes.next().await;
    }
    cluster.stop().await;
    Ok(())
}
