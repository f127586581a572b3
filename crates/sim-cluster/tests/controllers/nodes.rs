//! Nodes lost, back, deleted.

use serde_json::json;
use sim_cluster::kinds;

use crate::cluster::{Cluster, condition, is_ready, name};

#[tokio::test(start_paused = true)]
async fn pods_of_an_unreachable_node_are_replaced_and_surplus_is_deleted_when_it_returns() {
    let cluster = Cluster::new(3, 110).await;
    cluster.create_set("web", 6);
    cluster
        .until("six are ready", |c| c.ready_pods() == 6)
        .await;
    let failed_at = cluster.api.clock().now();
    let since = |c: &Cluster| c.api.clock().now().duration_since(failed_at).as_secs();
    cluster.fail_node("node-1");
    cluster
        .until("its pods are not ready", |c| c.ready_pods() == 4)
        .await;
    assert!(
        (40..=51).contains(&since(&cluster)),
        "{} s",
        since(&cluster)
    );
    cluster
        .until("the set knows", |c| {
            c.set("web")["status"]["readyReplicas"] == 4
        })
        .await;
    let node = cluster.api.get(&kinds::NODES, "", "node-1").unwrap();
    assert_eq!(condition(&node, "Ready")["status"], "Unknown");
    assert_eq!(condition(&node, "Ready")["reason"], "NodeStatusUnknown");
    cluster
        .until("six are ready elsewhere", |c| c.ready_pods() == 6)
        .await;
    assert!(
        (340..=360).contains(&since(&cluster)),
        "{} s",
        since(&cluster)
    );
    cluster.pass(600).await;
    let stuck = cluster
        .pods()
        .iter()
        .filter(|pod| !pod["metadata"]["deletionTimestamp"].is_null())
        .count();
    assert_eq!(
        (stuck, cluster.pods().len()),
        (2, 8),
        "nobody is there to stop them"
    );
    cluster.recover_node("node-1");
    cluster
        .until("they are gone", |c| c.pods().len() == 6)
        .await;
    cluster
        .until("no taint is left", |c| {
            c.api.get(&kinds::NODES, "", "node-1").unwrap()["spec"]["taints"].is_null()
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_back_soon_keeps_its_pods() {
    let cluster = Cluster::new(2, 110).await;
    cluster.create_set("web", 4);
    cluster
        .until("four are ready", |c| c.ready_pods() == 4)
        .await;
    let before: Vec<String> = cluster.pods().iter().map(|pod| name(pod)).collect();
    cluster.fail_node("node-1");
    cluster
        .until("two are not ready", |c| c.ready_pods() == 2)
        .await;
    cluster.recover_node("node-1");
    cluster
        .until("all are ready", |c| c.ready_pods() == 4)
        .await;
    cluster.pass(600).await;
    assert_eq!(
        cluster
            .pods()
            .iter()
            .map(|pod| name(pod))
            .collect::<Vec<_>>(),
        before
    );
}

#[tokio::test(start_paused = true)]
async fn no_pod_is_evicted_when_all_nodes_are_unreachable() {
    let cluster = Cluster::new(2, 110).await;
    cluster.create_set("web", 4);
    cluster
        .until("four are ready", |c| c.ready_pods() == 4)
        .await;
    cluster.fail_node("node-1");
    cluster.fail_node("node-2");
    cluster
        .until("none is ready", |c| c.ready_pods() == 0)
        .await;
    cluster.pass(1200).await;
    assert!(
        cluster
            .pods()
            .iter()
            .all(|pod| pod["metadata"]["deletionTimestamp"].is_null())
    );
}

#[tokio::test(start_paused = true)]
async fn the_pods_of_a_deleted_node_are_removed_and_replaced() {
    let cluster = Cluster::new(2, 110).await;
    cluster.create_set("web", 4);
    cluster
        .until("four are ready", |c| c.ready_pods() == 4)
        .await;
    cluster.delete(&kinds::NODES, "node-1", None);
    cluster
        .until("all are on the other", |c| {
            c.pods_on("node-2") == 4 && c.pods().len() == 4 && c.ready_pods() == 4
        })
        .await;
    let leases = cluster.api.list(&kinds::LEASES, Some("kube-node-lease"));
    assert_eq!(
        leases.iter().map(|lease| name(lease)).collect::<Vec<_>>(),
        ["node-2"],
        "its lease is collected"
    );
}

#[tokio::test(start_paused = true)]
async fn a_no_execute_taint_evicts_those_that_do_not_tolerate_it() {
    let cluster = Cluster::new(2, 110).await;
    cluster.create_set("web", 2);
    cluster
        .until("two are ready", |c| c.ready_pods() == 2)
        .await;
    cluster.edit(&kinds::NODES, "node-1", |node| {
        node["spec"]["taints"] = json!([{"key": "maintenance", "effect": "NoExecute"}]);
    });
    cluster
        .until("both are on the other", |c| {
            c.pods_on("node-2") == 2 && c.pods_on("node-1") == 0 && c.ready_pods() == 2
        })
        .await;
    assert!(cluster.pods().iter().all(|pod| is_ready(pod)));
}

#[tokio::test(start_paused = true)]
async fn after_a_loss_of_power_pods_say_ready_until_the_grace_period_and_restart_with_their_nodes()
{
    let cluster = Cluster::new(2, 110).await;
    cluster.create_set("web", 4);
    cluster
        .until("four are ready", |c| c.ready_pods() == 4)
        .await;
    let lease = |c: &Cluster| {
        let lease = c.api.get(&kinds::LEASES, "kube-node-lease", "node-1");
        lease.unwrap()["spec"]["renewTime"].clone()
    };
    cluster.pass(30).await;
    cluster.sim.lose_power();
    let last = lease(&cluster);
    cluster.pass(300).await;
    assert_eq!(
        (cluster.ready_pods(), lease(&cluster)),
        (4, last.clone()),
        "nothing changes without power"
    );
    cluster.sim.restore_power();
    cluster.pass(45).await;
    assert_eq!((cluster.ready_pods(), lease(&cluster)), (4, last.clone()));
    cluster
        .until("no pod is ready", |c| c.ready_pods() == 0)
        .await;
    cluster.pass(100).await;
    for node in ["node-1", "node-2"] {
        cluster.recover_node(node);
    }
    cluster
        .until("four are ready again", |c| c.ready_pods() == 4)
        .await;
    assert_ne!(lease(&cluster), last);
    let restarts: Vec<_> = cluster
        .pods()
        .iter()
        .map(|pod| pod["status"]["containerStatuses"][0]["restartCount"].clone())
        .collect();
    assert_eq!(restarts, [1, 1, 1, 1]);
    cluster.pass(60).await;
    assert_eq!(cluster.ready_pods(), 4, "they restart once");
}
