//! Scheduling: full clusters, capacity that is freed, gates, cordons.

use serde_json::json;
use sim_cluster::NodeSpec;
use sim_cluster::kinds;

use crate::cluster::{Cluster, condition, name, pod_spec};

fn pending(cluster: &Cluster) -> Vec<sim_cluster::Object> {
    cluster
        .pods()
        .into_iter()
        .filter(|pod| pod["spec"]["nodeName"].is_null())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn pods_stay_pending_until_the_cluster_has_capacity() {
    let cluster = Cluster::new(2, 3).await;
    cluster.create_set("web", 8);
    cluster
        .until("six are ready", |c| c.ready_pods() == 6)
        .await;
    let refused = |c: &Cluster| {
        pending(c)
            .iter()
            .filter(|pod| condition(pod, "PodScheduled")["status"] == "False")
            .count()
    };
    cluster.until("two are refused", |c| refused(c) == 2).await;
    let waiting = condition(&pending(&cluster)[0], "PodScheduled");
    assert_eq!(waiting["reason"], "Unschedulable");
    assert_eq!(
        waiting["message"],
        "0/2 nodes are available: 2 Too many pods. no new claims to deallocate, preemption: 0/2 nodes are available: \
         2 No preemption victims found for incoming pod."
    );
    assert!(
        cluster
            .events(&name(&pending(&cluster)[0]))
            .contains(&"FailedScheduling".to_owned())
    );
    cluster.pass(300).await;
    assert_eq!(
        condition(&pending(&cluster)[0], "PodScheduled"),
        waiting,
        "the condition keeps its time"
    );
    cluster.add_node(&NodeSpec::new("node-3").pods(1));
    cluster
        .until("a seventh is ready", |c| c.ready_pods() == 7)
        .await;
    let before = cluster.api.clock().now();
    cluster.scale("web", 7);
    cluster
        .until("the pending one goes first", |c| {
            c.pods().len() == 7 && c.ready_pods() == 7
        })
        .await;
    assert!(cluster.api.clock().now().duration_since(before).as_secs() < 1);
}

#[tokio::test(start_paused = true)]
async fn a_terminated_pod_frees_capacity_for_a_pending_one() {
    let cluster = Cluster::new(1, 2).await;
    cluster.create_set("web", 2);
    cluster
        .until("two are ready", |c| c.ready_pods() == 2)
        .await;
    cluster.create_set("db", 1);
    cluster.until("one waits", |c| pending(c).len() == 1).await;
    cluster.pass(30).await;
    let before = cluster.api.clock().now();
    cluster.scale("web", 1);
    cluster
        .until("the pod is scheduled", |c| {
            c.set("db")["status"]["readyReplicas"] == 1
        })
        .await;
    assert!(cluster.api.clock().now().duration_since(before).as_secs() <= 3);
}

#[tokio::test(start_paused = true)]
async fn a_pod_with_scheduling_gates_is_not_scheduled() {
    let cluster = Cluster::new(1, 110).await;
    let mut spec = pod_spec();
    spec["schedulingGates"] = json!([{"name": "example.com/wait"}]);
    cluster.create(
        &kinds::PODS,
        json!({"metadata": {"name": "p"}, "spec": spec}),
    );
    cluster.pass(60).await;
    assert!(cluster.pod("p")["spec"]["nodeName"].is_null());
    cluster.edit(&kinds::PODS, "p", |pod| {
        let () = pod["spec"]
            .as_object_mut()
            .unwrap()
            .remove("schedulingGates")
            .map_or((), drop);
    });
    cluster.until("it runs", |c| c.ready_pods() == 1).await;
}

#[tokio::test(start_paused = true)]
async fn a_cordoned_node_gets_no_more_pods_and_keeps_its_own() {
    let cluster = Cluster::new(2, 110).await;
    cluster.create_set("web", 2);
    cluster
        .until("two are ready", |c| c.ready_pods() == 2)
        .await;
    cluster.edit(&kinds::NODES, "node-1", |node| {
        node["spec"]["unschedulable"] = json!(true);
    });
    cluster.scale("web", 6);
    cluster
        .until("six are ready", |c| c.ready_pods() == 6)
        .await;
    assert_eq!(
        (cluster.pods_on("node-1"), cluster.pods_on("node-2")),
        (1, 5)
    );
}
